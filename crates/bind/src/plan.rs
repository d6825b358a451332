//! What becomes of each parameter, result and field: from the types, and from the notes.

use std::collections::BTreeMap;

use crate::Error;
use crate::notes::{Notes, Word};
use crate::scan::Scanned;
use crate::types::{Function, Id, Record, Type, Types};

/// How a pointer, or a number, goes from one side to the other.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Pass {
    /// A number as it is.
    Value,
    /// An address of the domain's as it is: handles, and memory there.
    Address,
    /// This expression, whatever the program says.
    Fixed(String),
    /// A text, for the call.
    Text,
    /// So many elements, for the call.
    In(String),
    Out(String),
    InOut(String),
    /// So many elements (`None`: a text), until an owner ends.
    Kept(Option<String>, String),
    /// Rows: how many, and bytes of each.
    Rows {
        count: String,
        bytes: String,
        out: bool,
    },
    /// A place for a pointer that comes back.
    Place(Give),
    /// A place for a pointer into the data of another parameter.
    Within(usize),
    /// What the library gives back and does not look into.
    User,
    /// A host function of a type.
    Hook(usize),
    /// A struct that both sides have their own of.
    Twin {
        record: usize,
        read: bool,
    },
    /// To a host function: an array of texts, `None` for one that ends with NULL.
    Texts(Option<String>),
}

/// What a pointer that comes from the domain becomes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Give {
    Nothing,
    Value,
    Address,
    User,
    Twin,
    /// A copy of so many bytes (`None`: of a text), until an owner ends.
    Copy(Option<String>, Option<String>),
}

/// A parameter.
#[derive(Clone, Debug)]
pub(crate) struct Parameter {
    pub name: String,
    pub to: Id,
    pub pass: Pass,
}

/// A function of the library.
#[derive(Debug)]
pub(crate) struct Bound {
    pub name: String,
    pub result: Id,
    pub parameters: Vec<Parameter>,
    pub give: Give,
    /// What the call returns if it failed.
    pub fails: Option<String>,
    /// Whose copies a call ends, and whether all that is theirs.
    pub ends: Vec<(String, bool)>,
}

/// A type of host functions.
#[derive(Debug)]
pub(crate) struct Hook {
    pub name: String,
    /// The function pointer's type.
    pub to: Id,
    pub result: Id,
    pub parameters: Vec<Parameter>,
    /// Why it cannot be called, if so.
    pub refused: Option<String>,
    pub loans: usize,
}

/// A struct with twins.
#[derive(Debug)]
pub(crate) struct Twin {
    pub name: String,
    pub to: Id,
    pub fields: Vec<(String, TwinField)>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum TwinField {
    Twin(usize),
    Hook(usize),
    Text,
}

/// All of a library.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub functions: Vec<Bound>,
    /// Functions that are not bound, and why.
    pub refused: Vec<(String, String)>,
    pub hooks: Vec<Hook>,
    pub twins: Vec<Twin>,
}

/// Host functions of a type that a domain may have: given to functions, and in structs.
const SLOTS: usize = 16;
const FIELD_SLOTS: usize = 4;

struct Planner<'a> {
    types: &'a Types,
    notes: &'a Notes,
    plan: Plan,
    hook_numbers: BTreeMap<String, usize>,
    twin_numbers: BTreeMap<String, usize>,
}

/// Decides about every function that was scanned.
pub(crate) fn plan(scanned: &Scanned, types: &Types, notes: &Notes) -> Result<Plan, Error> {
    let mut planner = Planner {
        types,
        notes,
        plan: Plan::default(),
        hook_numbers: BTreeMap::new(),
        twin_numbers: BTreeMap::new(),
    };
    for declared in &scanned.functions {
        let Some(function) = types.functions.get(&declared.name) else {
            continue;
        };
        let names = (0..function.parameters.len()).map(|i| {
            let name = declared.parameters.get(i).cloned().flatten();
            name.unwrap_or_else(|| format!("a{i}"))
        });
        match planner.function(&declared.name, function, names.collect())? {
            Ok(bound) => planner.plan.functions.push(bound),
            Err(why) => planner.plan.refused.push((declared.name.clone(), why)),
        }
    }
    notes.check()?;
    Ok(planner.plan)
}

fn word<'a>(words: &'a [Word], name: &str) -> Option<&'a str> {
    words.iter().find(|w| w.name == name).map(|w| w.inside.as_str())
}

impl Planner<'_> {
    fn function(
        &mut self,
        name: &str,
        function: &Function,
        names: Vec<String>,
    ) -> Result<Result<Bound, String>, Error> {
        let own = self.notes.of(name);
        if let Some(why) = word(own, "refuse") {
            return Ok(Err(why.to_owned()));
        }
        if function.variadic {
            return Ok(Err(
                "takes variable arguments, which no gate passes: call a function with a fixed list".into(),
            ));
        }
        let types = self.types;
        for &to in function.parameters.iter().chain([&function.result]) {
            if let Some(why) = self.impossible(to) {
                return Ok(Err(why));
            }
        }
        if self.is_hook(function.result) {
            return Ok(Err(
                "returns a pointer to a function, which runs in the domain only".into(),
            ));
        }
        let hooked = function.parameters.iter().any(|&p| self.is_hook(p));
        let mut parameters = Vec::new();
        for (i, &to) in function.parameters.iter().enumerate() {
            let target = format!("{name}.{}", names[i]);
            let words = self.notes.of(&target).to_vec();
            let pass = match words.first() {
                Some(first) => self.noted(&target, to, first, &words, &names)?,
                None => match types.bare(to) {
                    Type::Pointer(inner) if matches!(types.bare(*inner), Type::Void) && hooked => Pass::User,
                    _ => self.usual(&target, to)?,
                },
            };
            if let Pass::Hook(hook) = pass
                && let Some(why) = &self.plan.hooks[hook].refused
            {
                return Ok(Err(format!("its parameter {} {why}", names[i])));
            }
            parameters.push(Parameter {
                name: names[i].clone(),
                to,
                pass,
            });
        }
        let target = format!("{name}.return");
        let give = self.give(&target, function.result)?;
        let mut ends = Vec::new();
        for w in own {
            match w.name.as_str() {
                "ends" | "renews" if names.contains(&w.inside) => {
                    ends.push((w.inside.clone(), w.name == "renews"))
                }
                "ends" | "renews" => {
                    return Err(self
                        .notes
                        .wrong(name, &format!("there is no parameter {}", w.inside)));
                }
                "fails" => {}
                other => {
                    return Err(self.notes.wrong(
                        name,
                        &format!("{other}: of a function, ends(…), renews(…), fails(…), refuse(…)"),
                    ));
                }
            }
        }
        Ok(Ok(Bound {
            name: name.to_owned(),
            result: function.result,
            parameters,
            give,
            fails: word(own, "fails").map(str::to_owned),
            ends,
        }))
    }

    /// Why a type cannot pass at all.
    fn impossible(&self, to: Id) -> Option<String> {
        let types = self.types;
        match types.bare(to) {
            Type::Record(r) => {
                let kind = if r.union { "union" } else { "struct" };
                let name = types.name(to).unwrap_or(kind);
                Some(format!("passes {name} by value, which calls in C do not: a function that takes a pointer, or the binding in C++"))
            }
            Type::Unknown(what) => Some(format!("has a parameter or result of type {what}, which passes no gate")),
            Type::Pointer(inner) => match types.bare(*inner) {
                Type::Record(_) if types.is_named(*inner, "FILE") || types.is_named(*inner, "_IO_FILE") => Some(
                    "takes a FILE *, which is the C library's own on each side: read the file into memory, \
                     or let the domain open it by its name under a policy"
                        .into(),
                ),
                Type::Record(_) if types.is_named(*inner, "__va_list_tag") => {
                    Some("takes a va_list, whose arguments lie on the host's stack: format the text first".into())
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn is_hook(&self, to: Id) -> bool {
        let inner = self.types.target(to);
        inner.is_some_and(|inner| matches!(self.types.bare(inner), Type::Function(_)))
    }

    fn is_text(&self, inner: Id) -> bool {
        matches!(self.types.bare(inner), Type::Integer { name, bytes: 1, .. } if name == "char")
    }

    /// What a pointer to a number, or to bytes, is without a note.
    fn usual_number(&self, inner: Id) -> Pass {
        match (self.types.bare(inner), self.types.constant(inner)) {
            (Type::Integer { bytes: 1, name, .. }, constant) if name != "_Bool" => {
                match self.is_text(inner) && constant {
                    true => Pass::Text,
                    false => Pass::Address,
                }
            }
            (_, true) => Pass::In("1".into()),
            (_, false) => Pass::InOut("1".into()),
        }
    }

    /// What a parameter is without a note.
    fn usual(&mut self, target: &str, to: Id) -> Result<Pass, Error> {
        let types = self.types;
        let Some(inner) = types.target(to) else {
            return Ok(Pass::Value);
        };
        let constant = types.constant(inner);
        Ok(match types.bare(inner) {
            Type::Function(_) => Pass::Hook(self.hook(target, to, SLOTS)?),
            Type::Integer { .. } | Type::Float { .. } | Type::Enumeration { .. } => self.usual_number(inner),
            Type::Pointer(last) if !constant => match self.is_text(*last) {
                true => Pass::Place(Give::Copy(None, None)),
                false => Pass::Place(Give::Address),
            },
            Type::Record(Record { size: Some(_), .. }) => Pass::Twin {
                record: self.twin(inner)?,
                read: true,
            },
            _ => Pass::Address,
        })
    }

    fn noted(
        &mut self,
        target: &str,
        to: Id,
        first: &Word,
        words: &[Word],
        names: &[String],
    ) -> Result<Pass, Error> {
        let inside = first.inside.clone();
        let owner = || word(words, "for").map(str::to_owned);
        let inner = self.types.target(to);
        let needs = |what: &str| self.notes.wrong(target, &format!("{} needs {what}", first.name));
        Ok(match first.name.as_str() {
            "value" if !inside.is_empty() => Pass::Fixed(inside),
            "address" => Pass::Address,
            "user" => Pass::User,
            "in" | "out" | "inout" if inside.is_empty() => return Err(needs("a count in brackets")),
            "in" => Pass::In(inside),
            "out" => Pass::Out(inside),
            "inout" => Pass::InOut(inside),
            "kept" => {
                let owner = owner().ok_or_else(|| needs("an owner: for(PARAMETER)"))?;
                Pass::Kept((!inside.is_empty()).then_some(inside), owner)
            }
            "rows" | "rows_in" => {
                let (count, bytes) =
                    split(&inside).ok_or_else(|| needs("two expressions: rows(COUNT, BYTES)"))?;
                Pass::Rows {
                    count,
                    bytes,
                    out: first.name == "rows",
                }
            }
            "text" => match inner.map(|i| self.types.bare(i)) {
                Some(Type::Pointer(_)) => Pass::Place(Give::Copy(None, owner())),
                _ => Pass::Text,
            },
            "texts" => Pass::Texts((!inside.is_empty()).then_some(inside)),
            "place" => Pass::Place(Give::Address),
            "within" => match names.iter().position(|n| *n == inside) {
                Some(other) => Pass::Within(other),
                None => return Err(needs("a parameter's name in brackets")),
            },
            "twin" => {
                let inner = inner.ok_or_else(|| needs("a pointer to a struct"))?;
                Pass::Twin {
                    record: self.twin(inner)?,
                    read: inside != "out",
                }
            }
            other => {
                return Err(self.notes.wrong(
                    target,
                    &format!(
                        "{other}: of a parameter, value(…), address, user, in(…), out(…), inout(…), kept(…) for(…), rows(…), text, \
                         texts(…), place, within(…), twin"
                    ),
                ));
            }
        })
    }

    fn give(&mut self, target: &str, to: Id) -> Result<Give, Error> {
        let types = self.types;
        let words = self.notes.of(target);
        let owner = word(words, "for").map(str::to_owned);
        if let Some(first) = words.first() {
            return Ok(match first.name.as_str() {
                "text" => Give::Copy(None, owner),
                "copy" => Give::Copy(Some(first.inside.clone()), owner),
                "user" => Give::User,
                "address" => Give::Address,
                other => {
                    let why = format!("{other}: of a result, text, copy(…), user or address, and for(…)");
                    return Err(self.notes.wrong(target, &why));
                }
            });
        }
        Ok(match types.bare(to) {
            Type::Void => Give::Nothing,
            Type::Pointer(inner) => match types.bare(*inner) {
                _ if self.is_text(*inner) => Give::Copy(None, None),
                Type::Record(Record { size: Some(_), .. }) => Give::Twin,
                _ => Give::Address,
            },
            _ => Give::Value,
        })
    }

    fn hook(&mut self, target: &str, to: Id, loans: usize) -> Result<usize, Error> {
        let types = self.types;
        let name = match types.get(to) {
            Type::Typedef(name, _) => name.clone(),
            _ => target.to_owned(),
        };
        if let Some(&number) = self.hook_numbers.get(&name) {
            return Ok(number);
        }
        let number = self.plan.hooks.len();
        self.hook_numbers.insert(name.clone(), number);
        let Some(Type::Function(function)) = types.target(to).map(|t| types.bare(t).clone()) else {
            return Err(self.notes.wrong(target, "is no pointer to a function"));
        };
        let mut hook = Hook {
            name: name.clone(),
            to,
            result: function.result,
            parameters: Vec::new(),
            refused: None,
            loans,
        };
        if function.variadic {
            hook.refused = Some("takes variable arguments".into());
        }
        self.plan.hooks.push(hook);
        let names: Vec<String> = (0..function.parameters.len()).map(|i| format!("a{i}")).collect();
        let (mut parameters, mut user) = (Vec::new(), false);
        for (i, &to) in function.parameters.iter().chain([&function.result]).enumerate() {
            if let Some(why) = self.impossible(to).or_else(|| {
                let pointer = self.is_hook(to);
                pointer.then(|| "takes or returns a pointer to a function".to_owned())
            }) {
                self.plan.hooks[number].refused.get_or_insert(why);
            }
            if i == function.parameters.len() {
                break;
            }
            let target = format!("{name}.a{i}");
            let words = self.notes.of(&target).to_vec();
            let pass = match words.first() {
                Some(first) => self.noted(&target, to, first, &words, &names)?,
                None => self.usual_for_host(to, &mut user)?,
            };
            parameters.push(Parameter {
                name: names[i].clone(),
                to,
                pass,
            });
        }
        self.plan.hooks[number].parameters = parameters;
        Ok(number)
    }

    /// What a host function's argument is without a note.
    fn usual_for_host(&mut self, to: Id, user: &mut bool) -> Result<Pass, Error> {
        let types = self.types;
        let Some(inner) = types.target(to) else {
            return Ok(Pass::Value);
        };
        let constant = types.constant(inner);
        Ok(match types.bare(inner) {
            Type::Void if !*user && !constant => {
                *user = true;
                Pass::User
            }
            Type::Integer { .. } | Type::Float { .. } | Type::Enumeration { .. } => self.usual_number(inner),
            Type::Record(Record { size: Some(_), .. }) => Pass::Twin {
                record: self.twin(inner)?,
                read: true,
            },
            _ => Pass::Address,
        })
    }

    fn twin(&mut self, to: Id) -> Result<usize, Error> {
        let types = self.types;
        let name = types.name(to).unwrap_or("unnamed").to_owned();
        if let Some(&number) = self.twin_numbers.get(&name) {
            return Ok(number);
        }
        let number = self.plan.twins.len();
        self.twin_numbers.insert(name.clone(), number);
        self.plan.twins.push(Twin {
            name: name.clone(),
            to,
            fields: Vec::new(),
        });
        let Type::Record(record) = types.bare(to).clone() else {
            return Ok(number);
        };
        let mut fields = Vec::new();
        for field in &record.fields {
            let Some(own) = field.name.clone().filter(|_| !record.union) else {
                continue;
            };
            let target = format!("{name}.{own}");
            let kind = match (self.notes.of(&target).first(), types.target(field.to)) {
                (Some(w), Some(inner)) if w.name == "twin" => TwinField::Twin(self.twin(inner)?),
                (Some(w), Some(_)) if w.name == "text" => TwinField::Text,
                (Some(w), _) => {
                    let why = format!("{}: of a field, twin or text", w.name);
                    return Err(self.notes.wrong(&target, &why));
                }
                (None, Some(_))
                    if self.is_hook(field.to) && matches!(types.bare(field.to), Type::Pointer(_)) =>
                {
                    TwinField::Hook(self.hook(&target, field.to, FIELD_SLOTS)?)
                }
                (None, _) => continue,
            };
            fields.push((own, kind));
        }
        self.plan.twins[number].fields = fields;
        Ok(number)
    }
}

/// `COUNT, BYTES`
fn split(text: &str) -> Option<(String, String)> {
    let mut depth = 0i32;
    let at = text.char_indices().find(|(_, c)| {
        depth += match c {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        *c == ',' && depth == 0
    });
    let (at, _) = at?;
    Some((text[..at].trim().to_owned(), text[at + 1..].trim().to_owned()))
}
