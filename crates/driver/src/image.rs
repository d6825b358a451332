//! A linked module file, read and checked for the shape that `docs/abi.md` gives it.

use std::ops::Range;

use object::LittleEndian as Le;
use object::elf;
use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader, SectionHeader, Sym};
use ringfence_core::work::{Budget, Exceeded};
use ringfence_isa::{ABI_VERSION, PAGE, note};
use ringfence_verify::{Segment, SegmentKind};

/// Why a file is not a module.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// Not ELF, or so broken that it cannot be read.
    #[error("not a readable ELF file: {0}")]
    Elf(#[from] object::read::Error),
    /// For something else than 64-bit x86.
    #[error("made for another machine; modules are ELF64 little-endian x86-64")]
    Machine,
    /// Executable, object file, core.
    #[error("ELF file of type {0}, not a shared object; link it with 'ringfence cc -o NAME.rf'")]
    Type(u16),
    /// A program header that contradicts the file or the others.
    #[error("segment {index}: {what}")]
    Segment {
        /// Its number.
        index: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// No executable segment, or several.
    #[error("{0} executable segments; a module has exactly one")]
    TextSegments(usize),
    /// Something that a module must not have.
    #[error("{0}")]
    Forbidden(&'static str),
    /// A name that is no text, or has no end.
    #[error("a dynamic symbol's name is no text of at most {NAME} bytes")]
    Name,
    /// Its tables take more work or memory than any linker's output.
    #[error("reading it {0}; no linker makes such a file")]
    Exceeded(#[from] Exceeded),
    /// No `.note.ringfence`.
    #[error(
        "no .note.ringfence: this is an ordinary shared object, not a module; build it with ringfence cc"
    )]
    NoNote,
    /// The note is for another version of the interface.
    #[error("built for interface version {0}, this is version {ABI_VERSION}; build it again")]
    Version(u32),
}

/// A loadable segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Address relative to the image's start.
    pub address: u64,
    /// Length in memory.
    pub memory: u64,
    /// Offset in the file.
    pub offset: u64,
    /// Length in the file.
    pub file: u64,
    /// Whether it is writable.
    pub writable: bool,
    /// Whether it is executable.
    pub executable: bool,
}

/// What a symbol names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SymbolKind {
    /// A function.
    Function,
    /// A data object.
    Object,
    /// A thread-local object.
    Tls,
    /// The symbol has no type, as labels of hand-written assembly.
    Untyped,
}

/// A symbol of the static or of the dynamic symbol table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its address; for thread-local objects, the offset in the thread block's image.
    pub address: u64,
    /// Its size.
    pub size: u64,
    /// What it names.
    pub kind: SymbolKind,
    /// Whether it is defined here.
    pub defined: bool,
    /// Whether it is weak.
    pub weak: bool,
}

/// The note's claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// Interface version.
    pub version: u32,
    /// [`note::flag`] bits.
    pub flags: u32,
    /// Processor features the code was compiled for.
    pub features: u32,
}

/// A module file.
#[derive(Debug)]
pub struct Image<'a> {
    /// The whole file.
    pub data: &'a [u8],
    /// Loadable segments in order of address.
    pub loads: Vec<Load>,
    /// The one executable segment.
    pub text: Load,
    /// Symbols for messages (`.symtab`, or the dynamic ones where there is none), in order of address.
    pub symbols: Vec<Symbol<'a>>,
    /// Dynamic symbols: exports and imports.
    pub dynamic: Vec<Symbol<'a>>,
    /// The note, if there is one.
    pub note: Option<Note>,
    /// Where the notes' descriptors are in the file.
    pub note_places: Vec<Range<usize>>,
    /// Places of addresses in `DT_INIT`, `DT_FINI` and the arrays: (name, address).
    pub initialisers: Vec<(&'static str, u64)>,
    /// Size of the thread-local block, if there is one.
    pub tls: Option<u64>,
    /// Libraries that the file asks for (`DT_NEEDED`).
    pub needed: Vec<&'a str>,
    /// Parts of the executable segment's file that no section covers.
    pub gaps: Vec<Range<u64>>,
    /// Relocations: number by type.
    pub relocations: Vec<(u32, usize)>,
    /// Whether DWARF line information is present.
    pub debug_info: bool,
}

type Elf<'a> = ElfFile64<'a, Le>;

// What the loader refuses as well (docs/security/loading.md).

/// Bytes of one name.
const NAME: usize = 16 << 10;
const PROGRAM_HEADERS: usize = 128;
const SEGMENTS: usize = 32;
const DYNAMIC_ENTRIES: usize = 4096;
/// Constructors, or destructors.
const INITIALISERS: u64 = 65_536;
/// It takes seven.
const RELOCATION_TYPES: usize = 64;

impl<'a> Image<'a> {
    /// Reads a module file. Whether it has a note is left to the caller ([`Image::require_note`]).
    ///
    /// # Errors
    ///
    /// Anything that keeps the file from being a module, in the order in which a reader would look.
    pub fn parse(data: &'a [u8]) -> Result<Image<'a>, ImageError> {
        let mut budget = Budget::for_file(data.len() as u64);
        budget.bytes(data.len() as u64)?;
        Image::within(data, &mut budget)
    }

    /// The same, under what is left of a budget that has paid for `data`.
    ///
    /// # Errors
    ///
    /// As for [`Image::parse`].
    pub fn within(data: &'a [u8], budget: &mut Budget) -> Result<Image<'a>, ImageError> {
        check_header(data)?;
        let file: Elf<'a> = Elf::parse(data)?;
        let loads = loads(&file, data)?;
        let executable: Vec<&Load> = loads.iter().filter(|l| l.executable).collect();
        let text = match executable.as_slice() {
            [one] => **one,
            several => return Err(ImageError::TextSegments(several.len())),
        };
        let mut image = Image {
            data,
            loads,
            text,
            symbols: symbols(&file, false, budget)?,
            dynamic: symbols(&file, true, budget)?,
            note: None,
            note_places: Vec::new(),
            initialisers: Vec::new(),
            tls: None,
            needed: Vec::new(),
            gaps: Vec::new(),
            relocations: Vec::new(),
            debug_info: false,
        };
        if image.symbols.is_empty() {
            image.symbols = budget.vec(image.dynamic.len())?;
            image
                .symbols
                .extend(image.dynamic.iter().filter(|s| s.defined).copied());
        }
        // What sorting takes meanwhile.
        let sorting = (image.symbols.len() * size_of::<Symbol<'_>>()) as u64 / 2;
        budget.bytes(sorting)?;
        image.symbols.sort_by_key(|s| s.address);
        budget.give_back(sorting);
        image.headers(&file, budget)?;
        image.sections(&file, budget)?;
        image.dynamic_table(&file, budget)?;
        Ok(image)
    }

    /// The note.
    ///
    /// # Errors
    ///
    /// There is none, or it is for another version.
    pub fn require_note(&self) -> Result<Note, ImageError> {
        let note = self.note.ok_or(ImageError::NoNote)?;
        if note.version == ABI_VERSION {
            Ok(note)
        } else {
            Err(ImageError::Version(note.version))
        }
    }

    /// The text's bytes in the file.
    #[must_use]
    pub fn text_bytes(&self) -> &'a [u8] {
        &self.data[self.text_file()]
    }

    /// Where the text is in the file.
    #[must_use]
    pub fn text_file(&self) -> Range<usize> {
        // Checked when the segments were read.
        self.text.offset as usize..(self.text.offset + self.text.file) as usize
    }

    /// The text as it will be mapped: whole pages, the slack filled with `int3`.
    #[must_use]
    pub fn text_pages(&self) -> Vec<u8> {
        let mut text = self.text_bytes().to_vec();
        text.resize(text.len().next_multiple_of(PAGE as usize), 0xCC);
        text
    }

    /// The segments as the verifier wants them.
    #[must_use]
    pub fn segments(&self) -> Vec<Segment> {
        self.loads
            .iter()
            .map(|l| Segment {
                start: l.address as u32,
                len: l.memory as u32,
                kind: match (l.executable, l.writable) {
                    (true, _) => SegmentKind::Text,
                    (false, true) => SegmentKind::Data,
                    (false, false) => SegmentKind::ReadOnly,
                },
            })
            .collect()
    }

    /// The function (or other symbol of the text) that covers `address`, and the offset in it.
    #[must_use]
    pub fn symbol_at(&self, address: u64) -> Option<(&Symbol<'a>, u64)> {
        let text = self.text.address..self.text.address + self.text.memory;
        if !text.contains(&address) {
            return None;
        }
        let after = self.symbols.partition_point(|s| s.address <= address);
        self.symbols[..after]
            .iter()
            .rev()
            .filter(|s| s.defined && text.contains(&s.address) && s.kind != SymbolKind::Tls)
            // The nearest symbols first; a function that covers the place beats a label in it.
            .take(64)
            .find(|s| s.kind == SymbolKind::Function && address < s.address.saturating_add(s.size.max(1)))
            .or_else(|| {
                self.symbols[..after].iter().rev().find(|s| {
                    s.defined && text.contains(&s.address) && s.kind != SymbolKind::Tls && !s.name.is_empty()
                })
            })
            .map(|s| (s, address - s.address))
    }

    /// The name of the place `address` in the text: `function+0x12`.
    #[must_use]
    pub fn place(&self, address: u64) -> Option<String> {
        self.symbol_at(address).map(|(s, off)| {
            if off == 0 {
                s.name.to_owned()
            } else {
                format!("{}+{off:#x}", s.name)
            }
        })
    }

    /// The bytes at `address`, if the file holds them.
    #[must_use]
    pub fn bytes_at(&self, address: u64, len: usize) -> Option<&'a [u8]> {
        let load = self
            .loads
            .iter()
            .find(|l| l.address <= address && address - l.address < l.file)?;
        let start = usize::try_from(load.offset + (address - load.address)).ok()?;
        let end = start.checked_add(len)?;
        (end as u64 <= load.offset + load.file)
            .then(|| self.data.get(start..end))
            .flatten()
    }

    fn headers(&mut self, file: &Elf<'a>, budget: &mut Budget) -> Result<(), ImageError> {
        for header in file.elf_program_headers() {
            let kind = header.p_type(Le);
            if kind == elf::PT_INTERP {
                return Err(ImageError::Forbidden(
                    "PT_INTERP: a program with a loader of its own, not a module",
                ));
            }
            if kind == elf::PT_GNU_STACK && header.p_flags(Le).0 & elf::PF_X.0 != 0 {
                return Err(ImageError::Forbidden("asks for an executable stack"));
            }
            if kind == elf::PT_TLS {
                self.tls = Some(header.p_memsz(Le));
            }
            if kind == elf::PT_NOTE {
                self.notes(header.p_offset(Le), header.p_filesz(Le), budget)?;
            }
        }
        Ok(())
    }

    fn notes(&mut self, offset: u64, len: u64, budget: &mut Budget) -> Result<(), Exceeded> {
        let (Ok(start), Ok(len)) = (usize::try_from(offset), usize::try_from(len)) else {
            return Ok(());
        };
        let end = start.saturating_add(len).min(self.data.len());
        let mut at = start;
        let word = |at: usize| -> Option<u32> {
            self.data
                .get(at..at.checked_add(4)?)
                .and_then(|b| b.try_into().ok())
                .map(u32::from_le_bytes)
        };
        while at.saturating_add(12) <= end {
            budget.step()?;
            let (Some(name_len), Some(desc_len), Some(kind)) = (word(at), word(at + 4), word(at + 8)) else {
                break;
            };
            let name = at + 12;
            let desc = name.saturating_add((name_len as usize).next_multiple_of(4));
            let next = desc.saturating_add((desc_len as usize).next_multiple_of(4));
            if next > end {
                break;
            }
            let named = self.data.get(name..name + name_len as usize);
            if kind == note::TYPE
                && desc_len as usize >= note::DESC_LEN
                && named.and_then(|n| n.strip_suffix(&[0])) == Some(note::NAME.as_bytes())
            {
                let field = |i: usize| word(desc + 4 * i).unwrap_or(0);
                let found = Note {
                    version: field(0),
                    flags: field(1),
                    features: field(2),
                };
                budget.push(&mut self.note_places, desc..desc + note::DESC_LEN)?;
                let merged = self.note.get_or_insert(found);
                merged.flags |= found.flags;
                merged.features |= found.features;
            }
            at = next;
        }
        Ok(())
    }

    /// What section headers tell; a module without them is a module all the same.
    fn sections(&mut self, file: &Elf<'a>, budget: &mut Budget) -> Result<(), Exceeded> {
        let table = file.elf_section_table();
        let end = self.text.address + self.text.file;
        let names = usize::from(file.elf_header().e_shstrndx.get(Le).0);
        let names = section_bytes(file, table.iter().nth(names));
        let mut covered: Vec<Range<u64>> = budget.vec(0)?;
        for section in table.iter() {
            budget.step()?;
            let flags = section.sh_flags(Le).0;
            let (start, size) = (section.sh_addr(Le), section.sh_size(Le));
            if flags & elf::SHF_ALLOC.0 != 0 && start >= self.text.address && start < end {
                budget.push(&mut covered, start..start.saturating_add(size))?;
            }
            let name = names.get(section.sh_name(Le) as usize..).unwrap_or_default();
            self.debug_info |= name.starts_with(b".debug_line\0") || name.starts_with(b".zdebug_line\0");
        }
        covered.sort_unstable_by_key(|r| r.start);
        let mut at = self.text.address;
        for range in covered {
            if range.start > at {
                budget.push(&mut self.gaps, at..range.start)?;
            }
            at = at.max(range.end);
        }
        if at > self.text.address && at < end {
            budget.push(&mut self.gaps, at..end)?;
        }
        Ok(())
    }

    fn dynamic_table(&mut self, file: &Elf<'a>, budget: &mut Budget) -> Result<(), ImageError> {
        let Some(header) = file
            .elf_program_headers()
            .iter()
            .find(|h| h.p_type(Le) == elf::PT_DYNAMIC)
        else {
            return Ok(());
        };
        let dynamics = header.dynamic(Le, self.data)?.unwrap_or(&[]);
        let dynamics = dynamics.split(|d| d.d_tag(Le) == elf::DT_NULL).next();
        let dynamics = dynamics.unwrap_or_default();
        if dynamics.len() > DYNAMIC_ENTRIES {
            return Err(ImageError::Forbidden(
                "more than 4,096 entries in the dynamic section",
            ));
        }
        let strings = strings(file, true);
        for d in dynamics {
            match d.d_tag(Le) {
                elf::DT_NEEDED => {
                    let name = text(strings, d.d_val(Le), budget)?.ok_or(ImageError::Name)?;
                    budget.push(&mut self.needed, name)?;
                }
                elf::DT_TEXTREL => {
                    return Err(ImageError::Forbidden("relocations in the text (DT_TEXTREL)"));
                }
                _ => {}
            }
        }
        let value = |tag: elf::DynamicTag| dynamics.iter().rfind(|d| d.d_tag(Le) == tag).map(|d| d.d_val(Le));
        for (name, tag) in [("DT_INIT", elf::DT_INIT), ("DT_FINI", elf::DT_FINI)] {
            if let Some(address) = value(tag) {
                self.initialisers.push((name, address));
            }
        }
        let mut arrays = Vec::new();
        for (name, array, size) in [
            ("DT_INIT_ARRAY", elf::DT_INIT_ARRAY, elf::DT_INIT_ARRAYSZ),
            ("DT_FINI_ARRAY", elf::DT_FINI_ARRAY, elf::DT_FINI_ARRAYSZ),
        ] {
            let (Some(start), Some(size)) = (value(array), value(size)) else {
                continue;
            };
            if size / 8 > INITIALISERS {
                return Err(ImageError::Forbidden(
                    "more than 65,536 functions at load or unload",
                ));
            }
            arrays.push((name, start..start.saturating_add(size / 8 * 8)));
        }
        let relative = self.rela(value(elf::DT_RELA), value(elf::DT_RELASZ), &arrays, budget)?;
        self.rela(value(elf::DT_JMPREL), value(elf::DT_PLTRELSZ), &[], budget)?;
        for (name, array) in arrays {
            for slot in array.step_by(8) {
                let after = relative.partition_point(|r| r.0 <= slot);
                if let Some(&(_, target)) = relative[..after].last().filter(|r| r.0 == slot) {
                    budget.push(&mut self.initialisers, (name, target))?;
                }
            }
        }
        Ok(())
    }

    /// Counts relocations, and returns the relative ones in `arrays`: slot and target, by slot.
    fn rela(
        &mut self,
        start: Option<u64>,
        size: Option<u64>,
        arrays: &[(&str, Range<u64>)],
        budget: &mut Budget,
    ) -> Result<Vec<(u64, u64)>, ImageError> {
        let mut relative = budget.vec(0)?;
        let (Some(start), Some(size)) = (start, size) else {
            return Ok(relative);
        };
        for i in 0..size / 24 {
            budget.step()?;
            let Some(entry) = self.bytes_at(start.wrapping_add(24 * i), 24) else {
                break;
            };
            let word = |at: usize| {
                let mut bytes = [0; 8];
                bytes.copy_from_slice(&entry[at..at + 8]);
                u64::from_le_bytes(bytes)
            };
            let kind = word(8) as u32;
            match self.relocations.iter().position(|(k, _)| *k == kind) {
                Some(n) => self.relocations[n].1 += 1,
                None if self.relocations.len() == RELOCATION_TYPES => {
                    return Err(ImageError::Forbidden("relocations of more than 64 types"));
                }
                None => self.relocations.push((kind, 1)),
            }
            let inside = arrays.iter().any(|(_, array)| array.contains(&word(0)));
            if kind == elf::R_X86_64_RELATIVE.0 && inside {
                budget.push(&mut relative, (word(0), word(16)))?;
            }
        }
        self.relocations.sort_unstable();
        relative.sort_unstable_by_key(|r| r.0);
        Ok(relative)
    }
}

fn check_header(data: &[u8]) -> Result<(), ImageError> {
    if let Some(ident) = data.get(..20)
        && ident.starts_with(b"\x7fELF")
    {
        let half = |at: usize| u16::from_le_bytes([data[at], data[at + 1]]);
        if ident[4] != 2 || ident[5] != 1 || half(18) != elf::EM_X86_64.0 {
            return Err(ImageError::Machine);
        }
        if half(16) != elf::ET_DYN.0 {
            return Err(ImageError::Type(half(16)));
        }
    }
    // `object` says what else is wrong.
    Ok(elf::FileHeader64::<Le>::parse(data).map(|_| ())?)
}

fn loads(file: &Elf<'_>, data: &[u8]) -> Result<Vec<Load>, ImageError> {
    let mut loads: Vec<Load> = Vec::new();
    if file.elf_program_headers().len() > PROGRAM_HEADERS {
        return Err(ImageError::Forbidden("more than 128 program headers"));
    }
    for (index, header) in file.elf_program_headers().iter().enumerate() {
        if header.p_type(Le) != elf::PT_LOAD {
            continue;
        }
        let flags = header.p_flags(Le).0;
        let load = Load {
            address: header.p_vaddr(Le),
            memory: header.p_memsz(Le),
            offset: header.p_offset(Le),
            file: header.p_filesz(Le),
            writable: flags & elf::PF_W.0 != 0,
            executable: flags & elf::PF_X.0 != 0,
        };
        let wrong = |what| Err(ImageError::Segment { index, what });
        if load.memory == 0 {
            continue;
        }
        if loads.len() == SEGMENTS {
            return Err(ImageError::Forbidden("more than 32 loadable segments"));
        }
        if load.file > load.memory {
            return wrong("longer in the file than in memory");
        }
        match load.offset.checked_add(load.file) {
            Some(end) if end <= data.len() as u64 => {}
            _ => return wrong("lies beyond the end of the file; is the file truncated?"),
        }
        match load.address.checked_add(load.memory) {
            Some(end) if end <= 1 << 30 => {}
            _ => return wrong("does not fit the image area of a window"),
        }
        if load.executable && load.writable {
            return wrong("writable and executable");
        }
        if load.executable && !load.address.is_multiple_of(PAGE) {
            return wrong("executable, but does not start on a page");
        }
        loads.push(load);
    }
    loads.sort_by_key(|l| l.address);
    for pair in loads.windows(2) {
        let end = pair[0].address + pair[0].memory;
        let same_page = (end - 1) / PAGE == pair[1].address / PAGE;
        if end > pair[1].address {
            return Err(ImageError::Forbidden("segments overlap"));
        }
        if same_page && (pair[0].executable || pair[1].executable) {
            return Err(ImageError::Forbidden(
                "the text shares a page with another segment; link with -z separate-code",
            ));
        }
    }
    Ok(loads)
}

/// The bytes of a section; none if it has none in the file, or they lie outside of it.
fn section_bytes<'a>(file: &Elf<'a>, section: Option<&elf::SectionHeader64<Le>>) -> &'a [u8] {
    let bytes = section.and_then(|s| s.data(Le, file.data()).ok());
    bytes.unwrap_or_default()
}

/// The names of one of the two tables of symbols.
fn strings<'a>(file: &Elf<'a>, dynamic: bool) -> &'a [u8] {
    let table = match dynamic {
        true => file.elf_dynamic_symbol_table(),
        false => file.elf_symbol_table(),
    };
    let section = file.elf_section_table().section(table.string_section());
    section_bytes(file, section.ok())
}

/// The text at `at`; `None` if it has no end within [`NAME`] bytes, or is no text. What is looked at is paid: many symbols can
/// share one long name.
fn text<'a>(strings: &'a [u8], at: u64, budget: &mut Budget) -> Result<Option<&'a str>, Exceeded> {
    let Some(rest) = usize::try_from(at).ok().and_then(|at| strings.get(at..)) else {
        return Ok(None);
    };
    let rest = &rest[..rest.len().min(NAME + 1)];
    let len = rest.iter().position(|&b| b == 0);
    budget.steps(1 + len.unwrap_or(rest.len()) as u64 / 8)?;
    Ok(len.and_then(|len| std::str::from_utf8(&rest[..len]).ok()))
}

fn symbols<'a>(file: &Elf<'a>, dynamic: bool, budget: &mut Budget) -> Result<Vec<Symbol<'a>>, ImageError> {
    let table = if dynamic {
        file.elf_dynamic_symbol_table()
    } else {
        file.elf_symbol_table()
    };
    let strings = strings(file, dynamic);
    let mut symbols = budget.vec(table.len())?;
    for s in table.iter() {
        let kind = match s.st_type() {
            elf::STT_FUNC | elf::STT_GNU_IFUNC => SymbolKind::Function,
            elf::STT_OBJECT => SymbolKind::Object,
            elf::STT_TLS => SymbolKind::Tls,
            elf::STT_NOTYPE => SymbolKind::Untyped,
            _ => {
                budget.step()?;
                continue;
            }
        };
        let name = match text(strings, s.st_name(Le).into(), budget)? {
            Some("") => continue,
            Some(name) => name,
            // What is there for messages only is not told.
            None if !dynamic => continue,
            None => return Err(ImageError::Name),
        };
        symbols.push(Symbol {
            name,
            address: s.st_value(Le),
            size: s.st_size(Le),
            kind,
            defined: s.st_shndx(Le) != elf::SHN_UNDEF,
            weak: s.st_bind() == elf::STB_WEAK,
        });
    }
    Ok(symbols)
}
