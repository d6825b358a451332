//! What functions may touch of the objects that they are called with, as their interface's author declares it: a line for each function.
//!
//! ```text
//! struct request 144 { uri @0 char*; cb @16 1[48]; next @64 struct request* }    # if debug information does not tell
//! handle(req: struct request) reads req->uri as string; writes req->cb[32]; keeps nothing
//! copy(to: bytes, from: bytes, n: number) writes to[n]; reads from[n]
//! ```
//!
//! Parameters that point are `struct NAME`, `text` and `bytes`; all others are `number`. A place is a parameter and fields of what it
//! points to; `*place` is all that a pointer to a structure points to, `place[n]` the first elements of an array or of what a pointer
//! points to, `n` being a number, a parameter or a field, and `place as string` the characters up to the zero. Whoever may follow a
//! pointer may read it. Rights end with the call, but for places that it `keeps`.
//!
//! Rights are those of whole words: what a place shares its first and last word with is granted with it.

use crate::supervisor::WORD;
use ringfence_core::Rights;
pub use ringfence_debug::structure::{self, Field, Kind, Structure};
use std::collections::BTreeMap;
use std::ops::Range;

pub mod learn;
mod parse;
mod show;

pub use parse::PolicyError;

/// Longest string that is looked through for its end.
pub const LONGEST_TEXT: u64 = 1 << 20;

/// Policies of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    pub(crate) functions: BTreeMap<String, Function>,
    pub(crate) structures: BTreeMap<String, Structure>,
}

/// A function's parameters and what it may touch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub parameters: Vec<Parameter>,
    pub clauses: Vec<Clause>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parameter {
    pub name: String,
    pub kind: ParameterKind,
    /// How many bytes are copied into an object for the call, and back, if the pointer does not lead into the arena.
    pub copied: Option<Copied>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Copied {
    Bytes(u64),
    /// As many as an argument says.
    Argument(usize),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ParameterKind {
    Number,
    Bytes,
    Text,
    Structure(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Clause {
    pub rights: Rights,
    pub place: Place,
    pub kept: bool,
}

/// What of a parameter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub parameter: usize,
    pub steps: Vec<Step>,
    pub extent: Extent,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Step {
    /// Whether the field before is a pointer that is followed; for the first step the parameter is.
    pub follows: bool,
    pub field: String,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Extent {
    /// The field itself.
    Field,
    /// The structure that it points to.
    Target,
    /// So many elements.
    Elements(Count),
    /// Up to the zero.
    Text,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Count {
    Number(u64),
    Place(Box<Place>),
}

/// The arena, as policies read it.
pub trait Memory {
    /// Bytes from the arena's start to a pointer; `None` if it does not point into the arena.
    fn offset(&self, pointer: u64) -> Option<u64>;
    /// Reads bytes, counted from the arena's start. Whether they are all there.
    fn read(&self, offset: u64, to: &mut [u8]) -> bool;
    /// The bytes of the object that a byte belongs to.
    fn object(&self, offset: u64) -> Option<Range<u64>>;
}

/// Rights that a call needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needed {
    /// To which words.
    pub words: Range<u32>,
    /// Which rights.
    pub rights: Rights,
    /// Whether they stay when the call has ended.
    pub kept: bool,
}

/// An argument that is copied for a call: it points to the stack, say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy {
    /// Which argument.
    pub argument: usize,
    /// How many bytes.
    pub len: u64,
    /// Whether they are copied back.
    pub back: bool,
}

/// The most that is copied of an argument.
pub const MOST_COPIED: u64 = 1 << 20;

/// Why the rights of a call cannot be told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EvaluationError {
    /// The policy says nothing about the function.
    #[error("there is no policy for {0}: add a line `{0}(…) …`")]
    NoFunction(String),
    /// Not as many arguments as the policy has parameters.
    #[error("{function} takes {wanted} parameters by its policy, and is called with {given}")]
    Arguments {
        /// The function.
        function: String,
        /// By its policy.
        wanted: usize,
        /// What it is called with.
        given: usize,
    },
    /// A pointer out of the arena.
    #[error("{place} is at {pointer:#x}, which is not in the arena: allocate it there")]
    Elsewhere {
        /// The place.
        place: String,
        /// The pointer.
        pointer: u64,
    },
    /// A string without an end, or one that is too long.
    #[error("{place} has no end within {LONGEST_TEXT} bytes of its object")]
    Endless {
        /// The place.
        place: String,
    },
    /// More elements than there are.
    #[error("{place} are {count} elements; there are {most}")]
    Many {
        /// The place.
        place: String,
        /// What is asked for.
        count: u64,
        /// What there is.
        most: u64,
    },
}

/// What a place names, while it is followed: bytes at an address, of a type.
struct Here {
    /// A pointer, or where a field is.
    address: u64,
    field: Option<Field>,
}

impl Policy {
    /// Names of the functions that there are policies for.
    pub fn functions(&self) -> impl Iterator<Item = &str> {
        self.functions.keys().map(String::as_str)
    }

    /// Its structures, as they are declared: with these lines, functions' lines need no debug information.
    pub fn declarations(&self) -> String {
        let all = self.structures.iter();
        all.map(|(name, s)| show::structure(name, s) + "\n").collect()
    }

    /// The structure of that name.
    pub fn structure(&self, name: &str) -> Option<&Structure> {
        self.structures.get(name)
    }

    /// Arguments that the policy says are copied: those that point elsewhere than into the arena, and not nowhere. Others are none, nor are
    /// functions that are not known: [`needs`](Self::needs) tells.
    ///
    /// # Errors
    /// [`EvaluationError::Many`].
    pub fn copies(
        &self,
        function: &str,
        arguments: &[u64],
        memory: &impl Memory,
    ) -> Result<Vec<Copy>, EvaluationError> {
        let Some(found) = self.functions.get(function) else {
            return Ok(Vec::new());
        };
        let mut copies = Vec::new();
        for (argument, (p, &pointer)) in found.parameters.iter().zip(arguments).enumerate() {
            let Some(copied) = &p.copied else { continue };
            if pointer == 0 || memory.offset(pointer).is_some() {
                continue;
            }
            let count = match *copied {
                Copied::Bytes(n) => n,
                Copied::Argument(of) => arguments.get(of).copied().unwrap_or(0),
            };
            if count > MOST_COPIED {
                return Err(EvaluationError::Many {
                    place: p.name.clone(),
                    count,
                    most: MOST_COPIED,
                });
            }
            let writes = |c: &Clause| c.rights == Rights::Write && c.place.parameter == argument;
            copies.push(Copy {
                argument,
                len: count,
                back: found.clauses.iter().any(writes),
            });
        }
        Ok(copies)
    }

    /// What a function may touch if it is called with these arguments, in the order of its policy. Null pointers lead to nothing.
    /// What memory says is the callee's to change, so the supervisor judges each range again.
    ///
    /// # Errors
    /// [`EvaluationError`].
    pub fn needs(
        &self,
        function: &str,
        arguments: &[u64],
        memory: &impl Memory,
    ) -> Result<Vec<Needed>, EvaluationError> {
        let found = self.functions.get(function);
        let found = found.ok_or_else(|| EvaluationError::NoFunction(function.into()))?;
        if found.parameters.len() != arguments.len() {
            return Err(EvaluationError::Arguments {
                function: function.into(),
                wanted: found.parameters.len(),
                given: arguments.len(),
            });
        }
        let mut needed = Vec::new();
        for clause in &found.clauses {
            let mut at = Evaluation {
                policy: self,
                function: found,
                arguments,
                memory,
                kept: clause.kept,
                needed: &mut needed,
            };
            at.clause(clause)?;
        }
        Ok(needed)
    }
}

struct Evaluation<'a, M> {
    policy: &'a Policy,
    function: &'a Function,
    arguments: &'a [u64],
    memory: &'a M,
    kept: bool,
    needed: &'a mut Vec<Needed>,
}

impl<M: Memory> Evaluation<'_, M> {
    fn shown(&self, place: &Place) -> String {
        show::place(self.function, place)
    }

    fn offset(&self, place: &Place, pointer: u64) -> Result<u64, EvaluationError> {
        self.memory
            .offset(pointer)
            .ok_or_else(|| EvaluationError::Elsewhere {
                place: self.shown(place),
                pointer,
            })
    }

    fn grant(
        &mut self,
        place: &Place,
        pointer: u64,
        len: u64,
        rights: Rights,
    ) -> Result<(), EvaluationError> {
        let start = self.offset(place, pointer)?;
        let words = start / WORD..start.saturating_add(len).div_ceil(WORD);
        if len > 0 {
            self.needed.push(Needed {
                words: words.start.min(u32::MAX.into()) as u32..words.end.min(u32::MAX.into()) as u32,
                rights,
                kept: self.kept,
            });
        }
        Ok(())
    }

    fn load(&self, place: &Place, address: u64, size: u64) -> Result<u64, EvaluationError> {
        let mut bytes = [0; 8];
        let at = self.offset(place, address)?;
        match self.memory.read(at, &mut bytes[..size.min(8) as usize]) {
            true => Ok(u64::from_le_bytes(bytes)),
            false => Err(EvaluationError::Elsewhere {
                place: self.shown(place),
                pointer: address,
            }),
        }
    }

    /// Reads a pointer field, which whoever follows it may do, too. `None` if it is null.
    fn follow(&mut self, place: &Place, address: u64, read: bool) -> Result<Option<u64>, EvaluationError> {
        if read {
            self.grant(place, address, 8, Rights::Read)?;
        }
        let pointer = self.load(place, address, 8)?;
        Ok((pointer != 0).then_some(pointer))
    }

    /// Where a place's last field is.
    fn walk(&mut self, place: &Place, read: bool) -> Result<Option<Here>, EvaluationError> {
        let mut here = Here {
            address: self.arguments[place.parameter],
            field: None,
        };
        let mut inside = match &self.function.parameters[place.parameter].kind {
            ParameterKind::Structure(name) => Some(name.clone()),
            _ => None,
        };
        if here.address == 0
            && !matches!(
                self.function.parameters[place.parameter].kind,
                ParameterKind::Number
            )
        {
            return Ok(None);
        }
        for step in &place.steps {
            if step.follows && here.field.is_some() {
                match self.follow(place, here.address, read)? {
                    Some(pointer) => here.address = pointer,
                    None => return Ok(None),
                }
            }
            let structure = inside.and_then(|name| self.policy.structures.get(&name));
            let field = structure.and_then(|s| s.fields.iter().find(|f| f.name == step.field));
            // The parser has looked at all of it.
            let Some(field) = field else { return Ok(None) };
            here.address = here.address.saturating_add(field.offset);
            inside = within(field);
            here.field = Some(field.clone());
        }
        Ok(Some(here))
    }

    fn clause(&mut self, clause: &Clause) -> Result<(), EvaluationError> {
        let place = &clause.place;
        let Some(here) = self.walk(place, true)? else {
            return Ok(());
        };
        match &place.extent {
            Extent::Field => {
                let size = here.field.map_or(0, |f| f.size);
                self.grant(place, here.address, size, clause.rights)
            }
            Extent::Target => {
                let Some((base, ..)) = self.target(place, &here)? else {
                    return Ok(());
                };
                let name = match &here.field {
                    Some(field) => within(field),
                    None => match &self.function.parameters[place.parameter].kind {
                        ParameterKind::Structure(name) => Some(name.clone()),
                        _ => None,
                    },
                };
                let size = name
                    .and_then(|n| self.policy.structures.get(&n))
                    .map_or(0, |s| s.size);
                self.grant(place, base, size, clause.rights)
            }
            Extent::Elements(count) => {
                let count = match count {
                    Count::Number(n) => *n,
                    Count::Place(of) => self.value(of)?,
                };
                let Some((base, element, most)) = self.target(place, &here)? else {
                    return Ok(());
                };
                if count > most {
                    let place = self.shown(place);
                    return Err(EvaluationError::Many { place, count, most });
                }
                self.grant(place, base, count.saturating_mul(element), clause.rights)
            }
            Extent::Text => {
                let Some((base, _, most)) = self.target(place, &here)? else {
                    return Ok(());
                };
                let len = self.text(place, base, most)?;
                self.grant(place, base, len, clause.rights)
            }
        }
    }

    /// Where elements are, the bytes of each, and how many there can be.
    fn target(&mut self, place: &Place, here: &Here) -> Result<Option<(u64, u64, u64)>, EvaluationError> {
        match &here.field {
            None => Ok(Some((here.address, 1, u64::MAX))),
            Some(Field {
                kind: Kind::Pointer { size, .. },
                ..
            }) => {
                let pointer = self.follow(place, here.address, true)?;
                Ok(pointer.map(|p| (p, (*size).max(1), u64::MAX)))
            }
            Some(f) => Ok(Some((here.address, f.element, f.size / f.element.max(1)))),
        }
    }

    /// A number by which elements are counted. The host reads it: that gives no rights.
    fn value(&mut self, place: &Place) -> Result<u64, EvaluationError> {
        match self.walk(place, false)? {
            None => Ok(0),
            Some(Here { address, field: None }) => Ok(address),
            Some(Here {
                address,
                field: Some(f),
            }) => self.load(place, address, f.size),
        }
    }

    /// Bytes of a string with its zero.
    fn text(&self, place: &Place, base: u64, most: u64) -> Result<u64, EvaluationError> {
        let start = self.offset(place, base)?;
        let object = self
            .memory
            .object(start)
            .map_or(0, |o| o.end.saturating_sub(start));
        let most = most.min(object).min(LONGEST_TEXT);
        let mut bytes = [0; 64];
        let mut len = 0;
        while len < most {
            let part = &mut bytes[..(most - len).min(64) as usize];
            if !self.memory.read(start + len, part) {
                break;
            }
            match part.iter().position(|&b| b == 0) {
                Some(at) => return Ok(len + at as u64 + 1),
                None => len += part.len() as u64,
            }
        }
        Err(EvaluationError::Endless {
            place: self.shown(place),
        })
    }
}

/// The structure that a field is, or points to.
pub(crate) fn within(field: &Field) -> Option<String> {
    match &field.kind {
        Kind::Structure(name) => Some(name.clone()),
        Kind::Pointer { structure, .. } => structure.clone(),
        Kind::Plain => None,
    }
}
