//! What comes out of the verifier.

use crate::depths::Depths;
use crate::reason::{Reason, Rule};
use alloc::vec::Vec;
use core::ops::Range;

/// A place where the runtime may resume a frame that has this depth: a landing pad of an exception, marked as
/// [`ringfence_isa::pad`] says. The mark is a claim; the verifier follows control from each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pad {
    /// Address of the instruction.
    pub offset: u32,
    /// Bytes on the control stack when control arrives there.
    pub depth: u32,
}

/// A set of general registers; bit *n* is the register with the number *n* in encodings
/// (0 `rax`, 1 `rcx`, 2 `rdx`, 3 `rbx`, 4 `rsp`, 5 `rbp`, 6 `rsi`, 7 `rdi`, then `r8` to `r15`).
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct RegSet(pub u16);

impl RegSet {
    /// Whether register `number` is in the set.
    #[must_use]
    pub const fn contains(self, number: u8) -> bool {
        number < 16 && self.0 >> number & 1 == 1
    }

    /// The registers that are in both sets.
    #[must_use]
    pub const fn and(self, other: RegSet) -> RegSet {
        RegSet(self.0 & other.0)
    }

    /// The registers that are in either set.
    #[must_use]
    pub const fn or(self, other: RegSet) -> RegSet {
        RegSet(self.0 | other.0)
    }

    /// Whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// What is known of one function of accepted text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its first instruction.
    pub entry: u32,
    /// Where the next function, or the end of the text, begins.
    pub end: u32,
    /// Whether a function marker stands at the entry, so that it can be called indirectly.
    pub marked: bool,
    /// The most bytes it has on the control stack at any time, its return address not counted.
    pub max_depth: u32,
}

/// A [`Function`] in eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packed {
    entry: u32,
    slots: u16,
    marked: bool,
}

impl From<Function> for Packed {
    fn from(f: Function) -> Packed {
        Packed {
            entry: f.entry,
            slots: (f.max_depth / 8) as u16,
            marked: f.marked,
        }
    }
}

/// What the verifier found out about accepted text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Instruction-set extensions that occur ([`ringfence_isa::window::feature`] bits).
    pub features: u32,
    /// Whether there are SSE or AVX instructions, reached or not.
    pub uses_vector: bool,
    /// Whether there are x87 instructions, reached or not: then gates have to keep the x87 state.
    pub uses_x87: bool,
    /// Whether an operand goes through `r14`, reached or not; never where [`crate::Rules::addressing`] is
    /// [`ringfence_isa::Addressing::Segment`].
    pub through_r14: bool,
    /// Largest [`Function::max_depth`].
    pub max_depth: u32,
    /// Label numbers that markers carry, ascending, each once.
    pub labels: Vec<u16>,
    /// All landing pads in order of address.
    pub pads: Vec<Pad>,
    /// Number of instructions.
    pub instructions: u64,
    pub(crate) functions: Vec<Packed>,
    pub(crate) text: Range<u32>,
    pub(crate) depths: Depths,
}

impl Report {
    /// All functions in order of address.
    pub fn functions(&self) -> impl ExactSizeIterator<Item = Function> + '_ {
        (0..self.functions.len()).map(|n| self.function(n))
    }

    fn function(&self, n: usize) -> Function {
        let packed = self.functions[n];
        Function {
            entry: packed.entry,
            end: self.functions.get(n + 1).map_or(self.text.end, |next| next.entry),
            marked: packed.marked,
            max_depth: u32::from(packed.slots) * 8,
        }
    }

    /// The depth (bytes on the control stack, the return address not counted) at the instruction at `offset`, which control
    /// can reach; of other places what is told means nothing. `None` outside of functions.
    ///
    /// Takes a constant time but for finding the function.
    #[must_use]
    pub fn depth_at(&self, offset: u32) -> Option<u32> {
        self.number_at(offset)?;
        self.depth_in_function(offset)
    }

    fn depth_in_function(&self, offset: u32) -> Option<u32> {
        let at = offset.checked_sub(self.text.start)? as usize;
        Some(u32::from(self.depths.get(at)?) * 8)
    }

    /// The number of the function that the instruction at `offset` belongs to.
    fn number_at(&self, offset: u32) -> Option<usize> {
        let number = self
            .functions
            .partition_point(|f| f.entry <= offset)
            .checked_sub(1)?;
        (offset < self.function(number).end).then_some(number)
    }

    /// What is known of the instruction at `offset`, if control can reach it.
    #[must_use]
    pub fn place_at(&self, offset: u32) -> Option<Place> {
        let function = self.number_at(offset)?;
        Some(Place {
            depth: self.depth_in_function(offset)?,
            function: function as u32,
            is_pad: self.pads.binary_search_by_key(&offset, |p| p.offset).is_ok(),
        })
    }

    /// The function that the instruction at `offset` belongs to.
    #[must_use]
    pub fn function_at(&self, offset: u32) -> Option<Function> {
        Some(self.function(self.number_at(offset)?))
    }

    /// The function whose entry is `offset`.
    #[must_use]
    pub fn function_with_entry(&self, offset: u32) -> Option<Function> {
        self.function_at(offset).filter(|f| f.entry == offset)
    }
}

/// What is known of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Bytes on the control stack there, the return address not counted.
    pub depth: u32,
    /// The number of its function, in order of address.
    pub function: u32,
    /// Whether it is a landing pad. Control may be resumed there, in a live frame of that function which has pushed as much or more, and
    /// nowhere else.
    pub is_pad: bool,
}

/// Up to 15 bytes of code, for messages.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CodeBytes {
    len: u8,
    bytes: [u8; 15],
}

impl CodeBytes {
    /// Takes the first bytes of `code`, 15 at most.
    #[must_use]
    pub fn new(code: &[u8]) -> Self {
        let mut bytes = [0; 15];
        let len = code.len().min(15);
        bytes[..len].copy_from_slice(&code[..len]);
        CodeBytes {
            len: len as u8,
            bytes,
        }
    }

    /// The bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// One violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Where the offending instruction starts (or, for rule 6, where the hidden identifier stands).
    pub offset: u32,
    /// The rule it breaks.
    pub rule: Rule,
    /// What exactly is wrong.
    pub reason: Reason,
    /// The bytes there: the instruction if its length is known, else up to 15.
    pub bytes: CodeBytes,
}

impl Rejection {
    pub(crate) fn new(offset: u32, reason: Reason, code: &[u8]) -> Self {
        Rejection {
            offset,
            rule: reason.rule(),
            reason,
            bytes: CodeBytes::new(code),
        }
    }
}

/// The verdict on text that breaks the rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// At least one, at most [`Rejected::LIMIT`], in order of address within each stage of the check. None, and `truncated`, if
    /// there was no memory left for this list either.
    pub rejections: Vec<Rejection>,
    /// Whether there were more.
    pub truncated: bool,
}

impl Rejected {
    /// How many rejections are reported at most.
    pub const LIMIT: usize = 100;
}
