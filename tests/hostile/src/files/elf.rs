//! Module files made by hand, in every part of which something can be wrong.

use ringfence_isa::{ABI_VERSION, identifier, note};

const PAGE: usize = 4096;

/// A section that is not loaded.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Its name.
    pub name: Vec<u8>,
    /// `sh_type`.
    pub kind: u32,
    /// `sh_flags`.
    pub flags: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// How much farther it says it goes.
    pub beyond: u64,
}

/// A symbol.
#[derive(Clone, Copy, Debug)]
pub struct Symbol {
    /// Where its name is.
    pub name: u32,
    /// Kind and binding.
    pub info: u8,
    /// Its section, 0 if it is not defined.
    pub section: u16,
    /// Its place.
    pub value: u64,
    /// Its size.
    pub size: u64,
}

/// A program header besides the usual ones.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// `p_type`.
    pub kind: u32,
    /// `p_flags`.
    pub flags: u32,
    /// Offset, address, length in the file, in memory, alignment.
    pub words: [u64; 5],
}

/// A change of the finished file: this many bytes (1 to 8) at a place in it.
#[derive(Clone, Copy, Debug)]
pub struct Patch {
    /// The part of the file, and a place in it; both are taken modulo what there is.
    pub part: Part,
    /// The place.
    pub at: u64,
    /// How many bytes.
    pub len: u64,
    /// Their value.
    pub value: u64,
}

/// A part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Any byte.
    Any,
    /// The header and what follows it: program headers, notes.
    Head,
    /// The headers of sections.
    Sections,
    /// The dynamic table and relocations.
    Dynamic,
    /// Machine code.
    Text,
}

/// What is in a file.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Machine code.
    pub text: Vec<u8>,
    /// Writable data.
    pub data: Vec<u8>,
    /// Zeroes behind it.
    pub zeroes: u64,
    /// Dynamic symbols, names, relocations.
    pub symbols: Vec<Symbol>,
    /// Their names.
    pub strings: Vec<u8>,
    /// Offset, info, addend.
    pub relocations: Vec<[u64; 3]>,
    /// More of the dynamic table.
    pub dynamic: Vec<(u64, u64)>,
    /// `DT_INIT_ARRAY`: offset in the data, and size.
    pub constructors: Option<(u64, u64)>,
    /// `DT_FINI_ARRAY`, in the same way.
    pub destructors: Option<(u64, u64)>,
    /// Notes before the right one.
    pub notes: Vec<u8>,
    /// Program headers.
    pub segments: Vec<Segment>,
    /// Sections.
    pub sections: Vec<Section>,
    /// All symbols, for messages.
    pub symtab: Vec<Symbol>,
    /// Their names.
    pub strtab: Vec<u8>,
    /// Changes at last.
    pub patches: Vec<Patch>,
    /// It ends here, or has a hole up to here.
    pub len: Option<u64>,
}

fn words(out: &mut Vec<u8>, words: &[u64]) {
    words.iter().for_each(|w| out.extend(w.to_le_bytes()));
}

fn pad(out: &mut Vec<u8>, to: usize) -> usize {
    out.resize(out.len().next_multiple_of(to), 0);
    out.len()
}

/// Offsets in the text of the functions that every file has: one that faults, and one that calls itself so many times first.
pub const CRASH: u64 = 0;
/// Its parameter is the depth.
pub const DEEP: u64 = 16;
/// The sum of its parameters.
pub const SUM: u64 = 48;
/// Takes some tens of microseconds.
pub const SHORT: u64 = 64;
/// Takes some milliseconds.
pub const LONG: u64 = 96;

/// Where the text is.
pub const TEXT: u64 = 0x10_000;

fn text() -> Vec<u8> {
    let marker = identifier::marker(identifier::FUNCTION);
    let mut text = marker.to_vec();
    text.extend([0x0F, 0x0B]);
    text.resize(DEEP as usize, 0xCC);
    text.extend(marker);
    // test %edi,%edi; je 1f; dec %edi; call deep; ret; 1: ud2
    text.extend([0x85, 0xFF, 0x74, 0x08, 0xFF, 0xCF]);
    let back = DEEP as i32 - (text.len() as i32 + 5);
    text.push(0xE8);
    text.extend(back.to_le_bytes());
    text.extend([0xC3, 0x0F, 0x0B]);
    text.resize(SUM as usize, 0xCC);
    text.extend(marker);
    // lea (%rdi,%rsi),%eax; ret
    text.extend([0x8D, 0x04, 0x37, 0xC3]);
    for (at, rounds) in [(SHORT, 150_000_u32), (LONG, 20_000_000)] {
        text.resize(at as usize, 0xCC);
        text.extend(marker);
        // mov $rounds, %ecx; 1: dec %ecx; jne 1b; ret
        text.push(0xB9);
        text.extend(rounds.to_le_bytes());
        text.extend([0xFF, 0xC9, 0x75, 0xFC, 0xC3]);
    }
    text
}

impl Default for Spec {
    fn default() -> Self {
        let strings = b"\0crash\0deep\0sum\0".to_vec();
        let function = |name, at| Symbol {
            name,
            info: 0x12,
            section: 1,
            value: TEXT + at,
            size: 16,
        };
        let symbols = vec![function(1, CRASH), function(7, DEEP), function(12, SUM)];
        Spec {
            text: text(),
            data: vec![0x5A; 64],
            zeroes: 0,
            symtab: symbols.clone(),
            strtab: strings.clone(),
            symbols,
            strings,
            relocations: vec![],
            dynamic: vec![],
            constructors: None,
            destructors: None,
            notes: vec![],
            segments: vec![],
            sections: vec![],
            patches: vec![],
            len: None,
        }
    }
}

impl Spec {
    /// Where the data begins.
    #[must_use]
    pub fn data_start(&self) -> u64 {
        (TEXT + self.text.len() as u64).next_multiple_of(PAGE as u64)
    }

    /// The end of the text.
    #[must_use]
    pub fn text_end(&self) -> u64 {
        TEXT + self.text.len() as u64
    }

    /// The file, without the hole behind it.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = vec![0; TEXT as usize];
        out.extend(&self.text);
        let data = pad(&mut out, PAGE);
        out.extend(&self.data);
        pad(&mut out, 16);
        let data_len = (out.len() - data) as u64;
        let end = (data as u64 + data_len + self.zeroes).next_multiple_of(PAGE as u64);
        let tables = pad(&mut out, PAGE);
        let shift = end.max(tables as u64) - tables as u64;
        let relocations = out.len();
        self.relocations.iter().for_each(|r| words(&mut out, r));
        let dynamic = out.len();
        if dynamic > relocations {
            words(
                &mut out,
                &[7, relocations as u64 + shift, 8, (dynamic - relocations) as u64],
            );
        }
        if let Some((at, size)) = self.constructors {
            words(&mut out, &[25, data as u64 + at, 27, size]);
        }
        if let Some((at, size)) = self.destructors {
            words(&mut out, &[26, data as u64 + at, 28, size]);
        }
        self.dynamic
            .iter()
            .for_each(|&(tag, value)| words(&mut out, &[tag, value]));
        words(&mut out, &[0, 0]);
        let tables_end = out.len();

        let mut headers: Vec<[u64; 8]> = vec![[0; 8]];
        let mut names = vec![0];
        let mut add = |out: &mut Vec<u8>, s: &Section, link: u64, entry: u64| {
            let name = names.len() as u64;
            names.extend(&s.name);
            names.push(0);
            let at = out.len() as u64;
            out.extend(&s.bytes);
            let len = s.bytes.len() as u64;
            headers.push([
                name | u64::from(s.kind) << 32,
                s.flags,
                0,
                at,
                len.saturating_add(s.beyond),
                link,
                1,
                entry,
            ]);
        };
        let table = |symbols: &[Symbol]| {
            let mut bytes = vec![0; 24];
            for s in symbols {
                bytes.extend(s.name.to_le_bytes());
                bytes.extend([s.info, 0]);
                bytes.extend(s.section.to_le_bytes());
                words(&mut bytes, &[s.value, s.size]);
            }
            bytes
        };
        let section = |name: &[u8], kind, bytes| Section {
            name: name.to_vec(),
            kind,
            bytes,
            ..Section::default()
        };
        add(&mut out, &section(b".dynsym", 11, table(&self.symbols)), 2, 24);
        add(&mut out, &section(b".dynstr", 3, self.strings.clone()), 0, 0);
        add(&mut out, &section(b".symtab", 2, table(&self.symtab)), 4, 24);
        add(&mut out, &section(b".strtab", 3, self.strtab.clone()), 0, 0);
        self.sections.iter().for_each(|s| add(&mut out, s, 0, 0));
        // The names of all, last.
        let mut all = names.clone();
        all.extend(b".shstrtab\0");
        headers.push([
            names.len() as u64 | 3 << 32,
            0,
            0,
            out.len() as u64,
            all.len() as u64,
            0,
            1,
            0,
        ]);
        out.extend(all);
        let sections = pad(&mut out, 8);
        headers.iter().for_each(|h| words(&mut out, h));

        let note = self.note();
        let mut segments: Vec<[u64; 7]> = Vec::new();
        let mut segment =
            |kind: u64, flags: u64, at: usize, address: u64, file: u64, memory: u64, align: u64| {
                segments.push([
                    kind | flags << 32,
                    at as u64,
                    address,
                    address,
                    file,
                    memory,
                    align,
                ]);
            };
        let count = 6 + self.segments.len().min(500);
        let note_at = (64 + 56 * count).next_multiple_of(8);
        let text_len = self.text.len() as u64;
        segment(1, 4, 0, 0, TEXT, TEXT, 4096);
        segment(1, 5, TEXT as usize, TEXT, text_len, text_len, 4096);
        segment(1, 6, data, data as u64, data_len, data_len + self.zeroes, 4096);
        let len = (tables_end - tables) as u64;
        segment(1, 4, tables, tables as u64 + shift, len, len, 4096);
        let len = (tables_end - dynamic) as u64;
        segment(2, 4, dynamic, dynamic as u64 + shift, len, len, 8);
        segment(
            4,
            4,
            note_at,
            note_at as u64,
            note.len() as u64,
            note.len() as u64,
            4,
        );
        for s in self.segments.iter().take(500) {
            let [at, address, file, memory, align] = s.words;
            segment(
                s.kind.into(),
                s.flags.into(),
                at as usize,
                address,
                file,
                memory,
                align,
            );
        }
        let mut head = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
        head.extend([3, 0, 62, 0, 1, 0, 0, 0]);
        words(&mut head, &[0, 64, sections as u64]);
        head.extend([0; 4]);
        let sections_count = headers.len() as u16;
        for half in [
            64,
            56,
            segments.len() as u16,
            64,
            sections_count,
            sections_count.wrapping_sub(1),
        ] {
            head.extend(half.to_le_bytes());
        }
        segments.iter().for_each(|s| words(&mut head, s));
        head.resize(note_at, 0);
        head.extend(note);
        out[..head.len()].copy_from_slice(&head);

        for p in &self.patches {
            let range = match p.part {
                Part::Any => 0..out.len(),
                Part::Head => 0..head.len(),
                Part::Sections => sections..out.len(),
                Part::Dynamic => relocations..tables_end,
                Part::Text => TEXT as usize..(TEXT + text_len) as usize,
            };
            let at = range.start + (p.at % range.len().max(1) as u64) as usize;
            let len = (p.len as usize).min(out.len() - at).min(8);
            out[at..at + len].copy_from_slice(&p.value.to_le_bytes()[..len]);
        }
        if let Some(len) = self.len.filter(|&len| len < out.len() as u64) {
            out.truncate(len as usize);
        }
        out
    }

    /// Length of the file with the hole behind it.
    #[must_use]
    pub fn whole(&self, bytes: &[u8]) -> u64 {
        self.len.unwrap_or(0).max(bytes.len() as u64)
    }

    fn note(&self) -> Vec<u8> {
        let mut note = self.notes.clone();
        // The head has so much room.
        note.truncate(TEXT as usize / 4);
        pad(&mut note, 4);
        for word in [note::NAME.len() as u32 + 1, note::DESC_LEN as u32, note::TYPE] {
            note.extend(word.to_le_bytes());
        }
        note.extend(note::NAME.as_bytes());
        note.push(0);
        pad(&mut note, 4);
        for word in [ABI_VERSION, 0, 0, 0] {
            note.extend(word.to_le_bytes());
        }
        note
    }
}
