//! Policies as text, as they are read.

use super::{Clause, Copied, Count, Extent, Field, Function, Kind, ParameterKind, Place, Structure};
use ringfence_core::Rights;
use std::fmt::Write;

/// A place, as it stands in a clause.
pub(crate) fn place(function: &Function, place: &Place) -> String {
    let mut text = String::from(if place.extent == Extent::Target { "*" } else { "" });
    text.push_str(&function.parameters[place.parameter].name);
    for step in &place.steps {
        text.push_str(if step.follows { "->" } else { "." });
        text.push_str(&step.field);
    }
    // Into a String.
    let _ = match &place.extent {
        Extent::Elements(Count::Number(n)) => write!(text, "[{n}]"),
        Extent::Elements(Count::Place(of)) => write!(text, "[{}]", self::place(function, of)),
        Extent::Text => write!(text, " as string"),
        Extent::Field | Extent::Target => Ok(()),
    };
    text
}

/// A clause.
pub(crate) fn clause(function: &Function, clause: &Clause) -> String {
    let verb = if clause.rights == Rights::Write {
        "writes"
    } else {
        "reads"
    };
    format!("{verb} {}", place(function, &clause.place))
}

/// A structure's declaration.
pub(crate) fn structure(name: &str, structure: &Structure) -> String {
    let kind = |f: &Field| match &f.kind {
        Kind::Structure(name) if !name.is_empty() && f.size == f.element => {
            format!("struct {name} {}", f.size)
        }
        Kind::Pointer { text: true, .. } if f.size == f.element => "char*".into(),
        Kind::Pointer {
            structure: Some(name),
            ..
        } if f.size == f.element => format!("struct {name}*"),
        Kind::Pointer { size: 0, .. } if f.size == f.element => "void*".into(),
        Kind::Pointer { size, .. } if f.size == f.element => format!("{size}*"),
        _ if f.element > 0 && f.size != f.element => format!("{}[{}]", f.element, f.size / f.element),
        _ => f.size.to_string(),
    };
    let field = |f: &Field| format!("{} @{} {}", f.name, f.offset, kind(f));
    let fields: Vec<String> = structure
        .fields
        .iter()
        .filter(|f| f.size > 0)
        .map(field)
        .collect();
    format!("struct {name} {} {{ {} }}", structure.size, fields.join("; "))
}

/// A function's name with its parameters.
pub(crate) fn head(name: &str, function: &Function) -> String {
    let kind = |kind: &ParameterKind| match kind {
        ParameterKind::Number => "number".into(),
        ParameterKind::Bytes => "bytes".into(),
        ParameterKind::Text => "text".into(),
        ParameterKind::Structure(name) => format!("struct {name}"),
    };
    let parameters = function.parameters.iter().map(|p| match &p.copied {
        None => format!("{}: {}", p.name, kind(&p.kind)),
        Some(_) if matches!(p.kind, ParameterKind::Structure(_)) => {
            format!("{}: copied {}", p.name, kind(&p.kind))
        }
        Some(Copied::Bytes(n)) => format!("{}: copied bytes[{n}]", p.name),
        Some(Copied::Argument(of)) => {
            format!("{}: copied bytes[{}]", p.name, function.parameters[*of].name)
        }
    });
    format!("{name}({})", parameters.collect::<Vec<_>>().join(", "))
}

/// A function's line.
pub(crate) fn line(name: &str, function: &Function) -> String {
    let mut parts: Vec<String> = function.clauses.iter().map(|c| clause(function, c)).collect();
    let kept = function
        .clauses
        .iter()
        .filter(|c| c.kept)
        .map(|c| format!("keeps {}", place(function, &c.place)));
    parts.extend(kept);
    if !function.clauses.iter().any(|c| c.kept) {
        parts.push("keeps nothing".into());
    }
    format!("{} {}", head(name, function), parts.join("; "))
}
