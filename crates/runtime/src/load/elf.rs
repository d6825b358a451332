//! Reading a module file. Everything in it may be hostile: each number is checked where it is read, and each table is counted
//! against a [`Budget`] before it is gone through, so that time and memory are linear in the file's size, whatever it says.

use crate::load::symbols::Note;
use object::LittleEndian;
use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, Sym};
use ringfence_core::error::LoadError;
use ringfence_core::work::{Budget, Exceeded};
use ringfence_isa::{PAGE, note, window};
use ringfence_verify::SegmentKind;

const ENDIAN: LittleEndian = LittleEndian;
/// Modules may not claim more thread-local storage than this: every lane pays for it.
const TLS_LIMIT: u64 = 1 << 20;
/// More relocations or symbols than this in one module are a mistake or an attack.
const TABLE_LIMIT: usize = 4 << 20;
/// Linkers make about a dozen.
const PROGRAM_HEADERS: usize = 128;
/// Each costs a memory mapping in every domain, and part of a page.
const SEGMENTS: usize = 32;
/// Linkers make about thirty.
const DYNAMIC_ENTRIES: usize = 4096;
/// Bytes of one symbol's name.
const NAME_LIMIT: usize = 16 << 10;

/// A loadable segment, addresses relative to the image.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub start: u32,
    pub len: u32,
    pub file_len: u32,
    pub file_offset: usize,
    pub kind: SegmentKind,
}

impl Load {
    /// First byte of its first page.
    pub(crate) fn page_start(&self) -> u32 {
        self.start & !(PAGE as u32 - 1)
    }

    /// End of its last page.
    pub(crate) fn page_end(&self) -> u32 {
        (self.start + self.len).next_multiple_of(PAGE as u32)
    }

    /// End of the last page that has bytes of the file.
    pub(crate) fn file_page_end(&self) -> u32 {
        (self.start + self.file_len).next_multiple_of(PAGE as u32)
    }

    pub(crate) fn contains(&self, at: u64, len: u64) -> bool {
        at >= u64::from(self.start)
            && at
                .checked_add(len)
                .is_some_and(|end| end <= u64::from(self.start) + u64::from(self.len))
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct TlsTemplate {
    pub start: u32,
    pub file_len: u32,
    pub len: u32,
    pub align: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Symbol {
    /// Where its name is in the file.
    name: (u32, u32),
    pub value: u32,
    pub size: u64,
    pub kind: u8,
    pub defined: bool,
    pub weak: bool,
    /// Global or weak, and of default or protected visibility.
    pub exported: bool,
}

impl Symbol {
    /// Its name, in the file that it was read from.
    pub(crate) fn name<'a>(&self, file: &'a [u8]) -> &'a str {
        let (start, end) = (self.name.0 as usize, self.name.1 as usize);
        // Checked when it was read.
        std::str::from_utf8(&file[start..end]).unwrap_or_default()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RelocationKind {
    /// base + addend
    Relative,
    /// symbol + addend
    Symbol,
    /// offset of a thread-local symbol from the thread pointer, + addend
    ThreadPointer,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Relocation {
    pub offset: u32,
    pub kind: RelocationKind,
    /// Index of the symbol; 0 is none.
    pub symbol: u32,
    pub addend: i64,
}

/// What a module file says.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub loads: Vec<Load>,
    pub text: usize,
    pub image_len: u32,
    /// Where its table of frames (`.eh_frame_hdr`) is, if it has one: for the module's own unwinder.
    pub frames: Option<u32>,
    /// Made read-only after relocation: whole pages.
    pub relro: Option<(u32, u32)>,
    pub tls: Option<TlsTemplate>,
    pub note: Note,
    pub symbols: Vec<Symbol>,
    pub relocations: Vec<Relocation>,
    /// Addresses in the image of the constructors, in order.
    pub constructors: Vec<u32>,
    pub destructors: Vec<u32>,
}

struct Reader<'a> {
    name: &'a str,
    data: &'a [u8],
    loads: Vec<Load>,
    budget: &'a mut Budget,
}

impl<'a> Reader<'a> {
    fn bad<T>(&self, offset: u64, reason: impl Into<String>) -> Result<T, LoadError> {
        Err(LoadError::Malformed {
            name: self.name.into(),
            offset,
            reason: reason.into(),
        })
    }

    fn not<T>(&self, reason: impl Into<String>) -> Result<T, LoadError> {
        Err(LoadError::NotModule {
            name: self.name.into(),
            reason: reason.into(),
        })
    }

    fn over(&self, source: Exceeded) -> LoadError {
        LoadError::Exceeded {
            name: self.name.into(),
            source,
        }
    }

    /// Counts so many entries of some table.
    fn steps(&mut self, count: usize) -> Result<(), LoadError> {
        self.budget.steps(count as u64).map_err(|e| self.over(e))
    }

    /// An empty vector with room for so many.
    fn vec<T>(&mut self, count: usize) -> Result<Vec<T>, LoadError> {
        self.budget.vec(count).map_err(|e| self.over(e))
    }

    /// The bytes of the file behind an address range of the image.
    fn at(&self, address: u64, len: u64) -> Result<&'a [u8], LoadError> {
        for load in &self.loads {
            let start = u64::from(load.start);
            if address >= start
                && address
                    .checked_add(len)
                    .is_some_and(|end| end <= start + u64::from(load.file_len))
            {
                let from = load.file_offset + (address - start) as usize;
                return Ok(&self.data[from..from + len as usize]);
            }
        }
        self.bad(address, format!("{len} bytes are not in the file"))
    }
}

/// Takes a file apart. What it says costs no more than `budget`.
pub(crate) fn parse(name: &str, data: &[u8], budget: &mut Budget) -> Result<Parsed, LoadError> {
    let mut r = Reader {
        name,
        data,
        loads: Vec::new(),
        budget,
    };
    if data.len() < 4 || data[..4] != *b"\x7fELF" {
        return r.not("no ELF file");
    }
    let Ok(header) = FileHeader64::<LittleEndian>::parse(data) else {
        return r.not("no readable 64-bit ELF header");
    };
    if header.e_ident.data != elf::ELFDATA2LSB || header.e_ident.class != elf::ELFCLASS64 {
        return r.not("not a 64-bit little-endian ELF file");
    }
    if header.e_machine(ENDIAN) != elf::EM_X86_64 {
        return r.not(format!("for machine {}, not x86-64", header.e_machine(ENDIAN).0));
    }
    if header.e_type(ENDIAN) != elf::ET_DYN {
        return r.not("no shared object (ET_DYN); link it with `ringfence cc -o NAME.rf`");
    }
    let Ok(headers) = header.program_headers(ENDIAN, data) else {
        return r.bad(header.e_phoff(ENDIAN), "program headers lie outside the file");
    };
    if headers.len() > PROGRAM_HEADERS {
        return r.bad(
            header.e_phoff(ENDIAN),
            format!(
                "{} program headers, at most {PROGRAM_HEADERS} are allowed",
                headers.len()
            ),
        );
    }
    r.loads = r.vec(SEGMENTS)?;

    let mut note = None;
    let mut dynamic = None;
    let mut relro = None;
    let mut tls = None;
    let mut frames = None;
    for p in headers {
        let (vaddr, memsz, filesz) = (p.p_vaddr(ENDIAN), p.p_memsz(ENDIAN), p.p_filesz(ENDIAN));
        match p.p_type(ENDIAN) {
            elf::PT_LOAD => load(&mut r, p)?,
            elf::PT_INTERP => {
                return r.not("it has a program interpreter: it was linked as an ordinary program");
            }
            elf::PT_GNU_STACK if p.p_flags(ENDIAN).0 & elf::PF_X.0 != 0 => {
                return r.bad(vaddr, "demands an executable stack");
            }
            elf::PT_NOTE if note.is_none() => note = find_note(&mut r, p)?,
            elf::PT_DYNAMIC => dynamic = Some((vaddr, filesz)),
            elf::PT_GNU_RELRO => relro = Some((vaddr, memsz)),
            elf::PT_GNU_EH_FRAME => frames = Some((vaddr, memsz)),
            elf::PT_TLS => tls = Some((vaddr, filesz, memsz, p.p_align(ENDIAN))),
            _ => {}
        }
    }
    let Some(note) = note else {
        return r.not("no .note.ringfence; build it with `ringfence cc`");
    };
    if note.abi != ringfence_isa::ABI_VERSION {
        let (found, expected) = (note.abi, ringfence_isa::ABI_VERSION);
        return Err(LoadError::Version {
            name: name.into(),
            found,
            expected,
        });
    }

    if r.loads.first().is_none_or(|l| l.page_start() != 0) {
        return r.bad(0, "the image does not start at address 0");
    }
    for pair in r.loads.windows(2) {
        if pair[1].page_start() < pair[0].page_end() {
            return r.bad(
                pair[1].start.into(),
                "segments overlap, share a page or are out of order",
            );
        }
    }
    let image_len = r.loads.last().map_or(0, Load::page_end);
    let mut texts = r
        .loads
        .iter()
        .enumerate()
        .filter(|(_, l)| l.kind == SegmentKind::Text)
        .map(|(i, _)| i);
    let Some(text) = texts.next() else {
        return r.bad(0, "no executable segment");
    };
    if texts.next().is_some() {
        return r.bad(0, "more than one executable segment");
    }
    if !r.loads[text].start.is_multiple_of(PAGE as u32) || r.loads[text].file_len != r.loads[text].len {
        return r.bad(
            r.loads[text].start.into(),
            "the executable segment is not whole in the file, from a page on",
        );
    }
    let relro = relro.map(|range| check_relro(&r, range)).transpose()?.flatten();
    let tls = tls.map(|t| check_tls(&r, t)).transpose()?.filter(|t| t.len > 0);

    let frames = frames.filter(|&(at, len)| len > 0 && r.loads.iter().any(|l| l.contains(at, len)));

    if r.loads.iter().map(|l| u64::from(l.file_len)).sum::<u64>() > data.len() as u64 {
        return r.bad(0, "segments share bytes of the file");
    }

    let symbols = symbols(&mut r, header)?;
    let mut parsed = Parsed {
        text,
        image_len,
        frames: frames.map(|(at, _)| at as u32),
        relro,
        tls,
        note,
        symbols,
        relocations: Vec::new(),
        constructors: Vec::new(),
        destructors: Vec::new(),
        loads: Vec::new(),
    };
    if let Some((at, len)) = dynamic {
        read_dynamic(&mut r, &mut parsed, at, len)?;
    }
    parsed.loads = r.loads;
    Ok(parsed)
}

fn load(r: &mut Reader<'_>, p: &elf::ProgramHeader64<LittleEndian>) -> Result<(), LoadError> {
    let (offset, vaddr) = (p.p_offset(ENDIAN), p.p_vaddr(ENDIAN));
    let (filesz, memsz, flags) = (p.p_filesz(ENDIAN), p.p_memsz(ENDIAN), p.p_flags(ENDIAN).0);
    if memsz == 0 {
        return Ok(());
    }
    let room = u64::from(window::IMAGES_END - window::IMAGES);
    if filesz > memsz || vaddr.checked_add(memsz).is_none_or(|end| end > room) {
        return r.bad(vaddr, "a segment does not fit a window's image area");
    }
    if offset
        .checked_add(filesz)
        .is_none_or(|end| end > r.data.len() as u64)
    {
        return r.bad(offset, "a segment lies outside the file");
    }
    if offset % PAGE != vaddr % PAGE {
        return r.bad(offset, "a segment's offset and address differ within the page");
    }
    let (x, w) = (flags & elf::PF_X.0 != 0, flags & elf::PF_W.0 != 0);
    let kind = match (x, w) {
        (true, true) => return r.bad(vaddr, "a segment is both writable and executable"),
        (true, false) => SegmentKind::Text,
        (false, true) => SegmentKind::Data,
        (false, false) => SegmentKind::ReadOnly,
    };
    if r.loads.len() == SEGMENTS {
        return r.bad(vaddr, format!("more than {SEGMENTS} loadable segments"));
    }
    r.loads.push(Load {
        start: vaddr as u32,
        len: memsz as u32,
        file_len: filesz as u32,
        file_offset: offset as usize,
        kind,
    });
    Ok(())
}

fn find_note(r: &mut Reader<'_>, p: &elf::ProgramHeader64<LittleEndian>) -> Result<Option<Note>, LoadError> {
    let Ok(Some(mut notes)) = p.notes(ENDIAN, r.data) else {
        return Ok(None);
    };
    while let Ok(Some(n)) = notes.next() {
        r.steps(1)?;
        if n.name() == note::NAME.as_bytes()
            && n.n_type(ENDIAN).0 == note::TYPE
            && n.desc().len() >= note::DESC_LEN
        {
            let word =
                |i: usize| u32::from_le_bytes(n.desc()[4 * i..4 * i + 4].try_into().expect("four bytes"));
            return Ok(Some(Note {
                abi: word(0),
                flags: word(1),
                features: word(2),
            }));
        }
    }
    Ok(None)
}

fn check_relro(r: &Reader<'_>, (at, len): (u64, u64)) -> Result<Option<(u32, u32)>, LoadError> {
    let holds = |l: &&Load| {
        l.kind == SegmentKind::Data
            && at >= u64::from(l.start)
            && at
                .checked_add(len)
                .is_some_and(|end| end <= u64::from(l.page_end()))
    };
    let Some(load) = r.loads.iter().find(holds) else {
        return r.bad(at, "the read-only-after-relocation part is not in a data segment");
    };
    // Whole pages only: the first one may begin with nothing else of the segment in front of it.
    let start = if at == u64::from(load.start) {
        load.page_start()
    } else {
        (at as u32).next_multiple_of(PAGE as u32)
    };
    let end = (at + len) as u32 & !(PAGE as u32 - 1);
    Ok((start < end).then_some((start, end)))
}

fn check_tls(
    r: &Reader<'_>,
    (at, filesz, memsz, align): (u64, u64, u64, u64),
) -> Result<TlsTemplate, LoadError> {
    let align = align.max(1);
    if memsz > TLS_LIMIT || filesz > memsz || !align.is_power_of_two() || align > PAGE {
        return r.bad(at, "the thread-local segment is too large or badly aligned");
    }
    if filesz > 0
        && !r
            .loads
            .iter()
            .any(|l| l.kind != SegmentKind::Text && l.contains(at, filesz))
    {
        return r.bad(at, "the thread-local segment's template is not in a data segment");
    }
    Ok(TlsTemplate {
        start: at as u32,
        file_len: filesz as u32,
        len: memsz as u32,
        align: align as u32,
    })
}

fn symbols(r: &mut Reader<'_>, header: &FileHeader64<LittleEndian>) -> Result<Vec<Symbol>, LoadError> {
    let Ok(sections) = header.sections(ENDIAN, r.data) else {
        return r.bad(header.e_shoff(ENDIAN), "section headers lie outside the file");
    };
    r.steps(sections.len())?;
    let Ok(table) = sections.symbols(ENDIAN, r.data, elf::SHT_DYNSYM) else {
        return r.bad(0, "the dynamic symbol table lies outside the file");
    };
    if table.len() > TABLE_LIMIT {
        return r.bad(0, format!("more than {TABLE_LIMIT} dynamic symbols"));
    }
    let mut symbols = r.vec(table.len())?;
    if table.is_empty() {
        return Ok(symbols);
    }
    let strings = sections
        .section(table.string_section())
        .and_then(|s| Ok((s.sh_offset(ENDIAN), s.data(ENDIAN, r.data)?)));
    let Ok((strings_at, strings)) = strings else {
        return r.bad(0, "the dynamic symbols' names lie outside the file");
    };
    for s in table.iter() {
        let at = s.st_name(ENDIAN);
        let Some(from) = strings.get(at as usize..) else {
            return r.bad(
                strings_at + u64::from(at),
                "a dynamic symbol's name lies outside the string table",
            );
        };
        let from = &from[..from.len().min(NAME_LIMIT + 1)];
        let Some(len) = from.iter().position(|&b| b == 0) else {
            return r.bad(
                strings_at + u64::from(at),
                format!("a dynamic symbol's name has no end, or is longer than {NAME_LIMIT} bytes"),
            );
        };
        r.steps(1 + len)?;
        if std::str::from_utf8(&from[..len]).is_err() {
            return r.bad(
                strings_at + u64::from(at),
                "a dynamic symbol's name is no UTF-8 text",
            );
        }
        // The file has less than 4 GiB, and the string table lies in it.
        let start = strings_at as u32 + at;
        let value = s.st_value(ENDIAN);
        let section = s.st_shndx(ENDIAN);
        let defined = section != elf::SHN_UNDEF;
        // Absolute symbols have no place in an image.
        let absolute = section == elf::SHN_ABS;
        let bind = s.st_bind();
        let visible = matches!(s.st_visibility(), elf::STV_DEFAULT | elf::STV_PROTECTED);
        symbols.push(Symbol {
            name: (start, start + len as u32),
            value: u32::try_from(value).unwrap_or(u32::MAX),
            size: s.st_size(ENDIAN),
            kind: s.st_type().0,
            defined,
            weak: bind == elf::STB_WEAK,
            exported: defined
                && !absolute
                && visible
                && len > 0
                && matches!(bind, elf::STB_GLOBAL | elf::STB_WEAK | elf::STB_GNU_UNIQUE),
        });
    }
    Ok(symbols)
}

fn read_dynamic(r: &mut Reader<'_>, parsed: &mut Parsed, at: u64, len: u64) -> Result<(), LoadError> {
    let section = r.at(at, len & !15)?;
    let entries = || {
        let word = |b: &[u8]| u64::from_le_bytes(b.try_into().expect("8 bytes"));
        section
            .chunks_exact(16)
            .map(move |e| (word(&e[..8]), word(&e[8..])))
            .take_while(|e| e.0 != 0)
    };
    if entries().nth(DYNAMIC_ENTRIES).is_some() {
        return r.bad(
            at,
            format!("more than {DYNAMIC_ENTRIES} entries in the dynamic section"),
        );
    }
    let get = |tag: elf::DynamicTag| entries().find(|(t, _)| *t == tag.0 as u64).map(|e| e.1);
    if get(elf::DT_TEXTREL).is_some()
        || get(elf::DT_FLAGS).is_some_and(|f| f & elf::DF_TEXTREL.0 != 0)
        || get(elf::DT_REL).is_some()
        || get(elf::DT_RELR).is_some()
    {
        return r.bad(at, "text relocations, REL or RELR relocations");
    }
    for (table, size) in [(elf::DT_RELA, elf::DT_RELASZ), (elf::DT_JMPREL, elf::DT_PLTRELSZ)] {
        let (Some(table), Some(size)) = (get(table), get(size)) else {
            continue;
        };
        if size % 24 != 0 || size / 24 > TABLE_LIMIT as u64 {
            return r.bad(table, "the relocation table has an impossible size");
        }
        let count = (size / 24) as usize;
        r.steps(count)?;
        r.budget
            .grow(&mut parsed.relocations, count)
            .map_err(|e| r.over(e))?;
        for entry in r.at(table, size)?.chunks_exact(24) {
            let word = |i: usize| u64::from_le_bytes(entry[8 * i..8 * i + 8].try_into().expect("8 bytes"));
            if let Some(relocation) = relocation(r, parsed, word(0), word(1), word(2) as i64)? {
                parsed.relocations.push(relocation);
            }
        }
    }
    if get(elf::DT_INIT).is_some_and(|a| a != 0) || get(elf::DT_FINI).is_some_and(|a| a != 0) {
        return r.bad(at, "DT_INIT or DT_FINI; constructors belong into DT_INIT_ARRAY");
    }
    for (array, size, first) in [
        (elf::DT_INIT_ARRAY, elf::DT_INIT_ARRAYSZ, true),
        (elf::DT_FINI_ARRAY, elf::DT_FINI_ARRAYSZ, false),
    ] {
        let (Some(array), Some(size)) = (get(array), get(size)) else {
            continue;
        };
        let list = functions(r, parsed, array, size)?;
        *if first {
            &mut parsed.constructors
        } else {
            &mut parsed.destructors
        } = list;
    }
    Ok(())
}

/// The functions of an array of pointers: what the relocations put there.
fn functions(r: &mut Reader<'_>, parsed: &Parsed, array: u64, size: u64) -> Result<Vec<u32>, LoadError> {
    if !size.is_multiple_of(8) || size > 8 * 65_536 {
        return r.bad(array, "an array of constructors has an impossible size");
    }
    let Some(end) = array.checked_add(size) else {
        return r.bad(array, "an array of constructors at an impossible place");
    };
    r.steps(parsed.relocations.len())?;
    let inside = |rel: &&Relocation| (array..end).contains(&u64::from(rel.offset));
    let count = parsed.relocations.iter().filter(inside).count();
    let mut found: Vec<(u32, u32)> = r.vec(count)?;
    let mut list = r.vec(count)?;
    for rel in parsed.relocations.iter().filter(inside) {
        let target = match rel.kind {
            RelocationKind::Relative => rel.addend,
            RelocationKind::Symbol if parsed.symbols[rel.symbol as usize].defined => {
                i64::from(parsed.symbols[rel.symbol as usize].value).wrapping_add(rel.addend)
            }
            _ => return r.bad(rel.offset.into(), "a constructor is not a function of the module"),
        };
        match u32::try_from(target) {
            Ok(target) => found.push((rel.offset, target)),
            Err(_) => return r.bad(rel.offset.into(), "a constructor is not a function of the module"),
        }
    }
    found.sort_unstable();
    found.dedup_by_key(|f| f.0);
    list.extend(found.iter().map(|f| f.1));
    Ok(list)
}

fn relocation(
    r: &Reader<'_>,
    parsed: &Parsed,
    offset: u64,
    info: u64,
    addend: i64,
) -> Result<Option<Relocation>, LoadError> {
    let kind = match elf::RelocationType(info as u32) {
        elf::R_X86_64_NONE => return Ok(None),
        elf::R_X86_64_RELATIVE => RelocationKind::Relative,
        elf::R_X86_64_64 | elf::R_X86_64_GLOB_DAT | elf::R_X86_64_JUMP_SLOT => RelocationKind::Symbol,
        elf::R_X86_64_TPOFF64 => RelocationKind::ThreadPointer,
        other => return r.bad(offset, format!("relocation type {} is not allowed", other.0)),
    };
    let symbol = (info >> 32) as u32;
    if symbol as usize >= parsed.symbols.len().max(1) {
        return r.bad(
            offset,
            format!("relocation names symbol {symbol}, which does not exist"),
        );
    }
    if kind == RelocationKind::Symbol && symbol == 0 {
        return r.bad(offset, "relocation without a symbol");
    }
    // Not in what is only zeroes: each would make a page of the host's memory out of 24 bytes of the file.
    let written = |l: &Load| {
        l.kind == SegmentKind::Data
            && l.contains(offset, 8)
            && offset + 8 - u64::from(l.start) <= l.file_len.into()
    };
    if !r.loads.iter().any(written) {
        return r.bad(offset, "relocation outside the data segments' part of the file");
    }
    Ok(Some(Relocation {
        offset: offset as u32,
        kind,
        symbol,
        addend,
    }))
}
