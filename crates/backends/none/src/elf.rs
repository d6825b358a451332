//! What the back end has to know of an ordinary shared object. It will run unfenced, so nothing here is a check of what it does;
//! a file that is no shared object, or is broken, is an error all the same.

use ringfence_core::{Export, ExportKind, Import, LoadError};
use ringfence_isa::note;
use std::ops::Range;

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_NOTE: u32 = 4;
const PT_GNU_RELRO: u32 = 0x6474_E552;
const SHT_DYNSYM: u32 = 11;
/// Entries of the dynamic section that have the linker run code of the object. They are renamed to something that no linker knows.
const RUNS_CODE: [u64; 6] = [12, 13, 25, 26, 27, 28];
const IGNORED: u64 = 0x6000_0D00;

/// A symbol that is looked for elsewhere.
pub(crate) struct Undefined {
    pub name: String,
    /// Where its `st_info` is in the file.
    info: usize,
}

/// A word that gets a symbol's address.
pub(crate) struct Relocation {
    /// From the image's start.
    pub offset: u64,
    /// Which of the undefined symbols.
    pub symbol: usize,
    pub addend: u64,
}

/// What was found. Addresses are offsets from where the image starts.
#[derive(Default)]
pub(crate) struct Object {
    pub exports: Vec<Export>,
    pub imports: Vec<Import>,
    pub undefined: Vec<Undefined>,
    pub relocations: Vec<Relocation>,
    pub executable: Vec<Range<u64>>,
    /// Without what becomes read-only after relocation.
    pub writable: Vec<Range<u64>>,
    pub init: Vec<u64>,
    /// Ranges of function pointers.
    pub init_arrays: Vec<Range<u64>>,
    pub fini_arrays: Vec<Range<u64>>,
    pub fini: Vec<u64>,
    /// Where the tags of [`RUNS_CODE`] are in the file.
    tags: Vec<usize>,
}

struct Reader<'a> {
    name: &'a str,
    bytes: &'a [u8],
}

impl Reader<'_> {
    fn wrong(&self, offset: u64, reason: &str) -> LoadError {
        LoadError::Malformed {
            name: self.name.to_owned(),
            offset,
            reason: reason.to_owned(),
        }
    }

    fn get<const N: usize>(&self, at: u64) -> Result<[u8; N], LoadError> {
        usize::try_from(at)
            .ok()
            .and_then(|at| self.bytes.get(at..at.checked_add(N)?))
            .and_then(|s| s.try_into().ok())
            .ok_or_else(|| self.wrong(at, "the file ends here"))
    }

    fn u16(&self, at: u64) -> Result<u16, LoadError> {
        self.get(at).map(u16::from_le_bytes)
    }

    fn u32(&self, at: u64) -> Result<u32, LoadError> {
        self.get(at).map(u32::from_le_bytes)
    }

    fn u64(&self, at: u64) -> Result<u64, LoadError> {
        self.get(at).map(u64::from_le_bytes)
    }

    fn text(&self, at: u64) -> Result<String, LoadError> {
        let rest = usize::try_from(at).ok().and_then(|at| self.bytes.get(at..));
        let rest = rest.ok_or_else(|| self.wrong(at, "a name outside of the file"))?;
        let end = rest.iter().position(|&b| b == 0);
        let end = end.ok_or_else(|| self.wrong(at, "a name without an end"))?;
        Ok(String::from_utf8_lossy(&rest[..end]).into_owned())
    }
}

struct Load {
    address: u64,
    offset: u64,
    file_len: u64,
}

/// Whether the notes in the range have the one that makes a module.
fn is_fenced(r: &Reader<'_>, range: Range<u64>) -> bool {
    let mut at = range.start;
    while at < range.end {
        let (Ok(name), Ok(desc)) = (r.u32(at), r.u32(at + 4)) else {
            return false;
        };
        if name as usize == note::NAME.len() + 1 && r.text(at + 12).is_ok_and(|n| n == note::NAME) {
            return true;
        }
        at += 12 + u64::from(name).next_multiple_of(4) + u64::from(desc).next_multiple_of(4);
    }
    false
}

pub(crate) fn parse(name: &str, bytes: &[u8]) -> Result<Object, LoadError> {
    let r = Reader { name, bytes };
    let not = |reason: &str| LoadError::NotModule {
        name: name.to_owned(),
        reason: format!("{reason}; the back end none runs shared objects (cc -shared -fPIC)"),
    };
    if !bytes.starts_with(b"\x7fELF\x02\x01") || r.u16(18)? != 62 {
        return Err(not("no ELF file for x86-64"));
    }
    if r.u16(16)? != 3 {
        return Err(not("no shared object"));
    }
    let mut object = Object::default();
    let (mut loads, mut dynamic, mut relro, mut writable) = (Vec::new(), None, 0..0, Vec::new());
    let (headers, size) = (r.u64(32)?, u64::from(r.u16(54)?));
    for i in 0..u64::from(r.u16(56)?) {
        let at = headers.wrapping_add(i * size);
        let (kind, flags) = (r.u32(at)?, r.u32(at + 4)?);
        let (offset, address, file_len, len) =
            (r.u64(at + 8)?, r.u64(at + 16)?, r.u64(at + 32)?, r.u64(at + 40)?);
        let range = address..address.saturating_add(len);
        match kind {
            PT_LOAD => {
                if flags & 1 != 0 {
                    object.executable.push(range.clone());
                }
                if flags & 2 != 0 {
                    writable.push(range);
                }
                loads.push(Load {
                    address,
                    offset,
                    file_len,
                });
            }
            PT_DYNAMIC => dynamic = Some(offset..offset.saturating_add(file_len)),
            PT_GNU_RELRO => {
                relro = address..address.saturating_add(len).next_multiple_of(ringfence_isa::PAGE)
            }
            PT_NOTE if is_fenced(&r, offset..offset.saturating_add(file_len)) => {
                return Err(LoadError::Fenced {
                    name: name.to_owned(),
                });
            }
            _ => {}
        }
    }
    for range in writable {
        let (before, after) = (
            range.start..range.end.min(relro.start),
            range.start.max(relro.end)..range.end,
        );
        object
            .writable
            .extend([before, after].into_iter().filter(|r| r.start < r.end));
    }
    let dynamic = dynamic.ok_or_else(|| not("no dynamic section"))?;
    let file_offset = |address: u64| {
        loads
            .iter()
            .find(|l| address >= l.address && address - l.address < l.file_len)
            .map(|l| address - l.address + l.offset)
            .ok_or_else(|| r.wrong(address, "an address outside of the file"))
    };

    let mut entries = [0u64; 38];
    for at in dynamic.step_by(16) {
        let (tag, value) = (r.u64(at)?, r.u64(at + 8)?);
        if tag == 0 {
            break;
        }
        if let Some(entry) = entries.get_mut(tag as usize) {
            *entry = value;
        }
        if RUNS_CODE.contains(&tag) {
            object.tags.push(at as usize);
        }
    }
    let names = file_offset(entries[5])?;
    let symbols = file_offset(entries[6])?;
    object.init.extend((entries[12] != 0).then_some(entries[12]));
    object.fini.extend((entries[13] != 0).then_some(entries[13]));
    object
        .init_arrays
        .push(entries[25]..entries[25].saturating_add(entries[27]));
    object
        .fini_arrays
        .push(entries[26]..entries[26].saturating_add(entries[28]));

    let (sections, size) = (r.u64(40)?, u64::from(r.u16(58)?));
    let mut count = None;
    for i in 0..u64::from(r.u16(60)?) {
        let at = sections.wrapping_add(i * size);
        if r.u32(at + 4)? == SHT_DYNSYM {
            count = Some(r.u64(at + 32)? / 24);
        }
    }
    let count = count.ok_or_else(|| not("no table of dynamic symbols among its sections"))?;
    // By the symbol's number.
    let mut undefined = std::collections::BTreeMap::new();
    for i in 1..count {
        let at = symbols + 24 * i;
        let (info, visibility) = (r.get::<1>(at + 4)?[0], r.get::<1>(at + 5)?[0] & 3);
        let (binding, kind) = (info >> 4, info & 15);
        let label = r.text(names + u64::from(r.u32(at)?))?;
        if r.u16(at + 6)? == 0 {
            object.imports.push(Import {
                name: label.clone(),
                function: kind != 1,
                weak: binding == 2,
            });
            undefined.insert(i, object.undefined.len());
            object.undefined.push(Undefined {
                name: label,
                info: (at + 4) as usize,
            });
        } else if binding != 0 && (visibility == 0 || visibility == 3) {
            let kind = match kind {
                2 | 10 => ExportKind::Function,
                1 => ExportKind::Object,
                6 => ExportKind::ThreadLocal,
                _ => continue,
            };
            object.exports.push(Export {
                name: label,
                kind,
                offset: u32::try_from(r.u64(at + 8)?).unwrap_or(u32::MAX),
                size: r.u64(at + 16)?,
            });
        }
    }
    for (table, len) in [(entries[7], entries[8]), (entries[23], entries[2])] {
        if table == 0 {
            continue;
        }
        let table = file_offset(table)?;
        for at in (table..table.saturating_add(len)).step_by(24) {
            let (offset, info, addend) = (r.u64(at)?, r.u64(at + 8)?, r.u64(at + 16)?);
            // R_X86_64_64, GLOB_DAT and JUMP_SLOT
            let addend = match info as u32 {
                1 => addend,
                6 | 7 => 0,
                _ => continue,
            };
            if let Some(&symbol) = undefined.get(&(info >> 32)) {
                object.relocations.push(Relocation {
                    offset,
                    symbol,
                    addend,
                });
            }
        }
    }
    Ok(object)
}

impl Object {
    /// The file for the linker: it runs no code of the object, and does not miss the symbols that `given` names.
    pub(crate) fn prepared(&self, bytes: &[u8], given: impl Fn(&str) -> bool) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for &at in &self.tags {
            let renamed = IGNORED + u64::from(bytes[at]);
            bytes[at..at + 8].copy_from_slice(&renamed.to_le_bytes());
        }
        for symbol in self.undefined.iter().filter(|s| given(&s.name)) {
            bytes[symbol.info] = 2 << 4 | bytes[symbol.info] & 15;
        }
        bytes
    }
}
