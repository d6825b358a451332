//! Values and types that are known at run time only.

use std::fmt;

use ringfence::dynamic::{Argument, Element, Results, Type};
use ringfence_text::{Export, Import, Kind};

/// The type of a function, as a text has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prototype {
    /// What it is called with.
    pub params: Vec<Kind>,
    /// What it returns.
    pub result: Kind,
    /// Whether any number of further arguments may follow; only of declarations.
    pub variadic: bool,
}

/// An argument, or a result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// Nothing; a result only.
    Void,
    /// An integer with a sign.
    Int(i64),
    /// An integer without.
    Unsigned(u64),
    /// A floating-point number; a `float` is rounded from it.
    Float(f64),
    /// An address in the runtime's memory.
    Pointer(u64),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Void => Ok(()),
            Value::Int(n) => n.fmt(f),
            Value::Unsigned(n) => n.fmt(f),
            Value::Float(x) => x.fmt(f),
            Value::Pointer(p) => write!(f, "{p:#x}"),
        }
    }
}

/// A type as C has it.
pub(crate) fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Void => "void",
        Kind::Bool => "_Bool",
        Kind::Int(1, true) => "signed char",
        Kind::Int(1, false) => "unsigned char",
        Kind::Int(2, true) => "short",
        Kind::Int(2, false) => "unsigned short",
        Kind::Int(4, true) => "int",
        Kind::Int(4, false) => "unsigned",
        Kind::Int(_, true) => "long",
        Kind::Int(_, false) => "unsigned long",
        Kind::Float(4) => "float",
        Kind::Float(8) => "double",
        Kind::Float(_) => "long double",
        Kind::Pointer => "void *",
        Kind::Record => "struct",
    }
}

fn kind(element: Element) -> Kind {
    match element {
        Element::I8 => Kind::Int(1, true),
        Element::U8 => Kind::Int(1, false),
        Element::I16 => Kind::Int(2, true),
        Element::U16 => Kind::Int(2, false),
        Element::I32 => Kind::Int(4, true),
        Element::U32 => Kind::Int(4, false),
        Element::Word => Kind::Int(8, true),
        Element::F32 => Kind::Float(4),
        Element::F64 => Kind::Float(8),
    }
}

/// Whether the host's idea of a type and a text's are the same. The host's 64 bits may be a pointer, or have a sign or not; smaller
/// integers have to agree in width only, since a gate passes the bits.
fn agrees(host: Kind, text: Kind) -> bool {
    match (host, text) {
        (Kind::Int(8, _), Kind::Pointer) | (Kind::Int(1, _), Kind::Bool) => true,
        (Kind::Int(a, _), Kind::Int(b, _)) => a == b,
        (a, b) => a == b,
    }
}

impl Prototype {
    pub(crate) fn of_export(export: &Export) -> Self {
        Prototype {
            params: export.params.clone(),
            result: export.result,
            variadic: false,
        }
    }

    pub(crate) fn of_import(import: &Import) -> Self {
        Prototype {
            params: import.params.clone(),
            result: import.result,
            variadic: import.variadic,
        }
    }

    /// That of a Rust function.
    pub(crate) fn of_host(host: &Type) -> Self {
        Prototype {
            params: host.arguments.iter().map(|&e| kind(e)).collect(),
            result: host.result.map_or(Kind::Void, kind),
            variadic: false,
        }
    }

    /// Whether a text may use this function of the host's as `text`.
    pub(crate) fn serves(&self, text: &Prototype) -> bool {
        !text.variadic
            && agrees(self.result, text.result)
            && self.params.len() == text.params.len()
            && self.params.iter().zip(&text.params).all(|(&a, &b)| agrees(a, b))
    }

    /// The declaration of a function of this type, as a text has it.
    #[must_use]
    pub fn declaration(&self, name: &str) -> String {
        let params: Vec<&str> = self.params.iter().map(|&k| self::name(k)).collect();
        let more = match (self.variadic, params.is_empty()) {
            (true, _) => ", ...",
            (false, true) => "void",
            (false, false) => "",
        };
        let space = if name.is_empty() { "" } else { " " };
        format!(
            "{}{space}{name}({}{more})",
            self::name(self.result),
            params.join(", ")
        )
    }

    /// Whether structures are among it, which only texts pass to each other.
    #[must_use]
    pub fn has_records(&self) -> bool {
        self.has(Kind::Record)
    }

    /// Whether it passes a `long double`, which no register of a gate holds: texts do, and C by a function pointer.
    #[must_use]
    pub fn has_long_doubles(&self) -> bool {
        self.has(Kind::Float(16))
    }

    fn has(&self, kind: Kind) -> bool {
        self.result == kind || self.params.contains(&kind)
    }
}

impl fmt::Display for Prototype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.declaration(""))
    }
}

/// What an argument of this type may be, for a person.
pub(crate) fn range(kind: Kind) -> String {
    match kind {
        Kind::Bool => "_Bool: 0 or 1".into(),
        Kind::Int(size @ 1..8, true) => {
            let most = 1_i64 << (8 * u32::from(size) - 1);
            format!("{}: an integer from {} to {}", name(kind), -most, most - 1)
        }
        Kind::Int(size @ 1..8, false) => {
            format!(
                "{}: an integer from 0 to {}",
                name(kind),
                (1_u64 << (8 * u32::from(size))) - 1
            )
        }
        Kind::Int(_, true) => "long: an integer of 64 bits".into(),
        Kind::Int(_, false) => "unsigned long: an integer of 64 bits without a sign".into(),
        Kind::Float(4 | 8) => format!("{}: a number", name(kind)),
        Kind::Pointer => "an address in the runtime's memory".into(),
        Kind::Float(_) | Kind::Record | Kind::Void => "passed by another function only".into(),
    }
}

/// The value as it is passed; `None` if it is none of this type.
pub(crate) fn argument(kind: Kind, value: Value) -> Option<Argument> {
    let number = match value {
        Value::Int(n) => i128::from(n),
        Value::Unsigned(n) | Value::Pointer(n) => i128::from(n),
        Value::Float(x) => {
            return match kind {
                Kind::Float(4) => Some(Argument::Float(u64::from((x as f32).to_bits()))),
                Kind::Float(8) => Some(Argument::Float(x.to_bits())),
                _ => None,
            };
        }
        Value::Void => return None,
    };
    match kind {
        Kind::Bool => matches!(number, 0 | 1).then_some(Argument::Int(number as u64)),
        Kind::Int(size, signed) if !matches!(value, Value::Pointer(_)) => {
            let bits = 8 * u32::from(size);
            let (least, most) = match signed {
                true => (-(1_i128 << (bits - 1)), (1 << (bits - 1)) - 1),
                false => (0, (1 << bits) - 1),
            };
            (least..=most)
                .contains(&number)
                .then_some(Argument::Int(number as u64))
        }
        Kind::Pointer => u64::try_from(number).ok().map(Argument::Int),
        Kind::Float(_) if !matches!(value, Value::Pointer(_)) => argument(kind, Value::Float(number as f64)),
        _ => None,
    }
}

/// What a call has left in the registers.
pub(crate) fn result(kind: Kind, results: Results) -> Value {
    let bits = results.int;
    match kind {
        Kind::Void | Kind::Record => Value::Void,
        Kind::Bool => Value::Unsigned(bits & 0xFF),
        Kind::Int(1, true) => Value::Int(i64::from(bits as i8)),
        Kind::Int(2, true) => Value::Int(i64::from(bits as i16)),
        Kind::Int(4, true) => Value::Int(i64::from(bits as i32)),
        Kind::Int(_, true) => Value::Int(bits as i64),
        Kind::Int(size @ 1..8, false) => Value::Unsigned(bits & ((1 << (8 * u32::from(size))) - 1)),
        Kind::Int(_, false) => Value::Unsigned(bits),
        Kind::Float(4) => Value::Float(f64::from(f32::from_bits(results.float as u32))),
        Kind::Float(_) => Value::Float(f64::from_bits(results.float)),
        Kind::Pointer => Value::Pointer(bits),
    }
}
