//! Learning: what a run touched, as the smallest policy that allows it.

use super::{
    Clause, Count, Extent, Function, Kind, Memory, ParameterKind, Place, Policy, Step, Structure, show,
};
use ringfence_core::Rights;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// How many structures are looked through to explain an access.
const MOST: usize = 256;
/// How many fields; debug information may say that a structure contains itself.
const FIELDS: usize = 1 << 14;
/// How many structures may be within each other.
const DEEPEST: usize = 16;

/// Notes what calls touch. It begins with a policy that has at least each function's parameters; whatever is touched is compared with
/// nothing and added.
#[derive(Debug)]
pub struct Recorder {
    policy: Policy,
    calls: Vec<(String, Vec<u64>)>,
    seen: BTreeMap<String, BTreeMap<Place, Touched>>,
    unexplained: BTreeSet<String>,
}

/// Of a place whose extent is `Field` (the field itself) or `Text` (what it points to).
#[derive(Clone, Debug, Default)]
struct Touched {
    /// Elements, to the last one that was touched.
    read: u64,
    written: u64,
    /// Whether all that was read was within the string there.
    text: bool,
}

/// Where an access was: a place, the first and the last element, and whether those are within a string.
struct Found {
    place: Place,
    last: u64,
    text: bool,
}

impl Recorder {
    /// Of calls whose parameters the policy tells.
    pub fn new(signatures: Policy) -> Recorder {
        Recorder {
            policy: signatures,
            calls: Vec::new(),
            seen: BTreeMap::new(),
            unexplained: BTreeSet::new(),
        }
    }

    /// A call begins. Those that are no function of the policy are noted as such.
    pub fn begin(&mut self, function: &str, arguments: &[u64]) {
        self.calls.push((function.into(), arguments.to_vec()));
        if self.policy.functions.contains_key(function) {
            self.seen.entry(function.into()).or_default();
        }
    }

    /// The innermost call has ended.
    pub fn end(&mut self) {
        self.calls.pop();
    }

    /// The innermost call touches bytes at an address. Whether that could be explained by its parameters.
    pub fn access(&mut self, address: u64, len: u64, write: bool, memory: &impl Memory) -> bool {
        let Some((name, arguments)) = self.calls.last() else {
            return false;
        };
        let (mut at, end) = (address, address.saturating_add(len));
        let function = self
            .policy
            .functions
            .get(name)
            .filter(|f| f.parameters.len() == arguments.len());
        let mut found = Vec::new();
        while let Some(function) = function
            && at < end
        {
            match explain(&self.policy, function, arguments, at, memory) {
                Some((place, behind)) => {
                    found.push(place);
                    at = behind;
                }
                None => break,
            }
        }
        if at < end {
            let verb = if write { "writes" } else { "reads" };
            self.unexplained
                .insert(format!("{name} {verb} what none of its parameters leads to"));
            return false;
        }
        let seen = self.seen.entry(name.clone()).or_default();
        for Found { place, last, text } in found {
            let new = Touched {
                text: true,
                ..Touched::default()
            };
            let touched = seen.entry(place).or_insert(new);
            let count = if write {
                &mut touched.written
            } else {
                &mut touched.read
            };
            *count = (*count).max(last + 1);
            touched.text &= text && !write;
        }
        true
    }

    /// The policy: a line for each function that was called, and a comment for what could not be explained.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (name, seen) in &self.seen {
            if let Some(function) = self.policy.functions.get(name) {
                let function = Function {
                    parameters: function.parameters.clone(),
                    clauses: self.clauses(function, seen),
                };
                // Into a String.
                let _ = writeln!(text, "{}", show::line(name, &function));
            }
        }
        for what in &self.unexplained {
            let _ = writeln!(text, "# {what}");
        }
        text
    }

    fn clauses(&self, function: &Function, seen: &BTreeMap<Place, Touched>) -> Vec<Clause> {
        let mut clauses = Vec::new();
        let mut add = |rights, place: Place| {
            clauses.push(Clause {
                rights,
                place,
                kept: false,
            });
        };
        let whole = self.wholes(function, seen);
        for (target, rights) in &whole {
            add(*rights, target.clone());
        }
        for (place, touched) in seen {
            // What a whole structure's clause says already: fields that no further pointer leads to.
            let own = place.extent == Extent::Field;
            let inside = own && place.steps.iter().skip(1).all(|s| !s.follows);
            let covering = whole
                .iter()
                .find(|(t, _)| inside && t.parameter == place.parameter);
            let covered = covering.map_or(Rights::None, |(_, rights)| *rights);
            // Who follows a pointer may read it.
            let followed = own && seen.keys().any(|p| follows(p, place));
            if touched.written > 0 && covered < Rights::Write {
                add(
                    Rights::Write,
                    self.extended(function, place, touched.written, false),
                );
            }
            if touched.read > touched.written && covered < Rights::Read && !followed {
                add(
                    Rights::Read,
                    self.extended(function, place, touched.read, touched.text),
                );
            }
        }
        clauses.sort_by_key(|c| c.rights);
        clauses
    }

    /// Structures all of whose fields were touched the same way.
    fn wholes(&self, function: &Function, seen: &BTreeMap<Place, Touched>) -> Vec<(Place, Rights)> {
        let mut found = Vec::new();
        for (parameter, p) in function.parameters.iter().enumerate() {
            let ParameterKind::Structure(name) = &p.kind else {
                continue;
            };
            let Some(structure) = self.policy.structures.get(name) else {
                continue;
            };
            let all = |count: &dyn Fn(&Touched) -> u64| {
                let mut left = FIELDS;
                structure.fields.len() > 1 && self.touched(parameter, structure, &[], seen, count, &mut left)
            };
            let rights = match (all(&|t| t.written), all(&|t| t.read.max(t.written))) {
                (true, _) => Rights::Write,
                (false, true) => Rights::Read,
                _ => continue,
            };
            let target = Place {
                parameter,
                steps: Vec::new(),
                extent: Extent::Target,
            };
            found.push((target, rights));
        }
        found
    }

    /// Whether all of a structure's fields were touched, those of structures in it too.
    fn touched(
        &self,
        parameter: usize,
        structure: &Structure,
        steps: &[Step],
        seen: &BTreeMap<Place, Touched>,
        count: &dyn Fn(&Touched) -> u64,
        left: &mut usize,
    ) -> bool {
        structure.fields.iter().all(|f| {
            *left = left.saturating_sub(1);
            let mut steps = steps.to_vec();
            steps.push(Step {
                follows: steps.is_empty(),
                field: f.name.clone(),
            });
            let inner = match &f.kind {
                Kind::Structure(name) if f.size == f.element => self.policy.structures.get(name),
                _ => None,
            };
            if let Some(inner) = inner {
                return *left > 0
                    && steps.len() < DEEPEST
                    && self.touched(parameter, inner, &steps, seen, count, left);
            }
            let place = Place {
                parameter,
                steps,
                extent: Extent::Field,
            };
            let elements = f.size.checked_div(f.element).unwrap_or(0);
            elements > 0 && seen.get(&place).is_some_and(|t| count(t) >= elements)
        })
    }

    /// The place with as many elements as were touched.
    fn extended(&self, function: &Function, place: &Place, count: u64, text: bool) -> Place {
        let field = self.policy.field(function, place);
        let extent = match (&place.extent, field) {
            (Extent::Field, Some(f)) if f.element == 0 || count >= f.size / f.element => Extent::Field,
            (Extent::Field, None) => Extent::Field,
            (Extent::Text, _) if text => Extent::Text,
            _ => Extent::Elements(Count::Number(count)),
        };
        Place {
            extent,
            ..place.clone()
        }
    }
}

/// Whether a place is what another one, a pointer, leads to.
fn follows(place: &Place, pointer: &Place) -> bool {
    if place.parameter != pointer.parameter {
        return false;
    }
    match place.steps.strip_prefix(&pointer.steps[..]) {
        Some([]) => place.extent == Extent::Text,
        Some([next, ..]) => next.follows,
        None => false,
    }
}

impl Policy {
    /// The last field of a place.
    pub(crate) fn field(&self, function: &Function, place: &Place) -> Option<&super::Field> {
        let ParameterKind::Structure(name) = &function.parameters.get(place.parameter)?.kind else {
            return None;
        };
        let (mut inside, mut last) = (Some(name.clone()), None);
        for step in &place.steps {
            let structure = self.structures.get(&inside?)?;
            let field = structure.fields.iter().find(|f| f.name == step.field)?;
            inside = super::within(field);
            last = Some(field);
        }
        last
    }

    /// The clause that would allow an access in a call, if the call's parameters lead there.
    pub(crate) fn clause_for(
        &self,
        name: &str,
        arguments: &[u64],
        address: u64,
        write: bool,
        memory: &impl Memory,
    ) -> Option<String> {
        let function = self.functions.get(name)?;
        if function.parameters.len() != arguments.len() {
            return None;
        }
        let (found, _) = explain(self, function, arguments, address, memory)?;
        let extent = match self.field(function, &found.place) {
            _ if found.place.extent == Extent::Text && found.text && !write => Extent::Text,
            Some(f) if found.place.extent == Extent::Field && (f.element == 0 || f.size == f.element) => {
                Extent::Field
            }
            _ => Extent::Elements(Count::Number(found.last + 1)),
        };
        let clause = Clause {
            rights: if write { Rights::Write } else { Rights::Read },
            place: Place {
                extent,
                ..found.place
            },
            kept: false,
        };
        Some(format!(
            "{} {}",
            show::head(name, function),
            show::clause(function, &clause)
        ))
    }
}

/// How a byte is reached from the parameters, by the fewest pointers; and the first byte behind the element that it belongs to.
fn explain(
    policy: &Policy,
    function: &Function,
    arguments: &[u64],
    at: u64,
    memory: &impl Memory,
) -> Option<(Found, u64)> {
    /// Something that a pointer leads to.
    struct Reached {
        base: u64,
        structure: Option<String>,
        element: u64,
        text: bool,
        place: Place,
    }
    let mut queue: Vec<Reached> = Vec::new();
    for (parameter, (p, &base)) in function.parameters.iter().zip(arguments).enumerate() {
        let structure = match &p.kind {
            ParameterKind::Structure(name) => Some(name.clone()),
            ParameterKind::Number => continue,
            _ => None,
        };
        queue.push(Reached {
            base,
            structure,
            element: 1,
            text: p.kind == ParameterKind::Text,
            place: Place {
                parameter,
                steps: Vec::new(),
                extent: Extent::Text,
            },
        });
    }
    let (mut next, mut left) = (0, FIELDS);
    while let Some(here) = queue.get(next) {
        next += 1;
        let (base, place) = (here.base, here.place.clone());
        let Some(title) = &here.structure else {
            // Elements without a name, as far as the object goes.
            let object = memory.offset(base).and_then(|o| Some((o, memory.object(o)?)));
            if let Some((offset, object)) = object
                && at >= base
                && at - base < object.end.saturating_sub(offset)
            {
                let last = (at - base) / here.element;
                let text = here.text && within_text(memory, offset, at - base);
                let behind = base + (last + 1) * here.element;
                return Some((Found { place, last, text }, behind));
            }
            continue;
        };
        let Some(structure) = policy.structures.get(title) else {
            continue;
        };
        // Structures within the structure, by their offsets.
        let mut inner = vec![(base, structure, place.steps, true)];
        while let Some((start, structure, steps, follows)) = inner.pop() {
            for field in &structure.fields {
                left = left.checked_sub(1)?;
                let from = start.saturating_add(field.offset);
                let mut steps = steps.clone();
                steps.push(Step {
                    follows,
                    field: field.name.clone(),
                });
                let here = Place {
                    parameter: place.parameter,
                    steps: steps.clone(),
                    extent: Extent::Field,
                };
                let single = field.size == field.element;
                if let Kind::Structure(name) = &field.kind
                    && single
                    && steps.len() < DEEPEST
                    && let Some(structure) = policy.structures.get(name)
                {
                    inner.push((from, structure, steps, false));
                    continue;
                }
                if at >= from && at - from < field.size.max(1) {
                    let element = field.element.max(1);
                    let last = (at - from) / element;
                    let found = Found {
                        place: here,
                        last,
                        text: false,
                    };
                    return Some((found, from + (last + 1) * element));
                }
                if let Kind::Pointer {
                    size,
                    structure,
                    text,
                } = &field.kind
                    && single
                    && queue.len() < MOST
                {
                    let mut bytes = [0; 8];
                    let read = memory.offset(from).is_some_and(|o| memory.read(o, &mut bytes));
                    let pointer = u64::from_le_bytes(bytes);
                    if read && pointer != 0 && queue.iter().all(|r| r.base != pointer) {
                        queue.push(Reached {
                            base: pointer,
                            structure: structure.clone().filter(|s| policy.structures.contains_key(s)),
                            element: (*size).max(1),
                            text: *text,
                            place: Place {
                                extent: Extent::Text,
                                ..here
                            },
                        });
                    }
                }
            }
        }
    }
    None
}

/// Whether a byte is one of a string's, its zero included.
fn within_text(memory: &impl Memory, start: u64, at: u64) -> bool {
    let mut bytes = vec![0; at.min(super::LONGEST_TEXT) as usize];
    at < super::LONGEST_TEXT && memory.read(start, &mut bytes) && !bytes.contains(&0)
}
