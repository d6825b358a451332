//! What the first pass notes of each byte of the text for the second, and what it collects.

use crate::decode::Instruction;
use crate::report::{Pad, RegSet};
use alloc::vec::Vec;

/// What the second pass has to know of an instruction, and of bytes that do not start one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum Class {
    // After these, control goes on with the same depth; see [`Note::goes_on`].
    Plain,
    FunctionMarker,
    LabelMarker,
    /// Inside a fixed sequence: nothing may jump here.
    Interior,
    IndirectCall,
    Call,
    // After these it may not.
    Jump,
    Branch,
    Push,
    Pop,
    Return,
    IndirectJump,
    Trap,
}

/// The element for one byte of text: 0 inside an instruction; at its start its length (bits
/// 0 to 3), its [`Class`] (4 to 7), facts for the report (8 to 13, 15), and whether it is where `r11` holds (14), for the bytes
/// inside of it as well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Note(u16);

impl Note {
    const CLASSES: [Class; 16] = {
        use Class::*;
        [
            Plain,
            FunctionMarker,
            LabelMarker,
            Interior,
            IndirectCall,
            Call,
            Jump,
            Branch,
            Push,
            Pop,
            Return,
            IndirectJump,
            Trap,
            Interior,
            Interior,
            Interior,
        ]
    };
    /// `int3`.
    pub const INT3: Note = Note(1 | (Class::Trap as u16) << 4);
    const VECTOR: u16 = 1 << 9;
    const X87: u16 = 1 << 11;
    /// Behind a move to `r11d` and not behind the last operand through `r14` that relies on it.
    const HELD: u16 = 1 << 14;

    pub fn new(i: &Instruction, class: Class) -> Note {
        let note = Note::from_parts(i.len.into(), Note::of_class(class, i.vector), i.written.0.into());
        Note(note.0 | if i.x87 { Note::X87 } else { 0 })
    }

    /// What all instructions of a class have in common, without or with vector registers.
    pub const fn of_class(class: Class, vector: bool) -> u16 {
        (class as u16) << 4 | if vector { Note::VECTOR } else { 0 }
    }

    /// `class` is from [`Self::of_class`]. Of the registers that are written the callee-saved ones are kept: `rbx` and `rbp` in bits
    /// 8 and 10, `r12`, `r13` and `r15` in their own.
    #[inline(always)]
    pub fn from_parts(len: usize, class: u16, written: u32) -> Note {
        Note(len as u16 | class | ((written & 0x28) << 5 | written & 0xB000) as u16)
    }

    /// Length of the instruction that starts here, 0 if none does.
    pub fn len(self) -> usize {
        usize::from(self.0 & 15)
    }

    pub fn class(self) -> Class {
        Note::CLASSES[usize::from(self.0 >> 4 & 15)]
    }

    /// Whether control goes on to the next instruction, with the same depth.
    #[inline(always)]
    pub fn goes_on(self) -> bool {
        (self.0 >> 4 & 15) < Class::Jump as u16
    }

    /// Whether this is a direct jump or call.
    #[inline(always)]
    pub fn is_transfer(self) -> bool {
        (Class::Call as u16..=Class::Branch as u16).contains(&(self.0 >> 4 & 15))
    }

    pub fn is_marker(self) -> bool {
        matches!(self.class(), Class::FunctionMarker | Class::LabelMarker)
    }

    pub fn is_held(self) -> bool {
        self.0 & Note::HELD != 0
    }

    #[inline(always)]
    pub fn set_held(&mut self) {
        self.0 |= Note::HELD;
    }

    pub fn set_interior(&mut self) {
        self.0 = self.0 & !0xF0 | (Class::Interior as u16) << 4;
    }

    /// The facts of both; of the rest nothing is known.
    pub fn or(self, other: Note) -> Note {
        Note(self.0 | other.0)
    }

    /// Callee-saved registers that are written.
    pub fn writes(self) -> RegSet {
        RegSet(self.0 >> 5 & 0x28 | self.0 & 0xB000)
    }

    pub fn vector(self) -> bool {
        self.0 & Note::VECTOR != 0
    }

    pub fn x87(self) -> bool {
        self.0 & Note::X87 != 0
    }
}

/// A list that could not grow: there is no memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoMemory;

/// Appends, or says that there is no memory.
pub(crate) fn push<T>(list: &mut Vec<T>, item: T) -> Result<(), NoMemory> {
    list.try_reserve(1).map_err(|_| NoMemory)?;
    list.push(item);
    Ok(())
}

/// `len` times `item`.
pub(crate) fn filled<T: Copy>(len: usize, item: T) -> Result<Vec<T>, NoMemory> {
    let mut list = Vec::new();
    list.try_reserve_exact(len).map_err(|_| NoMemory)?;
    list.resize(len, item);
    Ok(list)
}

/// A set of offsets into the text.
#[derive(Default)]
pub(crate) struct Bitmap(Vec<u64>);

impl Bitmap {
    pub fn new(len: usize) -> Result<Bitmap, NoMemory> {
        Ok(Bitmap(filled(len / 64 + 1, 0)?))
    }

    #[inline(always)]
    pub fn insert(&mut self, at: usize) {
        if let Some(word) = self.0.get_mut(at / 64) {
            *word |= 1 << (at % 64);
        }
    }

    pub fn contains(&self, at: usize) -> bool {
        self.0.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    pub fn clear(&mut self) {
        self.0.fill(0);
    }

    pub fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// All members, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(i, &word)| {
            let mut rest = word;
            core::iter::from_fn(move || {
                let bit = rest.trailing_zeros() as usize;
                rest &= rest.wrapping_sub(1);
                (bit < 64).then_some(i * 64 + bit)
            })
        })
    }
}

/// What the first pass found. All offsets are from the start of the text, all lists in order of address.
#[derive(Default)]
pub(crate) struct Facts {
    pub notes: Vec<Note>,
    /// Where functions begin.
    pub entries: Bitmap,
    /// Where direct jumps stand.
    pub jumps: Bitmap,
    pub tables: Vec<Table>,
    pub labels: Vec<Label>,
    /// What the text says of its landing pads.
    pub pads: Vec<Pad>,
    pub features: u32,
    pub mentions: RegSet,
    pub instructions: u64,
}

impl Facts {
    pub fn new(len: usize) -> Result<Facts, NoMemory> {
        Ok(Facts {
            notes: filled(len, Note::default())?,
            entries: Bitmap::new(len)?,
            jumps: Bitmap::new(len)?,
            ..Facts::default()
        })
    }

    /// Forgets everything, and keeps the memory.
    pub fn clear(&mut self) {
        self.notes.fill(Note::default());
        self.entries.clear();
        self.jumps.clear();
        self.tables.clear();
        self.labels.clear();
        self.pads.clear();
        (self.features, self.mentions, self.instructions) = (0, RegSet::default(), 0);
    }
}

/// A label marker.
#[derive(Clone, Copy)]
pub(crate) struct Label {
    pub at: u32,
    pub number: u16,
}

/// A jump through a table. The table may be anywhere.
#[derive(Clone, Copy)]
pub(crate) struct Table {
    pub from: u32,
    /// Where the first distance stands.
    pub at: i64,
    /// How many follow it.
    pub more: u16,
}

/// The four bytes at `at`, 0 if there are fewer.
pub(crate) fn dword(text: &[u8], at: usize) -> u32 {
    text.get(at..)
        .and_then(|t| t.first_chunk())
        .map_or(0, |b| u32::from_le_bytes(*b))
}
