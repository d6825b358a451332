//! Line tables: which line of which file an address is from. DWARF 2 to 5.

use crate::asked::Asked;
use crate::bytes::{Cursor, Stop};
use crate::sections::Sections;
use crate::unit::{TEXT, Text, Value, form};
use ringfence_core::work::Budget;

/// The table of one unit, not read yet but for its header.
#[derive(Clone, Copy)]
pub(crate) struct Lines<'a> {
    sections: Sections<'a>,
    version: u16,
    wide: bool,
    address: u8,
    least: u64,
    base: i64,
    range: u64,
    opcodes: u8,
    lengths: &'a [u8],
    /// Directories, then files.
    tables: Cursor<'a>,
    program: Cursor<'a>,
}

/// A row of the table.
#[derive(Clone, Copy)]
struct Row {
    address: u64,
    file: u64,
    line: u64,
}

impl<'a> Lines<'a> {
    pub fn new(sections: &Sections<'a>, at: u64, address: u8) -> Result<Lines<'a>, Stop> {
        let mut c = Cursor::new(sections.line, at)?;
        let (mut len, mut wide) = (u64::from(c.u32()?), false);
        if len == 0xFFFF_FFFF {
            (len, wide) = (c.number(8)?, true);
        }
        let mut c = Cursor::new(c.take(len)?, 0)?;
        let version = c.u16()?;
        if !(2..=5).contains(&version) {
            return Err(Stop::Malformed);
        }
        let mut address = address;
        if version == 5 {
            address = c.u8()?;
            c.u8()?;
        }
        let header = c.number(if wide { 8 } else { 4 })?;
        let program = Cursor::new(c.bytes, (c.at as u64).checked_add(header).ok_or(Stop::Malformed)?)?;
        let least = c.u8()?.into();
        if version >= 4 {
            c.u8()?; // operations of one instruction: 1 on this processor
        }
        c.u8()?;
        let (base, range, opcodes) = (i64::from(c.u8()? as i8), u64::from(c.u8()?), c.u8()?);
        let lengths = c.take(u64::from(opcodes).saturating_sub(1))?;
        if range == 0 {
            return Err(Stop::Malformed);
        }
        Ok(Lines {
            sections: *sections,
            version,
            wide,
            address,
            least,
            base,
            range,
            opcodes,
            lengths,
            tables: c,
            program,
        })
    }

    /// File and line of the places in the set `wanted`: `found` is told, in no order.
    pub fn look(
        &self,
        asked: &Asked,
        wanted: u64,
        budget: &mut Budget,
        mut found: impl FnMut(usize, u64, u64),
    ) -> Result<(), Stop> {
        const START: Row = Row {
            address: 0,
            file: 1,
            line: 1,
        };
        let mut c = self.program;
        let (mut row, mut last, mut first) = (START, None::<Row>, None);
        while !c.done() {
            budget.step()?;
            let opcode = c.u8()?;
            let (mut emit, mut end) = (false, false);
            if opcode >= self.opcodes {
                let special = u64::from(opcode - self.opcodes);
                row.address = row
                    .address
                    .wrapping_add((special / self.range).wrapping_mul(self.least));
                row.line = row
                    .line
                    .wrapping_add_signed(self.base + (special % self.range) as i64);
                emit = true;
            } else {
                match opcode {
                    0 => {
                        let len = c.uleb()?;
                        let mut inner = Cursor::new(c.take(len)?, 0)?;
                        match inner.u8()? {
                            1 => (emit, end) = (true, true),
                            2 => row.address = inner.number(self.address.into())?,
                            _ => {}
                        }
                    }
                    1 => emit = true,
                    2 => row.address = row.address.wrapping_add(c.uleb()?.wrapping_mul(self.least)),
                    3 => row.line = row.line.wrapping_add_signed(c.sleb()?),
                    4 => row.file = c.uleb()?,
                    8 => {
                        let special = u64::from(255 - self.opcodes);
                        row.address = row
                            .address
                            .wrapping_add((special / self.range).wrapping_mul(self.least));
                    }
                    9 => row.address = row.address.wrapping_add(c.u16()?.into()),
                    other => {
                        let operands = self.lengths.get(usize::from(other) - 1).copied().unwrap_or(0);
                        budget.steps(operands.into())?;
                        for _ in 0..operands {
                            c.uleb()?;
                        }
                    }
                }
            }
            if !emit {
                continue;
            }
            // What the linker has dropped is left at 0.
            let start = *first.get_or_insert(row.address);
            if let Some(before) = last.filter(|_| start != 0) {
                let mut hit = asked.between(before.address, row.address) & wanted;
                while hit != 0 {
                    found(hit.trailing_zeros() as usize, before.file, before.line);
                    hit &= hit - 1;
                }
            }
            last = Some(row);
            if end {
                (row, last, first) = (START, None, None);
            }
        }
        Ok(())
    }

    /// The path of a file, as compilers wrote it: from the unit's directory on.
    pub fn path(&self, file: u64, unit: &[u8], budget: &mut Budget) -> Result<Vec<u8>, Stop> {
        let mut path = unit.to_vec();
        let (directory, name) = match self.version {
            5 => self.file(file, budget)?,
            _ => self.file_before_5(file, budget)?,
        };
        for part in [directory, Some(name)].into_iter().flatten() {
            if part.starts_with(b"/") {
                path.clear();
            } else if !path.is_empty() && !path.ends_with(b"/") {
                path.push(b'/');
            }
            path.extend_from_slice(part);
        }
        Ok(path)
    }

    fn file_before_5(&self, file: u64, budget: &mut Budget) -> Result<(Option<&'a [u8]>, &'a [u8]), Stop> {
        let mut c = self.tables;
        let directories = c;
        while !text(&mut c, budget)?.is_empty() {}
        let mut n = 1;
        let (name, directory) = loop {
            let name = text(&mut c, budget)?;
            if name.is_empty() {
                return Err(Stop::Malformed);
            }
            let directory = c.uleb()?;
            c.uleb()?;
            c.uleb()?;
            if n == file {
                break (name, directory);
            }
            n += 1;
        };
        let mut c = directories;
        for n in 1..=directory {
            let directory_name = text(&mut c, budget)?;
            if directory_name.is_empty() {
                break;
            }
            if n == directory {
                return Ok((Some(directory_name), name));
            }
        }
        Ok((None, name))
    }

    fn file(&self, file: u64, budget: &mut Budget) -> Result<(Option<&'a [u8]>, &'a [u8]), Stop> {
        let mut c = self.tables;
        let directories = Table::read(&mut c)?;
        let mut after = c;
        directories.skip(self, &mut after, directories.count, budget)?;
        let files = Table::read(&mut after)?;
        let (name, directory) = files.entry(self, after, file, budget)?;
        if directory == 0 {
            return Ok((None, name));
        }
        let (directory, _) = directories.entry(self, c, directory, budget)?;
        Ok((Some(directory), name))
    }
}

/// A string, paid by its length.
fn text<'a>(c: &mut Cursor<'a>, budget: &mut Budget) -> Result<&'a [u8], Stop> {
    let text = c.text()?;
    budget.steps(1 + text.len() as u64 / TEXT)?;
    Ok(text)
}

/// A table of directories or files, of DWARF 5.
struct Table<'a> {
    formats: Cursor<'a>,
    fields: u8,
    count: u64,
}

impl<'a> Table<'a> {
    fn read(c: &mut Cursor<'a>) -> Result<Table<'a>, Stop> {
        let fields = c.u8()?;
        let formats = *c;
        for _ in 0..fields {
            c.uleb()?;
            c.uleb()?;
        }
        let count = c.uleb()?;
        Ok(Table {
            formats,
            fields,
            count,
        })
    }

    /// Skips entries; the last one's path and directory.
    fn skip(
        &self,
        lines: &Lines<'a>,
        c: &mut Cursor<'a>,
        count: u64,
        budget: &mut Budget,
    ) -> Result<(Option<Value<'a>>, u64), Stop> {
        let mut last = (None, 0);
        for _ in 0..count {
            budget.steps(1 + u64::from(self.fields))?;
            let mut formats = self.formats;
            last = (None, 0);
            for _ in 0..self.fields {
                let (kind, code) = (formats.uleb()?, formats.uleb()?);
                let value = form(c, code, 0, lines.wide, lines.address)?;
                if let Value::Text(Text::Here(text)) = value {
                    budget.steps(text.len() as u64 / TEXT)?;
                }
                match (kind, value) {
                    (1, value) => last.0 = Some(value),
                    (2, Value::Number(n)) => last.1 = n,
                    _ => {}
                }
            }
        }
        Ok(last)
    }

    fn entry(
        &self,
        lines: &Lines<'a>,
        mut c: Cursor<'a>,
        n: u64,
        budget: &mut Budget,
    ) -> Result<(&'a [u8], u64), Stop> {
        if n >= self.count {
            return Err(Stop::Malformed);
        }
        let (path, directory) = self.skip(lines, &mut c, n + 1, budget)?;
        let text = match path {
            Some(Value::Text(Text::Here(text))) => Some(text),
            Some(Value::Text(text)) => text.find(&lines.sections, None),
            _ => None,
        };
        Ok((text.ok_or(Stop::Malformed)?, directory))
    }
}
