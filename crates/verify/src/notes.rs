//! What the first pass notes of the text for the second: a byte for each of it, and sets.

use crate::bitmap::Bitmap;
use crate::op::Flow;
use alloc::vec::Vec;
use core::ops::Range;

/// What the second pass has to know of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Class {
    /// Control goes on with the same depth.
    Plain,
    /// Part of a fixed sequence: nothing may jump here. The sequence may end in a jump, which the walk looks at.
    Sequence,
    // After these control does not just go on.
    Return,
    Trap,
    Push,
    Pop,
    Jump,
    Branch,
}

impl Class {
    /// The class of an instruction after which control goes on like this.
    pub const fn of(flow: Flow) -> Class {
        match flow {
            Flow::Next | Flow::Call => Class::Plain,
            Flow::Push => Class::Push,
            Flow::Pop => Class::Pop,
            Flow::Return => Class::Return,
            Flow::Trap => Class::Trap,
            Flow::Jump => Class::Jump,
            Flow::Branch => Class::Branch,
            Flow::IndirectJump | Flow::IndirectCall | Flow::String => Class::Sequence,
        }
    }
}

/// What is noted for one byte of text: 0 inside an instruction; where one starts its length (bits 0 to 3), its [`Class`] (4 to 6),
/// and [`Note::LOOK`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Note(pub u8);

impl Note {
    /// The walk has to look here: control does not just go on, or it may come from elsewhere.
    pub const LOOK: u8 = 1 << 7;
    pub const INT3: Note = Note(1 | Note::of_class(Class::Trap));
    const CLASSES: [Class; 8] = {
        use Class::*;
        [Plain, Sequence, Return, Trap, Push, Pop, Jump, Branch]
    };

    /// The note of an instruction of this class, but for the length.
    pub const fn of_class(class: Class) -> u8 {
        (class as u8) << 4
            | if class as u8 >= Class::Return as u8 {
                Note::LOOK
            } else {
                0
            }
    }

    /// Length of the instruction that starts here, 0 if none does.
    pub fn len(self) -> usize {
        usize::from(self.0 & 15)
    }

    pub fn class(self) -> Class {
        Note::CLASSES[usize::from(self.0 >> 4 & 7)]
    }
}

/// A table that could not be made, or not grow: there is no memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoMemory;

/// `len` times `item`.
pub(crate) fn filled<T: Copy>(len: usize, item: T) -> Result<Vec<T>, NoMemory> {
    let mut list = reserved(len)?;
    list.resize(len, item);
    Ok(list)
}

/// Room for `len` items and no more.
pub(crate) fn reserved<T>(len: usize) -> Result<Vec<T>, NoMemory> {
    let mut list = Vec::new();
    list.try_reserve_exact(len).map_err(|_| NoMemory)?;
    Ok(list)
}

/// What is known of the text. All offsets are from its start.
pub(crate) struct Facts<'a> {
    /// A [`Note`] for each byte, and [`MARGIN`] more, so that eight can be looked at anywhere.
    pub notes: &'a mut [u8],
    /// From behind a move to `r11d` up to and including the last operand through `r14` that relies on it: no place to jump to.
    pub held: Bitmap,
    /// Where functions begin.
    pub entries: Bitmap,
    /// Where control may arrive from elsewhere: landing pads, then also entries, labels and what jumps lead to.
    pub leaders: Bitmap,
    /// Where the walk has to look: leaders, and where control does not just go on. Known after the first pass.
    pub looks: Bitmap,
    /// Where jumps through tables stand.
    pub tables: Bitmap,
    /// Where the markers of labels stand. Known after the first pass.
    pub labels: Bitmap,
    pub features: u32,
    pub vector: bool,
    pub x87: bool,
    pub instructions: u64,
}

/// How many notes there are more than bytes of text, so that whole words can be looked at.
pub const MARGIN: usize = 8;

impl<'a> Facts<'a> {
    pub fn new(len: usize, notes: &'a mut [u8]) -> Result<Facts<'a>, NoMemory> {
        let notes = notes.get_mut(..len + MARGIN).ok_or(NoMemory)?;
        notes.fill(0);
        Ok(Facts {
            notes,
            held: Bitmap::new(len)?,
            entries: Bitmap::new(len)?,
            leaders: Bitmap::new(len)?,
            looks: Bitmap::default(),
            tables: Bitmap::new(len)?,
            labels: Bitmap::new(len)?,
            features: 0,
            vector: false,
            x87: false,
            instructions: 0,
        })
    }

    /// Forgets everything, and keeps the memory.
    pub fn clear(&mut self) {
        self.notes.fill(0);
        self.held.clear();
        self.entries.clear();
        self.leaders.clear();
        self.tables.clear();
        (self.features, self.vector, self.x87, self.instructions) = (0, false, false, 0);
    }

    #[inline(always)]
    pub fn note(&self, at: usize) -> Note {
        Note(self.notes.get(at).copied().unwrap_or_default())
    }

    #[inline(always)]
    pub fn set(&mut self, at: usize, note: Note) {
        if let Some(place) = self.notes.get_mut(at) {
            *place = note.0;
        }
    }

    /// Once all instructions are noted: collects where to look, and returns where direct jumps stand.
    pub fn collect(&mut self) -> Result<Bitmap, NoMemory> {
        let words = self.notes.len().div_ceil(64);
        let (mut looks, mut jumps) = (reserved(words)?, reserved(words)?);
        for notes in self.notes.chunks(64) {
            let (mut look, mut jump) = (0, 0);
            for (eight, n) in notes.as_chunks().0.iter().zip(0..) {
                let word = u64::from_le_bytes(*eight);
                look |= upper_bits(word) << (8 * n);
                // The upper three bits of the notes of jumps are 111.
                jump |= upper_bits(word & word << 1 & word << 2) << (8 * n);
            }
            looks.push(look);
            jumps.push(jump);
        }
        self.looks = Bitmap(looks);
        Ok(Bitmap(jumps))
    }

    /// The instruction that starts here is part of a fixed sequence.
    pub fn set_sequence(&mut self, at: usize) {
        let len = self.note(at).len() as u8;
        self.set(at, Note(len | Note::of_class(Class::Sequence)));
    }

    /// Whether the instructions from `start` on are the given ones, by offset and length.
    pub fn decoded_as(&self, start: usize, parts: &[(usize, usize)]) -> bool {
        let same = |&(part, len): &(usize, usize)| self.note(start + part).len() == len;
        parts.iter().all(same)
    }

    /// Control may come from elsewhere to the instruction that starts here.
    pub fn lead(&mut self, at: usize) {
        self.leaders.insert(at);
        self.looks.insert(at);
    }

    /// What stands between `start`, if that is in the text, and where the next function begins.
    pub fn function_from(&self, start: usize) -> Option<Range<usize>> {
        let text = self.notes.len() - MARGIN;
        (start < text).then(|| start..self.entries.next(start + 1).unwrap_or(text))
    }
}

/// The upper bits of eight bytes.
fn upper_bits(word: u64) -> u64 {
    // Each of the eight bits is moved to the uppermost byte, and no two meet.
    (word >> 7 & u64::from_le_bytes([1; 8])).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// The four bytes at `at`, 0 if there are fewer.
pub(crate) fn dword(text: &[u8], at: usize) -> u32 {
    text.get(at..)
        .and_then(|t| t.first_chunk())
        .map_or(0, |b| u32::from_le_bytes(*b))
}
