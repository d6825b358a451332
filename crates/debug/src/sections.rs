//! The sections of a module's file that names come from.

use crate::asked::Asked;
use crate::bytes::{Cursor, Stop, text_at};
use ringfence_core::work::Budget;

/// What is in the file; empty where it is not.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sections<'a> {
    pub info: &'a [u8],
    pub abbrev: &'a [u8],
    pub line: &'a [u8],
    pub line_str: &'a [u8],
    pub str: &'a [u8],
    pub str_offsets: &'a [u8],
    pub addr: &'a [u8],
    pub ranges: &'a [u8],
    pub rnglists: &'a [u8],
    /// Symbols and their names: all, and those for the dynamic linker.
    tables: [(&'a [u8], &'a [u8]); 2],
}

/// A section's header.
#[derive(Clone, Copy)]
struct Header {
    name: u32,
    kind: u32,
    offset: u64,
    size: u64,
    link: u32,
}

const SYMTAB: u32 = 2;
const NOBITS: u32 = 8;
const DYNSYM: u32 = 11;
const COMPRESSED: u64 = 0x800;
const SYMBOL: usize = 24;
const FUNCTION: u8 = 2;

impl<'a> Sections<'a> {
    /// Finds them: work linear in the number of sections, whatever their names are.
    pub fn find(file: &'a [u8], budget: &mut Budget) -> Result<Sections<'a>, Stop> {
        let at = Cursor::new(file, 0x28)?.number(8)?;
        let mut c = Cursor::new(file, 0x3A)?;
        let (size, count, names) = (c.u16()?, c.u16()?, c.u16()?);
        if usize::from(size) != 64 {
            return Err(Stop::Malformed);
        }
        let header = |n: u64| -> Result<Option<Header>, Stop> {
            let mut c = Cursor::new(file, at.checked_add(n * 64).ok_or(Stop::Malformed)?)?;
            let (name, kind, flags, _) = (c.u32()?, c.u32()?, c.number(8)?, c.number(8)?);
            let (offset, size, link) = (c.number(8)?, c.number(8)?, c.u32()?);
            let header = Header {
                name,
                kind,
                offset,
                size,
                link,
            };
            Ok((flags & COMPRESSED == 0 && kind != NOBITS).then_some(header))
        };
        let content = |h: Header| Cursor::new(file, h.offset).and_then(|mut c| c.take(h.size));
        let names = header(names.into())?.map_or(Ok(&[][..]), content)?;
        let mut found = Sections::default();
        for n in 0..count {
            budget.step()?;
            let Some(h) = header(n.into())? else { continue };
            let Ok(bytes) = content(h) else { continue };
            if let Some(table) = match h.kind {
                SYMTAB => Some(0),
                DYNSYM => Some(1),
                _ => None,
            } {
                let strings = header(h.link.into()).ok().flatten().and_then(|h| content(h).ok());
                found.tables[table] = (bytes, strings.unwrap_or_default());
            }
            let name = names.get(h.name as usize..).unwrap_or_default();
            let wanted: [(&[u8], &mut &'a [u8]); 9] = [
                (b".debug_info\0", &mut found.info),
                (b".debug_abbrev\0", &mut found.abbrev),
                (b".debug_line\0", &mut found.line),
                (b".debug_line_str\0", &mut found.line_str),
                (b".debug_str\0", &mut found.str),
                (b".debug_str_offsets\0", &mut found.str_offsets),
                (b".debug_addr\0", &mut found.addr),
                (b".debug_ranges\0", &mut found.ranges),
                (b".debug_rnglists\0", &mut found.rnglists),
            ];
            for (title, place) in wanted {
                if name.starts_with(title) {
                    *place = bytes;
                }
            }
        }
        Ok(found)
    }

    /// The name of the function around each place, from the symbols: one pass, nothing is copied.
    pub fn symbols(&self, asked: &Asked, budget: &mut Budget) -> Result<Vec<Option<&'a [u8]>>, Stop> {
        // For each place the last function that starts before it and behind the place before.
        let mut best: Vec<Option<Symbol<'a>>> = vec![None; asked.places().len()];
        let mut all = Ok(());
        for (table, strings) in self.tables {
            for entry in table.chunks_exact(SYMBOL) {
                if let Err(e) = budget.step() {
                    all = Err(Stop::from(e));
                    break;
                }
                let Some(symbol) = Symbol::read(entry, strings) else {
                    continue;
                };
                let Some(place) = best.get_mut(asked.first_from(symbol.start)) else {
                    continue;
                };
                if place.is_none_or(|b| (symbol.start, symbol.size) > (b.start, b.size)) {
                    *place = Some(symbol);
                }
            }
        }
        let mut last = None;
        let named = best.into_iter().zip(asked.places()).map(|(found, &at)| {
            last = found.or(last);
            let symbol: Symbol<'a> = last?;
            let inside = symbol.size == 0 || at - symbol.start < symbol.size;
            inside.then(|| text_at(symbol.strings, symbol.name)).flatten()
        });
        let named = named.collect();
        all.map(|()| named)
    }
}

#[derive(Clone, Copy)]
struct Symbol<'a> {
    start: u64,
    size: u64,
    name: u64,
    strings: &'a [u8],
}

impl<'a> Symbol<'a> {
    /// A function that is defined.
    fn read(entry: &[u8], strings: &'a [u8]) -> Option<Symbol<'a>> {
        let mut c = Cursor::new(entry, 0).ok()?;
        let (name, info, _, section) = (c.u32().ok()?, c.u8().ok()?, c.u8().ok()?, c.u16().ok()?);
        let (start, size) = (c.number(8).ok()?, c.number(8).ok()?);
        (info & 15 == FUNCTION && section != 0).then_some(Symbol {
            start,
            size,
            name: name.into(),
            strings,
        })
    }
}
