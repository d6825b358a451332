//! One unit of debug information: its abbreviations, its entries, and what their attributes say. DWARF 2 to 5.

use crate::asked::Asked;
use crate::bytes::{Cursor, Stop, text_at};
use crate::sections::Sections;
use ringfence_core::work::Budget;

/// Bytes of a string in an entry that make a step: its end has to be looked for.
pub(crate) const TEXT: u64 = 32;

/// Most different shapes that the entries of a unit may have: 16 bytes of memory each.
const ABBREVIATIONS: usize = 1 << 16;

pub(crate) mod tag {
    pub const ARRAY: u64 = 0x01;
    pub const CLASS: u64 = 0x02;
    pub const ENUMERATION: u64 = 0x04;
    pub const PARAMETER: u64 = 0x05;
    pub const MEMBER: u64 = 0x0D;
    pub const POINTER: u64 = 0x0F;
    pub const REFERENCE: u64 = 0x10;
    pub const STRUCTURE: u64 = 0x13;
    pub const SUBROUTINE_TYPE: u64 = 0x15;
    pub const TYPEDEF: u64 = 0x16;
    pub const UNION: u64 = 0x17;
    pub const MORE_PARAMETERS: u64 = 0x18;
    pub const INLINED: u64 = 0x1D;
    pub const SUBRANGE: u64 = 0x21;
    pub const BASE: u64 = 0x24;
    pub const CONST: u64 = 0x26;
    pub const SUBPROGRAM: u64 = 0x2E;
    pub const VOLATILE: u64 = 0x35;
    pub const RESTRICT: u64 = 0x37;
    pub const RVALUE_REFERENCE: u64 = 0x42;
    pub const ATOMIC: u64 = 0x47;
}

/// What an attribute says.
#[derive(Clone, Copy)]
pub(crate) enum Value<'a> {
    Address(u64),
    /// By its number in the table of addresses.
    AddressIndex(u64),
    Number(u64),
    /// Where something is in another section.
    Offset(u64),
    /// By its number in the table of range lists.
    List(u64),
    Text(Text<'a>),
    /// An entry, from the start of this unit.
    Inside(u64),
    /// An entry, from the start of the section.
    Entry(u64),
    Other,
}

#[derive(Clone, Copy)]
pub(crate) enum Text<'a> {
    Here(&'a [u8]),
    Str(u64),
    LineStr(u64),
    Index(u64),
}

impl<'a> Text<'a> {
    /// Whether it is just this text: looks at no more bytes than that has.
    pub fn is(self, text: &[u8], sections: &Sections<'a>, unit: &Unit<'a>) -> bool {
        let (bytes, at) = match self {
            Text::Here(here) => return here == text,
            Text::Str(at) => (sections.str, Some(at)),
            Text::LineStr(at) => (sections.line_str, Some(at)),
            Text::Index(n) => (sections.str, indexed(n, sections, unit)),
        };
        let rest = at.and_then(|at| bytes.get(usize::try_from(at).ok()?..));
        let rest = rest.and_then(|rest| rest.strip_prefix(text));
        rest.is_some_and(|rest| rest.first() == Some(&0))
    }

    pub fn find(self, sections: &Sections<'a>, unit: Option<&Unit<'a>>) -> Option<&'a [u8]> {
        match self {
            Text::Here(text) => Some(text),
            Text::Str(at) => text_at(sections.str, at),
            Text::LineStr(at) => text_at(sections.line_str, at),
            Text::Index(n) => text_at(sections.str, indexed(n, sections, unit?)?),
        }
    }
}

/// Where the string of that number is.
fn indexed(n: u64, sections: &Sections<'_>, unit: &Unit<'_>) -> Option<u64> {
    let at = unit.str_offsets.checked_add(n.checked_mul(unit.word())?)?;
    let mut c = Cursor::new(sections.str_offsets, at).ok()?;
    c.number(unit.word()).ok()
}

/// Reads, or skips, a value of a form. `implicit` is what the abbreviation itself says.
pub(crate) fn form<'a>(
    c: &mut Cursor<'a>,
    code: u64,
    implicit: i64,
    wide: bool,
    address: u8,
) -> Result<Value<'a>, Stop> {
    let word = if wide { 8 } else { 4 };
    Ok(match code {
        0x01 => Value::Address(c.number(address.into())?),
        0x03 => skip(c, 2)?,
        0x04 => skip(c, 4)?,
        0x05 => Value::Number(c.number(2)?),
        // Old producers use these two for offsets as well.
        0x06 => Value::Number(c.number(4)?),
        0x07 => Value::Number(c.number(8)?),
        0x08 => Value::Text(Text::Here(c.text()?)),
        0x09 | 0x18 => skip(c, 0)?,
        0x0A => skip(c, 1)?,
        0x0B => Value::Number(c.number(1)?),
        0x0C => Value::Number(c.number(1)?),
        0x0D => Value::Number(c.sleb()? as u64),
        0x0E => Value::Text(Text::Str(c.number(word)?)),
        0x0F => Value::Number(c.uleb()?),
        0x10 => Value::Entry(c.number(word)?),
        0x11 => Value::Inside(c.number(1)?),
        0x12 => Value::Inside(c.number(2)?),
        0x13 => Value::Inside(c.number(4)?),
        0x14 => Value::Inside(c.number(8)?),
        0x15 => Value::Inside(c.uleb()?),
        0x17 => Value::Offset(c.number(word)?),
        0x19 => Value::Number(1),
        0x1A => Value::Text(Text::Index(c.uleb()?)),
        0x1B => Value::AddressIndex(c.uleb()?),
        0x1E => other(c.take(16)?),
        0x1F => Value::Text(Text::LineStr(c.number(word)?)),
        0x20 => other(c.take(8)?),
        0x1C | 0x24 => other(c.take(if code == 0x1C { 4 } else { 8 })?),
        0x1D => other(c.take(word)?),
        0x21 => Value::Number(implicit as u64),
        0x22 => {
            c.uleb()?;
            Value::Other
        }
        0x23 => Value::List(c.uleb()?),
        0x25..=0x28 => Value::Text(Text::Index(c.number(code - 0x24)?)),
        0x29..=0x2C => Value::AddressIndex(c.number(code - 0x28)?),
        _ => return Err(Stop::Malformed),
    })
}

fn other(_: &[u8]) -> Value<'_> {
    Value::Other
}

/// A block with its length before it.
fn skip<'a>(c: &mut Cursor<'a>, len: u64) -> Result<Value<'a>, Stop> {
    let len = if len == 0 { c.uleb()? } else { c.number(len)? };
    c.take(len)?;
    Ok(Value::Other)
}

/// Where each abbreviation of a table is, by its code.
#[derive(Default)]
pub(crate) struct Abbreviations {
    at: Option<u64>,
    all: Vec<(u64, usize)>,
}

impl Abbreviations {
    /// Reads the table at `at`, unless it is the one that was read last.
    fn load(&mut self, section: &[u8], at: u64, budget: &mut Budget) -> Result<(), Stop> {
        if self.at == Some(at) {
            return Ok(());
        }
        self.at = None;
        self.all.clear();
        let mut c = Cursor::new(section, at)?;
        loop {
            budget.step()?;
            let code = c.uleb()?;
            if code == 0 {
                break;
            }
            if self.all.len() == ABBREVIATIONS {
                return Err(Stop::Malformed);
            }
            budget.push(&mut self.all, (code, c.at))?;
            c.uleb()?;
            c.u8()?;
            loop {
                budget.step()?;
                let (name, form) = (c.uleb()?, c.uleb()?);
                if form == IMPLICIT {
                    c.sleb()?;
                }
                if (name, form) == (0, 0) {
                    break;
                }
            }
        }
        self.all.sort_unstable();
        self.at = Some(at);
        Ok(())
    }

    fn find(&self, code: u64) -> Option<usize> {
        // Nearly always they are numbered from 1.
        let guess = usize::try_from(code)
            .ok()
            .and_then(|n| self.all.get(n.wrapping_sub(1)));
        if let Some(&(_, at)) = guess.filter(|a| a.0 == code) {
            return Some(at);
        }
        let n = self.all.binary_search_by_key(&code, |a| a.0).ok()?;
        Some(self.all[n].1)
    }
}

const IMPLICIT: u64 = 0x21;

/// A unit.
#[derive(Clone, Copy)]
pub(crate) struct Unit<'a> {
    sections: Sections<'a>,
    /// Where it starts in the section, and where the next one does.
    pub start: u64,
    pub next: u64,
    /// Its first entry.
    pub first: u64,
    pub version: u16,
    wide: bool,
    pub address: u8,
    abbreviations: u64,
    /// Whether it is of a kind that has code.
    pub code: bool,
    str_offsets: u64,
    addr_base: u64,
    rnglists: u64,
    low: u64,
}

/// An entry: only what names and places are made of.
#[derive(Clone, Copy, Default)]
pub(crate) struct Entry<'a> {
    pub tag: u64,
    pub children: bool,
    pub sibling: Option<Value<'a>>,
    pub name: Option<Value<'a>>,
    pub linkage: Option<Value<'a>>,
    pub low: Option<Value<'a>>,
    pub high: Option<Value<'a>>,
    pub ranges: Option<Value<'a>>,
    pub origin: Option<Value<'a>>,
    pub call_file: Option<Value<'a>>,
    pub call_line: Option<Value<'a>>,
    pub lines: Option<Value<'a>>,
    pub directory: Option<Value<'a>>,
    bases: [Option<Value<'a>>; 3],
}

impl<'a> Unit<'a> {
    /// The unit at `at`.
    pub fn at(sections: &Sections<'a>, at: u64) -> Result<Unit<'a>, Stop> {
        let mut c = Cursor::new(sections.info, at)?;
        let (mut len, mut wide) = (u64::from(c.u32()?), false);
        if len == 0xFFFF_FFFF {
            (len, wide) = (c.number(8)?, true);
        }
        let next = (c.at as u64).checked_add(len).ok_or(Stop::Malformed)?;
        if next > sections.info.len() as u64 || len == 0 {
            return Err(Stop::Malformed);
        }
        let word = if wide { 8 } else { 4 };
        let version = c.u16()?;
        let (mut kind, abbreviations, address) = (1, 0, 8);
        let mut unit = Unit {
            sections: *sections,
            start: at,
            next,
            first: 0,
            version,
            wide,
            address,
            abbreviations,
            code: false,
            str_offsets: 2 * word,
            addr_base: 2 * word,
            rnglists: word + 8,
            low: 0,
        };
        match version {
            2..=4 => {
                unit.abbreviations = c.number(word)?;
                unit.address = c.u8()?;
            }
            5 => {
                kind = c.u8()?;
                unit.address = c.u8()?;
                unit.abbreviations = c.number(word)?;
            }
            // A version that is not known can be stepped over.
            _ => kind = 0,
        }
        unit.first = c.at as u64;
        // Compilation units and partial ones.
        unit.code = matches!(kind, 1 | 3) && unit.address == 8;
        Ok(unit)
    }

    fn word(&self) -> u64 {
        if self.wide { 8 } else { 4 }
    }

    /// Its entries.
    pub fn entries(&self) -> Result<Cursor<'a>, Stop> {
        let bytes = self
            .sections
            .info
            .get(..self.next as usize)
            .ok_or(Stop::Malformed)?;
        Cursor::new(bytes, self.first)
    }

    /// Reads the abbreviations that its entries need.
    pub fn load(&self, abbreviations: &mut Abbreviations, budget: &mut Budget) -> Result<(), Stop> {
        abbreviations.load(self.sections.abbrev, self.abbreviations, budget)
    }

    /// The next entry; `None` at the end of a row of children.
    pub fn entry(
        &self,
        c: &mut Cursor<'a>,
        abbreviations: &Abbreviations,
        budget: &mut Budget,
    ) -> Result<Option<Entry<'a>>, Stop> {
        let mut entry = Entry::default();
        let head = self.attributes(c, abbreviations, budget, |attribute, value| {
            let value = Some(value);
            match attribute {
                0x01 => entry.sibling = value,
                0x03 => entry.name = value,
                0x10 => entry.lines = value,
                0x11 => entry.low = value,
                0x12 => entry.high = value,
                0x1B => entry.directory = value,
                0x31 | 0x47 => entry.origin = value,
                0x55 => entry.ranges = value,
                0x58 => entry.call_file = value,
                0x59 => entry.call_line = value,
                0x6E | 0x2007 => entry.linkage = value,
                0x72 => entry.bases[0] = value,
                0x73 => entry.bases[1] = value,
                0x74 => entry.bases[2] = value,
                _ => {}
            }
        })?;
        Ok(head.map(|(tag, children)| Entry {
            tag,
            children,
            ..entry
        }))
    }

    /// The attributes of the next entry, each of which is a step; its tag, and whether children follow. `None` at the end of a row
    /// of children.
    pub fn attributes(
        &self,
        c: &mut Cursor<'a>,
        abbreviations: &Abbreviations,
        budget: &mut Budget,
        mut told: impl FnMut(u64, Value<'a>),
    ) -> Result<Option<(u64, bool)>, Stop> {
        budget.step()?;
        let code = c.uleb()?;
        if code == 0 {
            return Ok(None);
        }
        let at = abbreviations.find(code).ok_or(Stop::Malformed)?;
        let mut shape = Cursor::new(self.sections.abbrev, at as u64)?;
        let head = (shape.uleb()?, shape.u8()? != 0);
        loop {
            let (attribute, mut code) = (shape.uleb()?, shape.uleb()?);
            if (attribute, code) == (0, 0) {
                return Ok(Some(head));
            }
            budget.step()?;
            let implicit = if code == IMPLICIT { shape.sleb()? } else { 0 };
            // The form stands with the value. Not twice: that would be no form.
            if code == 0x16 {
                code = c.uleb()?;
            }
            let value = form(c, code, implicit, self.wide, self.address)?;
            if let Value::Text(Text::Here(text)) = value {
                budget.steps(text.len() as u64 / TEXT)?;
            }
            told(attribute, value);
        }
    }

    /// What the unit's own entry says about all others.
    pub fn take_bases(&mut self, root: &Entry<'a>) {
        for (base, value) in [&mut self.str_offsets, &mut self.addr_base, &mut self.rnglists]
            .into_iter()
            .zip(root.bases)
        {
            if let Some(Value::Offset(at) | Value::Number(at)) = value {
                *base = at;
            }
        }
        self.low = root.low.and_then(|v| self.place(v)).unwrap_or(0);
    }

    fn place(&self, value: Value<'_>) -> Option<u64> {
        match value {
            Value::Address(at) => Some(at),
            Value::AddressIndex(n) => {
                let at = self.addr_base.checked_add(n.checked_mul(8)?)?;
                Cursor::new(self.sections.addr, at).ok()?.number(8).ok()
            }
            _ => None,
        }
    }

    /// Which of the places the entry's code covers, as a set. Every range is a step.
    pub fn covers(&self, entry: &Entry<'a>, asked: &Asked, budget: &mut Budget) -> Result<u64, Stop> {
        if let Some(ranges) = entry.ranges {
            return match ranges {
                Value::Offset(at) | Value::Number(at) if self.version < 5 => self.ranges(at, asked, budget),
                Value::Offset(at) | Value::Number(at) => self.range_list(at, asked, budget),
                Value::List(n) => {
                    let at = n
                        .checked_mul(self.word())
                        .and_then(|n| self.rnglists.checked_add(n));
                    let inside = Cursor::new(self.sections.rnglists, at.ok_or(Stop::Malformed)?)?
                        .number(self.word())?;
                    self.range_list(self.rnglists.wrapping_add(inside), asked, budget)
                }
                _ => Ok(0),
            };
        }
        let Some(low) = entry.low.and_then(|v| self.place(v)) else {
            return Ok(0);
        };
        let high = match entry.high {
            Some(Value::Number(len)) => low.saturating_add(len),
            Some(value) => self.place(value).unwrap_or(0),
            None => 0,
        };
        Ok(asked.between(low, high))
    }

    /// Before DWARF 5.
    fn ranges(&self, at: u64, asked: &Asked, budget: &mut Budget) -> Result<u64, Stop> {
        let (mut c, mut base, mut set) = (Cursor::new(self.sections.ranges, at)?, self.low, 0);
        loop {
            budget.step()?;
            match (c.number(8)?, c.number(8)?) {
                (0, 0) => return Ok(set),
                (u64::MAX, new) => base = new,
                (from, to) => set |= asked.between(base.wrapping_add(from), base.wrapping_add(to)),
            }
        }
    }

    fn range_list(&self, at: u64, asked: &Asked, budget: &mut Budget) -> Result<u64, Stop> {
        let (mut c, mut base, mut set) = (Cursor::new(self.sections.rnglists, at)?, self.low, 0);
        let indexed = |n| self.place(Value::AddressIndex(n)).ok_or(Stop::Malformed);
        loop {
            budget.step()?;
            let (from, to) = match c.u8()? {
                0 => return Ok(set),
                1 => {
                    base = indexed(c.uleb()?)?;
                    continue;
                }
                2 => (indexed(c.uleb()?)?, indexed(c.uleb()?)?),
                3 => {
                    let from = indexed(c.uleb()?)?;
                    (from, from.saturating_add(c.uleb()?))
                }
                4 => (base.wrapping_add(c.uleb()?), base.wrapping_add(c.uleb()?)),
                5 => {
                    base = c.number(8)?;
                    continue;
                }
                6 => (c.number(8)?, c.number(8)?),
                7 => {
                    let from = c.number(8)?;
                    (from, from.saturating_add(c.uleb()?))
                }
                _ => return Err(Stop::Malformed),
            };
            set |= asked.between(from, to);
        }
    }

    /// Where an entry that another one refers to is in the section.
    pub fn referred(&self, value: Value<'_>) -> Option<u64> {
        match value {
            Value::Inside(at) => self.start.checked_add(at),
            Value::Entry(at) => Some(at),
            _ => None,
        }
    }

    pub fn text(&self, value: Value<'a>) -> Option<&'a [u8]> {
        match value {
            Value::Text(text) => text.find(&self.sections, Some(self)),
            _ => None,
        }
    }
}
