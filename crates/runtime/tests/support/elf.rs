//! Module files made by hand, so that they can be what no linker makes. File offsets and addresses are the same.

use ringfence_isa::{ABI_VERSION, note};

const PAGE: usize = 4096;

/// A symbol as it stands in the file.
#[derive(Clone, Copy)]
pub struct Symbol {
    pub name: u32,
    pub info: u8,
    pub section: u16,
    pub value: u64,
}

impl Symbol {
    /// A global variable.
    pub fn object(name: u32, value: u64) -> Symbol {
        Symbol {
            name,
            info: 1 << 4 | 1,
            section: 1,
            value,
        }
    }
}

/// A program header: type, flags, offset and address, length in the file, length in memory.
#[derive(Clone, Copy)]
pub struct Segment(pub u32, pub u32, pub u64, pub u64, pub u64);

/// What is in a file.
#[derive(Clone)]
pub struct File {
    pub text: Vec<u8>,
    pub symbols: Vec<Symbol>,
    pub strings: Vec<u8>,
    pub relocations: Vec<[u64; 3]>,
    pub data: usize,
    pub zeroes: u64,
    /// Where `DT_INIT_ARRAY` is in the data, and its size.
    pub constructors: Option<(u64, u64)>,
    pub more: Vec<Segment>,
}

impl Default for File {
    fn default() -> Self {
        File {
            text: vec![0xCC; 64],
            symbols: vec![],
            strings: vec![0],
            relocations: vec![],
            data: 64,
            zeroes: 0,
            constructors: None,
            more: vec![],
        }
    }
}

pub const LOAD: u32 = 1;
pub const NOTE: u32 = 4;
pub const READ: u32 = 4;
pub const WRITE: u32 = 2;
pub const EXECUTE: u32 = 1;

fn padded(out: &mut Vec<u8>) -> u64 {
    out.resize(out.len().next_multiple_of(PAGE), 0);
    out.len() as u64
}

fn words(out: &mut Vec<u8>, words: &[u64]) {
    for w in words {
        out.extend(w.to_le_bytes());
    }
}

impl File {
    /// Where the data begins: what relocations name.
    pub fn data_start(&self) -> u64 {
        (PAGE + self.text.len()).next_multiple_of(PAGE) as u64
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut out = vec![0; PAGE];
        out.extend(&self.text);
        let data = padded(&mut out);
        assert_eq!(data, self.data_start());
        out.resize(out.len() + self.data, 0x5A);
        out.resize(out.len().next_multiple_of(16), 0x5A);
        let end = out.len() as u64;
        // Tables behind the data, in a read-only segment of their own.
        let bss_end = (end + self.zeroes).next_multiple_of(PAGE as u64);
        padded(&mut out);
        let tables = out.len() as u64;
        let shift = bss_end.max(tables) - tables;
        let relocations = out.len() as u64;
        self.relocations.iter().for_each(|r| words(&mut out, r));
        let relocations_len = out.len() as u64 - relocations;
        let dynamic = out.len() as u64;
        if relocations_len > 0 {
            words(&mut out, &[7, relocations + shift, 8, relocations_len]);
        }
        if let Some((at, size)) = self.constructors {
            words(&mut out, &[25, data + at, 27, size]);
        }
        words(&mut out, &[0, 0]);
        let dynamic_len = out.len() as u64 - dynamic;
        let tables_len = out.len() as u64 - tables;
        let symbols = out.len() as u64;
        words(&mut out, &[0, 0, 0]);
        for s in &self.symbols {
            out.extend(s.name.to_le_bytes());
            out.extend([s.info, 0]);
            out.extend(s.section.to_le_bytes());
            words(&mut out, &[s.value, 8]);
        }
        let symbols_len = out.len() as u64 - symbols;
        let strings = out.len() as u64;
        out.extend(&self.strings);
        out.resize(out.len().next_multiple_of(8), 0);
        let sections = out.len() as u64;
        let mut section = |kind: u32, offset: u64, len: u64, link: u32, entry: u64| {
            out.extend(0u32.to_le_bytes());
            out.extend(kind.to_le_bytes());
            words(&mut out, &[0, 0, offset, len]);
            out.extend(link.to_le_bytes());
            out.extend(0u32.to_le_bytes());
            words(&mut out, &[1, entry]);
        };
        section(0, 0, 0, 0, 0);
        section(11, symbols, symbols_len, 2, 24);
        section(3, strings, self.strings.len() as u64, 0, 0);

        let note_at = 0xF00;
        let text_len = self.text.len() as u64;
        let mut headers = vec![
            (LOAD, READ, 0, 0, PAGE as u64, PAGE as u64),
            (LOAD, READ | EXECUTE, PAGE as u64, PAGE as u64, text_len, text_len),
            (
                LOAD,
                READ | WRITE,
                data,
                data,
                end - data,
                end - data + self.zeroes,
            ),
            (LOAD, READ, tables, tables + shift, tables_len, tables_len),
            (2, READ, dynamic, dynamic + shift, dynamic_len, dynamic_len),
            (NOTE, READ, note_at, note_at, 40, 40),
        ];
        headers.extend(self.more.iter().map(|s| (s.0, s.1, s.2, s.2, s.3, s.4)));
        assert!(
            64 + 56 * headers.len() <= note_at as usize,
            "too many headers for this"
        );
        let mut head = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
        head.extend([3, 0, 62, 0, 1, 0, 0, 0]);
        words(&mut head, &[0, 64, sections]);
        head.extend(0u32.to_le_bytes());
        for half in [64u16, 56, headers.len() as u16, 64, 3, 2] {
            head.extend(half.to_le_bytes());
        }
        for (kind, flags, offset, address, in_file, in_memory) in headers {
            head.extend(kind.to_le_bytes());
            head.extend(flags.to_le_bytes());
            words(&mut head, &[offset, address, address, in_file, in_memory, 1]);
        }
        out[..head.len()].copy_from_slice(&head);
        let mut note = Vec::new();
        for word in [note::NAME.len() as u32 + 1, note::DESC_LEN as u32, note::TYPE] {
            note.extend(word.to_le_bytes());
        }
        note.extend(note::NAME.as_bytes());
        note.resize(note.len().next_multiple_of(4).max(24), 0);
        for word in [ABI_VERSION, 0, 0, 0] {
            note.extend(word.to_le_bytes());
        }
        out[note_at as usize..note_at as usize + note.len()].copy_from_slice(&note);
        out
    }
}
