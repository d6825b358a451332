//! Module files made by hand: whatever text and data, well-formed around it.

use ringfence_isa::{ABI_VERSION, note};

/// Where the text stands in every image made here.
pub const TEXT: u32 = 0x10_0000;
/// Where the data segment stands.
pub const DATA: u32 = 0x80_0000;
/// Its length in memory.
pub const DATA_LEN: u32 = 0x20_0000;

const RELA: usize = 24;
const SYM: usize = 24;

/// A module file in the making.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    /// The code, at [`TEXT`].
    pub text: Vec<u8>,
    /// The start of the data segment, at [`DATA`] (the first [`Builder::slots`] bytes are for the imports' addresses).
    pub data: Vec<u8>,
    /// Exported functions: names and offsets in the text.
    pub exports: Vec<(String, u32)>,
    /// Imported functions. Their addresses stand at the data segment's start, eight bytes each.
    pub imports: Vec<String>,
    /// Further relocations as (offset in the image, info, addend).
    pub relocations: Vec<(u64, u64, i64)>,
    /// Offsets in the text of constructors.
    pub constructors: Vec<u32>,
    /// Flags of the note.
    pub flags: u32,
}

impl Builder {
    /// Bytes at the data segment's start that hold the imports' addresses.
    #[must_use]
    pub fn slots(&self) -> usize {
        8 * self.imports.len()
    }

    /// The file's bytes.
    ///
    /// # Panics
    ///
    /// If the symbols do not fit in front of the text.
    #[must_use]
    pub fn build(&self) -> Vec<u8> {
        let mut names = vec![0u8];
        let mut symbols = vec![0u8; SYM];
        let mut symbol = |name: String, info: u8, section: u16, value: u64| {
            symbols.extend((names.len() as u32).to_le_bytes());
            symbols.extend([info, 0]);
            symbols.extend(section.to_le_bytes());
            symbols.extend(value.to_le_bytes());
            symbols.extend(0u64.to_le_bytes());
            names.extend(name.as_bytes());
            names.push(0);
        };
        for import in &self.imports {
            symbol(format!("{}{import}", note::IMPORT_PREFIX), 0x10, 0, 0);
        }
        for (name, at) in &self.exports {
            symbol(name.clone(), 0x12, 1, u64::from(TEXT + at));
        }
        let mut relocations = Vec::new();
        let mut relocation = |offset: u64, info: u64, addend: i64| {
            relocations.extend(offset.to_le_bytes());
            relocations.extend(info.to_le_bytes());
            relocations.extend(addend.to_le_bytes());
        };
        for n in 0..self.imports.len() as u64 {
            relocation(u64::from(DATA) + 8 * n, (n + 1) << 32 | 6, 0); // GLOB_DAT
        }
        let array = u64::from(DATA + DATA_LEN) - 8 * self.constructors.len() as u64;
        for (n, at) in (0..).zip(&self.constructors) {
            relocation(array + 8 * n, 8, i64::from(TEXT + at)); // RELATIVE
        }
        for &(offset, info, addend) in &self.relocations {
            relocation(offset, info, addend);
        }

        let mut file = vec![0u8; 64 + 6 * 56];
        let note_at = file.len();
        file.extend((note::NAME.len() as u32 + 1).to_le_bytes());
        file.extend((note::DESC_LEN as u32).to_le_bytes());
        file.extend(note::TYPE.to_le_bytes());
        file.extend(note::NAME.as_bytes());
        file.extend([0; 3]);
        for word in [ABI_VERSION, self.flags, 0, 0] {
            file.extend(word.to_le_bytes());
        }
        let note_len = file.len() - note_at;
        let symbols_at = file.len();
        file.extend(&symbols);
        let names_at = file.len();
        file.extend(&names);
        file.resize(file.len().next_multiple_of(8), 0);
        let relocations_at = file.len();
        file.extend(&relocations);
        let dynamic_at = file.len();
        let mut dynamic = vec![
            (7u64, relocations_at as u64),
            (8, relocations.len() as u64),
            (9, RELA as u64),
            (6, symbols_at as u64),
            (5, names_at as u64),
        ];
        if !self.constructors.is_empty() {
            dynamic.extend([(25, array), (27, 8 * self.constructors.len() as u64)]);
        }
        dynamic.push((0, 0));
        for (tag, value) in &dynamic {
            file.extend(tag.to_le_bytes());
            file.extend(value.to_le_bytes());
        }
        let dynamic_len = file.len() - dynamic_at;
        let sections_at = file.len();
        for (kind, at, len, link) in [
            (0u32, 0, 0, 0u32),
            (1, 0, 0, 0),
            (11, symbols_at, symbols.len(), 3),
            (3, names_at, names.len(), 0),
        ] {
            file.extend(0u32.to_le_bytes());
            file.extend(kind.to_le_bytes());
            for word in [0u64, at as u64, at as u64, len as u64] {
                file.extend(word.to_le_bytes());
            }
            file.extend(link.to_le_bytes());
            file.extend(0u32.to_le_bytes());
            for word in [8u64, if kind == 11 { SYM as u64 } else { 0 }] {
                file.extend(word.to_le_bytes());
            }
        }
        let head_len = file.len();
        assert!(head_len < TEXT as usize, "too many symbols");

        let text_at = head_len.next_multiple_of(4096);
        file.resize(text_at, 0);
        file.extend(&self.text);
        let data_at = file.len().next_multiple_of(4096);
        file.resize(data_at, 0);
        file.extend(&self.data);
        // What is relocated is in the file.
        let data_len = if self.constructors.is_empty() {
            self.data.len().max(self.slots())
        } else {
            DATA_LEN as usize
        };
        file.resize(data_at + data_len, 0);

        file[..20].copy_from_slice(&[
            0x7F, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 62, 0,
        ]);
        file[20] = 1;
        file[32..40].copy_from_slice(&64u64.to_le_bytes());
        file[40..48].copy_from_slice(&(sections_at as u64).to_le_bytes());
        for (at, value) in [(52, 64u16), (54, 56), (56, 6), (58, 64), (60, 4), (62, 3)] {
            file[at..at + 2].copy_from_slice(&value.to_le_bytes());
        }
        let headers: [(u32, u32, usize, u64, usize, usize); 6] = [
            (1, 4, 0, 0, head_len, head_len),
            (1, 5, text_at, TEXT.into(), self.text.len(), self.text.len()),
            (1, 6, data_at, DATA.into(), data_len, DATA_LEN as usize),
            (4, 4, note_at, note_at as u64, note_len, note_len),
            (2, 4, dynamic_at, dynamic_at as u64, dynamic_len, dynamic_len),
            (0x6474_E551, 6, 0, 0, 0, 0),
        ];
        for (n, (kind, flags, offset, address, len, memory)) in headers.into_iter().enumerate() {
            let mut header = Vec::new();
            header.extend(kind.to_le_bytes());
            header.extend(flags.to_le_bytes());
            let align = if kind == 4 { 4 } else { 4096 };
            for word in [offset as u64, address, address, len as u64, memory as u64, align] {
                header.extend(word.to_le_bytes());
            }
            file[64 + 56 * n..][..56].copy_from_slice(&header);
        }
        file
    }
}
