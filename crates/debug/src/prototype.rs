//! A function's C type, from a module's debug information.

use crate::bytes::{Cursor, Stop};
use crate::sections::Sections;
use crate::unit::{Abbreviations, TEXT, Unit, Value, tag};
use ringfence_core::work::{Budget, Exceeded};

/// How many typedefs and qualifiers are followed: debug information may be made in a circle.
pub(crate) const DEEPEST: usize = 32;

/// A C type, as far as a register tells one from the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CType {
    /// Nothing.
    Void,
    /// A signed integer of so many bits.
    Signed(u8),
    /// An unsigned integer, a truth value, or an enumeration without negative values.
    Unsigned(u8),
    /// `float` or `double`, by its bits.
    Float(u8),
    /// A pointer to characters.
    Text,
    /// Any other pointer.
    Pointer,
    /// What does not go in one register; its name, or what it is.
    Other(String),
}

/// A function's type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prototype {
    /// What it returns.
    pub result: CType,
    /// What it takes.
    pub parameters: Vec<CType>,
    /// Whether it takes more than that.
    pub variadic: bool,
}

/// The type of the global function `name` in the module `file`; `None` if its debug information does not tell. One pass: each entry
/// is read once, and those that a function refers to once for it.
///
/// # Errors
/// The budget does not suffice.
///
/// ```
/// use ringfence_core::work::Budget;
/// let none = ringfence_debug::prototype::of(b"not a module", "f", &mut Budget::new(1000, 1000));
/// assert_eq!(none, Ok(None));
/// ```
pub fn of(file: &[u8], name: &str, budget: &mut Budget) -> Result<Option<Prototype>, Exceeded> {
    match search(file, name.as_bytes(), budget) {
        Ok(found) => Ok(found),
        // What makes no sense tells nothing.
        Err(Stop::Malformed) => Ok(None),
        Err(Stop::Exceeded(e)) => Err(e),
    }
}

fn search(file: &[u8], name: &[u8], budget: &mut Budget) -> Result<Option<Prototype>, Stop> {
    in_units(file, budget, |reader, c| reader.function(c, name))
}

/// The first that is found in any unit: with the unit's reader, and where its entries begin behind its own.
pub(crate) fn in_units<T>(
    file: &[u8],
    budget: &mut Budget,
    mut find: impl for<'a, 'b, 'c> FnMut(&'c mut Reader<'a, 'b>, Cursor<'a>) -> Result<Option<T>, Stop>,
) -> Result<Option<T>, Stop> {
    let sections = Sections::find(file, budget)?;
    let mut abbreviations = Abbreviations::default();
    let mut at = 0;
    while (at as usize) < sections.info.len() {
        budget.step()?;
        let unit = Unit::at(&sections, at)?;
        at = unit.next;
        if !unit.code {
            continue;
        }
        match in_unit(&sections, unit, &mut find, &mut abbreviations, budget) {
            // The next one may be better.
            Ok(None) | Err(Stop::Malformed) => {}
            found => return found,
        }
    }
    Ok(None)
}

fn in_unit<'a, T>(
    sections: &Sections<'a>,
    mut unit: Unit<'a>,
    find: &mut impl for<'x, 'y, 'z> FnMut(&'z mut Reader<'x, 'y>, Cursor<'x>) -> Result<Option<T>, Stop>,
    abbreviations: &mut Abbreviations,
    budget: &mut Budget,
) -> Result<Option<T>, Stop> {
    unit.load(abbreviations, budget)?;
    let mut c = unit.entries()?;
    let Some(root) = unit.entry(&mut c, abbreviations, budget)? else {
        return Ok(None);
    };
    unit.take_bases(&root);
    let mut reader = Reader {
        sections,
        unit,
        abbreviations,
        budget,
    };
    find(&mut reader, c)
}

/// An entry: only what types are made of.
#[derive(Clone, Copy, Default)]
pub(crate) struct Entry<'a> {
    pub tag: u64,
    pub children: bool,
    sibling: Option<Value<'a>>,
    pub name: Option<Value<'a>>,
    linkage: Option<Value<'a>>,
    /// The declaration that it completes, or what it is an instance of.
    declared: Option<Value<'a>>,
    /// Only a declaration itself.
    pub declaration: bool,
    pub kind: Option<Value<'a>>,
    pub size: Option<u64>,
    pub encoding: u64,
    /// Where a member is in its structure: bytes, or bits.
    pub place: Option<u64>,
    pub bit: Option<u64>,
    /// How many elements an array has.
    pub count: Option<u64>,
}

pub(crate) mod encoding {
    pub const BOOLEAN: u64 = 2;
    pub const FLOAT: u64 = 4;
    pub const SIGNED: u64 = 5;
    pub const SIGNED_CHAR: u64 = 6;
    pub const UNSIGNED: u64 = 7;
    pub const UNSIGNED_CHAR: u64 = 8;
    pub const UTF: u64 = 0x10;
}

/// Reads the entries of one unit.
pub(crate) struct Reader<'a, 'b> {
    pub sections: &'b Sections<'a>,
    pub unit: Unit<'a>,
    abbreviations: &'b Abbreviations,
    pub budget: &'b mut Budget,
}

impl<'a> Reader<'a, '_> {
    pub fn next(&mut self, c: &mut Cursor<'a>) -> Result<Option<Entry<'a>>, Stop> {
        let mut entry = Entry::default();
        let number = |value| match value {
            Value::Number(n) => Some(n),
            _ => None,
        };
        let head =
            self.unit.attributes(
                c,
                self.abbreviations,
                self.budget,
                |attribute, value| match attribute {
                    0x01 => entry.sibling = Some(value),
                    0x03 => entry.name = Some(value),
                    0x0B => entry.size = number(value),
                    0x31 | 0x47 => entry.declared = Some(value),
                    0x2F => entry.count = number(value).and_then(|n| n.checked_add(1)),
                    0x37 => entry.count = number(value),
                    0x38 => entry.place = number(value),
                    0x6B => entry.bit = number(value),
                    0x3C => entry.declaration = number(value) != Some(0),
                    0x3E => entry.encoding = number(value).unwrap_or(0),
                    0x49 => entry.kind = Some(value),
                    0x6E | 0x2007 => entry.linkage = Some(value),
                    _ => {}
                },
            )?;
        Ok(head.map(|(tag, children)| Entry {
            tag,
            children,
            ..entry
        }))
    }

    /// The entry of this unit that another one refers to.
    fn referred(&mut self, value: Option<Value<'a>>) -> Result<Option<Entry<'a>>, Stop> {
        Ok(self.follow(value)?.map(|(entry, _)| entry))
    }

    /// The same, and where its children begin.
    pub fn follow(&mut self, value: Option<Value<'a>>) -> Result<Option<(Entry<'a>, Cursor<'a>)>, Stop> {
        let inside = self.unit.first..self.unit.next;
        let Some(at) = value
            .and_then(|v| self.unit.referred(v))
            .filter(|at| inside.contains(at))
        else {
            return Ok(None);
        };
        let mut c = Cursor::new(self.unit.entries()?.bytes, at)?;
        Ok(self.next(&mut c)?.map(|entry| (entry, c)))
    }

    /// Moves behind an entry's children, where it tells where they end. Whether it did.
    pub fn skip(&self, entry: &Entry<'a>, c: &mut Cursor<'a>) -> bool {
        let next = entry.sibling.and_then(|v| self.unit.referred(v));
        let next = next.filter(|&n| n > c.at as u64 && n < self.unit.next);
        if let Some(next) = next {
            c.at = next as usize;
        }
        next.is_some()
    }

    /// The type of the function of that name among the unit's own children.
    fn function(&mut self, mut c: Cursor<'a>, name: &[u8]) -> Result<Option<Prototype>, Stop> {
        let mut level = 1_usize;
        while level > 0 && !c.done() {
            let Some(entry) = self.next(&mut c)? else {
                level -= 1;
                continue;
            };
            if level == 1 && entry.tag == tag::SUBPROGRAM && !entry.declaration {
                let declared = self.referred(entry.declared)?;
                // What nothing declares has no name either.
                if self.named(&entry, name)? || self.named(&declared.unwrap_or_default(), name)? {
                    return self.prototype(&entry, declared, c).map(Some);
                }
            }
            if !entry.children {
                continue;
            }
            if !self.skip(&entry, &mut c) {
                level += 1;
            }
        }
        Ok(None)
    }

    /// Whether the linker knows an entry by this name. With a linkage name, the plain one is not what the symbol table has.
    fn named(&mut self, entry: &Entry<'a>, name: &[u8]) -> Result<bool, Stop> {
        self.budget.steps(1 + name.len() as u64 / TEXT)?;
        let Some(Value::Text(text)) = entry.linkage.or(entry.name) else {
            return Ok(false);
        };
        Ok(text.is(name, self.sections, &self.unit))
    }

    fn prototype(
        &mut self,
        entry: &Entry<'a>,
        declared: Option<Entry<'a>>,
        mut c: Cursor<'a>,
    ) -> Result<Prototype, Stop> {
        // What a declaration elsewhere has said already is not said again.
        let result = match declared {
            Some(d) if entry.kind.is_none() => self.kind(&d)?,
            _ => self.kind(entry)?,
        };
        let (mut parameters, mut variadic) = (self.budget.vec(0)?, false);
        let mut level = usize::from(entry.children);
        while level > 0 {
            let Some(inner) = self.next(&mut c)? else {
                level -= 1;
                continue;
            };
            if level == 1 {
                match inner.tag {
                    tag::PARAMETER => {
                        let origin = self.referred(inner.declared)?;
                        let kind = self.kind(&origin.unwrap_or(inner))?;
                        self.budget.push(&mut parameters, kind)?;
                    }
                    tag::MORE_PARAMETERS => variadic = true,
                    _ => {}
                }
            }
            level += usize::from(inner.children);
        }
        Ok(Prototype {
            result,
            parameters,
            variadic,
        })
    }

    /// The type that an entry refers to, without typedefs and qualifiers.
    fn target(&mut self, entry: &Entry<'a>) -> Result<Option<Entry<'a>>, Stop> {
        let mut at = self.referred(entry.kind)?;
        for _ in 0..DEEPEST {
            match at {
                Some(e)
                    if matches!(
                        e.tag,
                        tag::TYPEDEF | tag::CONST | tag::VOLATILE | tag::RESTRICT | tag::ATOMIC
                    ) =>
                {
                    at = self.referred(e.kind)?;
                }
                found => return Ok(found),
            }
        }
        Ok(None)
    }

    fn kind(&mut self, entry: &Entry<'a>) -> Result<CType, Stop> {
        let Some(t) = self.target(entry)? else {
            // No type is `void`; so is a qualified one.
            return Ok(CType::Void);
        };
        let bits = t.size.and_then(|n| u8::try_from(n.checked_mul(8)?).ok());
        Ok(match t.tag {
            tag::BASE => match (t.encoding, bits) {
                (encoding::SIGNED | encoding::SIGNED_CHAR, Some(b @ (8 | 16 | 32 | 64))) => CType::Signed(b),
                (
                    encoding::UNSIGNED | encoding::UNSIGNED_CHAR | encoding::BOOLEAN | encoding::UTF,
                    Some(b @ (8 | 16 | 32 | 64)),
                ) => CType::Unsigned(b),
                (encoding::FLOAT, Some(b @ (32 | 64))) => CType::Float(b),
                _ => self.other("", &t, "an unknown type")?,
            },
            tag::ENUMERATION => {
                let base = self.target(&t)?;
                let signed =
                    base.is_some_and(|b| matches!(b.encoding, encoding::SIGNED | encoding::SIGNED_CHAR));
                let bits = bits.unwrap_or(32);
                match signed {
                    true => CType::Signed(bits),
                    false => CType::Unsigned(bits),
                }
            }
            tag::POINTER => {
                // `unsigned char` is for bytes, not for text.
                let to = self.target(&t)?;
                match to.is_some_and(|to| (to.size, to.encoding) == (Some(1), encoding::SIGNED_CHAR)) {
                    true => CType::Text,
                    false => CType::Pointer,
                }
            }
            tag::REFERENCE | tag::RVALUE_REFERENCE => CType::Pointer,
            tag::STRUCTURE => self.other("struct ", &t, "")?,
            tag::CLASS => self.other("class ", &t, "")?,
            tag::UNION => self.other("union ", &t, "")?,
            _ => self.other("", &t, "another type")?,
        })
    }

    /// A type by its name, or by what it is if it has none.
    fn other(&mut self, word: &str, entry: &Entry<'a>, unnamed: &str) -> Result<CType, Stop> {
        let name = entry.name.and_then(|v| self.unit.text(v));
        let name = name.map_or(unnamed.into(), String::from_utf8_lossy);
        let mut text = self.budget.vec(word.len() + name.len())?;
        text.extend_from_slice(word.as_bytes());
        text.extend_from_slice(name.as_bytes());
        // Both were text before.
        Ok(CType::Other(String::from_utf8(text).unwrap_or_default()))
    }
}
