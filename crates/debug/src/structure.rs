//! A C structure's layout, from a module's debug information.

use crate::bytes::{Cursor, Stop};
use crate::prototype::{DEEPEST, Entry, Reader, encoding, in_units};
use crate::unit::{Value, tag};
use ringfence_core::work::{Budget, Exceeded};

/// Most dimensions of an array.
const DIMENSIONS: usize = 8;

/// A structure or union.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Structure {
    /// Its name, without `struct`.
    pub name: String,
    /// Its bytes.
    pub size: u64,
    /// What is in it and has a name, in the order of its declaration.
    pub fields: Vec<Field>,
}

/// A member of a structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Bytes from the structure's start.
    pub offset: u64,
    /// Its bytes; 0 for an array without a length at the end.
    pub size: u64,
    /// Bytes of an element, if it is an array; else the same as `size`.
    pub element: u64,
    /// What it, or each element, is.
    pub kind: Kind,
}

/// What a field is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number, or what nobody here takes apart.
    Plain,
    /// A structure of that name; empty if it has none.
    Structure(String),
    /// A pointer to something of so many bytes (0 if that is not told), which may be a structure of that name, or text.
    Pointer {
        /// Bytes of what it points to.
        size: u64,
        /// The structure's name.
        structure: Option<String>,
        /// Whether it points to characters.
        text: bool,
    },
}

/// The structure or union of that name in the module `file`, by its tag or by a `typedef`; `None` if its debug information does not tell.
/// Members of nameless structures within it are not told.
///
/// # Errors
/// The budget does not suffice.
///
/// ```
/// use ringfence_core::work::Budget;
/// let none = ringfence_debug::structure::of(b"not a module", "request", &mut Budget::new(1000, 1000));
/// assert_eq!(none, Ok(None));
/// ```
pub fn of(file: &[u8], name: &str, budget: &mut Budget) -> Result<Option<Structure>, Exceeded> {
    match in_units(file, budget, |reader, c| find(reader, c, name)) {
        Ok(found) => Ok(found),
        Err(Stop::Malformed) => Ok(None),
        Err(Stop::Exceeded(e)) => Err(e),
    }
}

fn find<'a>(reader: &mut Reader<'a, '_>, mut c: Cursor<'a>, name: &str) -> Result<Option<Structure>, Stop> {
    let mut level = 1_usize;
    while level > 0 && !c.done() {
        let Some(entry) = reader.next(&mut c)? else {
            level -= 1;
            continue;
        };
        let record = matches!(entry.tag, tag::STRUCTURE | tag::UNION | tag::CLASS);
        if level == 1 && (record || entry.tag == tag::TYPEDEF) && is(reader, &entry, name) {
            if record && !entry.declaration {
                return members(reader, &entry, c, name).map(Some);
            }
            if entry.tag == tag::TYPEDEF
                && let Some((target, inner)) = target(reader, entry.kind)?
                && matches!(target.tag, tag::STRUCTURE | tag::UNION | tag::CLASS)
                && !target.declaration
            {
                return members(reader, &target, inner, name).map(Some);
            }
        }
        if entry.children && !reader.skip(&entry, &mut c) {
            level += 1;
        }
    }
    Ok(None)
}

fn is(reader: &Reader<'_, '_>, entry: &Entry<'_>, name: &str) -> bool {
    matches!(entry.name, Some(Value::Text(text)) if text.is(name.as_bytes(), reader.sections, &reader.unit))
}

fn name(reader: &mut Reader<'_, '_>, entry: &Entry<'_>) -> Result<String, Stop> {
    let text = entry.name.and_then(|v| reader.unit.text(v)).unwrap_or_default();
    reader.budget.steps(1 + text.len() as u64 / 32)?;
    Ok(String::from_utf8_lossy(text).into_owned())
}

/// What an entry's type is without typedefs and qualifiers, and where its children begin.
fn target<'a>(
    reader: &mut Reader<'a, '_>,
    kind: Option<Value<'a>>,
) -> Result<Option<(Entry<'a>, Cursor<'a>)>, Stop> {
    let mut at = reader.follow(kind)?;
    for _ in 0..DEEPEST {
        match at {
            Some((e, _))
                if matches!(
                    e.tag,
                    tag::TYPEDEF | tag::CONST | tag::VOLATILE | tag::RESTRICT | tag::ATOMIC
                ) =>
            {
                at = reader.follow(e.kind)?;
            }
            found => return Ok(found),
        }
    }
    Ok(None)
}

fn members<'a>(
    reader: &mut Reader<'a, '_>,
    entry: &Entry<'a>,
    mut c: Cursor<'a>,
    title: &str,
) -> Result<Structure, Stop> {
    let mut fields = reader.budget.vec(0)?;
    let mut level = usize::from(entry.children);
    while level > 0 {
        let Some(inner) = reader.next(&mut c)? else {
            level -= 1;
            continue;
        };
        if level == 1 && inner.tag == tag::MEMBER && inner.name.is_some() {
            let field = field(reader, &inner)?;
            reader.budget.push(&mut fields, field)?;
        }
        if inner.children && !reader.skip(&inner, &mut c) {
            level += 1;
        }
    }
    Ok(Structure {
        name: title.into(),
        size: entry.size.unwrap_or(0),
        fields,
    })
}

fn field<'a>(reader: &mut Reader<'a, '_>, member: &Entry<'a>) -> Result<Field, Stop> {
    let offset = member.place.or(member.bit.map(|b| b / 8)).unwrap_or(0);
    let mut made = Field {
        name: name(reader, member)?,
        offset,
        size: 0,
        element: 0,
        kind: Kind::Plain,
    };
    let Some((mut kind, inner)) = target(reader, member.kind)? else {
        return Ok(made);
    };
    let mut count = None;
    if kind.tag == tag::ARRAY {
        count = Some(elements(reader, inner)?);
        match target(reader, kind.kind)? {
            Some((element, _)) => kind = element,
            None => return Ok(made),
        }
    }
    made.element = kind.size.unwrap_or(if kind.tag == tag::POINTER { 8 } else { 0 });
    made.size = made.element.saturating_mul(count.unwrap_or(1));
    made.kind = match kind.tag {
        tag::STRUCTURE | tag::UNION | tag::CLASS => Kind::Structure(name(reader, &kind)?),
        tag::POINTER => match target(reader, kind.kind)? {
            Some((to, _)) => Kind::Pointer {
                size: to.size.unwrap_or(0),
                structure: match to.tag {
                    tag::STRUCTURE | tag::UNION | tag::CLASS => Some(name(reader, &to)?),
                    _ => None,
                },
                text: (to.size, to.encoding) == (Some(1), encoding::SIGNED_CHAR),
            },
            None => Kind::Pointer {
                size: 0,
                structure: None,
                text: false,
            },
        },
        _ => Kind::Plain,
    };
    Ok(made)
}

/// How many elements an array has, in all its dimensions.
fn elements<'a>(reader: &mut Reader<'a, '_>, mut c: Cursor<'a>) -> Result<u64, Stop> {
    let mut count = None;
    for _ in 0..DIMENSIONS {
        match reader.next(&mut c)? {
            Some(e) if e.tag == tag::SUBRANGE => {
                count = Some(count.unwrap_or(1_u64).saturating_mul(e.count.unwrap_or(0)));
            }
            _ => break,
        }
    }
    Ok(count.unwrap_or(0))
}
