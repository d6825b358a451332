//! What goes into the verifier and what comes out of it.

use crate::reason::{Reason, Rule};
use ringfence_isa::Isolation;
use std::fmt;
use std::ops::RangeInclusive;

/// What a segment of an image holds, and so what a RIP-relative operand may do with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SegmentKind {
    /// Code: may be read (constants between functions do not exist, but reading code is harmless).
    Text,
    /// Constants: may be read.
    ReadOnly,
    /// May be read and written.
    Data,
}

/// A segment of an image. Addresses are relative to the image's start, and lengths are those in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Address of the first byte.
    pub start: u32,
    /// Length in bytes.
    pub len: u32,
    /// What it holds.
    pub kind: SegmentKind,
}

/// The code to be verified and what surrounds it.
///
/// All addresses here and in the results are *image-relative*: offsets from the place where the
/// loader puts the image's first page.
#[derive(Clone, Copy, Debug)]
pub struct Image<'a> {
    /// The final bytes of the text, exactly as they will be executed.
    pub text: &'a [u8],
    /// Where the text starts; a multiple of the page size.
    pub text_address: u32,
    /// All segments, the text's own included. RIP-relative operands must lie inside one of them.
    pub segments: &'a [Segment],
    /// The image's offset in its window. Needed for direct calls to gate stubs, which are
    /// refused without it.
    pub image_offset: Option<u32>,
}

/// A place where the runtime may resume a frame that has this depth: a landing pad of an exception, marked as
/// [`ringfence_isa::pad`] says. The mark is a claim; the verifier follows control from each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pad {
    /// Address of the instruction.
    pub offset: u32,
    /// Bytes on the control stack when control arrives there.
    pub depth: u32,
}

/// What this module is allowed beyond the fixed rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Whether loads are confined too.
    pub isolation: Isolation,
    /// The label numbers that this module may use; they must be unique in a window.
    pub label_numbers: RangeInclusive<u16>,
    /// Whether `rdtsc` is accepted.
    pub allow_tsc: bool,
    /// Whether x87 instructions are accepted.
    pub allow_x87: bool,
}

impl Default for Rules {
    /// Full isolation, every label number, no time-stamp reads, x87 accepted.
    fn default() -> Self {
        Rules {
            isolation: Isolation::Full,
            label_numbers: ringfence_isa::identifier::LABEL_MIN..=ringfence_isa::identifier::LABEL_MAX,
            allow_tsc: false,
            allow_x87: true,
        }
    }
}

/// A set of general registers; bit *n* is the register with the number *n* in encodings
/// (0 `rax`, 1 `rcx`, 2 `rdx`, 3 `rbx`, 4 `rsp`, 5 `rbp`, 6 `rsi`, 7 `rdi`, then `r8` to `r15`).
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct RegSet(pub u16);

impl RegSet {
    /// `rbx`, `rbp`, `r12`, `r13` and `r15`: what a callee must preserve (`r14` cannot be written).
    pub const CALLEE_SAVED: RegSet = RegSet(1 << 3 | 1 << 5 | 1 << 12 | 1 << 13 | 1 << 15);

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

impl fmt::Debug for RegSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 16] = [
            "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
            "r14", "r15",
        ];
        f.debug_set()
            .entries(
                NAMES
                    .iter()
                    .zip(0u8..)
                    .filter(|(_, n)| self.contains(*n))
                    .map(|(name, _)| name),
            )
            .finish()
    }
}

/// What is known of one function of accepted text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its first instruction.
    pub entry: u32,
    /// Where the next function, or the end of the text, begins.
    pub end: u32,
    /// Whether a function marker stands at the entry, so that it can be called indirectly.
    pub marked: bool,
    /// The most bytes it has on the control stack at any time, its return address not counted.
    pub max_depth: u32,
    /// Callee-saved registers that its own instructions write (not those of its callees). `pop` counts.
    pub writes: RegSet,
    /// Whether it has SSE or AVX instructions.
    pub uses_vector: bool,
    /// Whether it has x87 instructions.
    pub uses_x87: bool,
    /// Whether it leaves by a tail call anywhere, direct or indirect. Such a function must not call `setjmp`.
    pub tail_calls: bool,
}

/// What the verifier found out about accepted text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// All functions in order of address.
    pub functions: Vec<Function>,
    /// Instruction-set extensions that occur ([`ringfence_isa::window::feature`] bits).
    pub features: u32,
    /// General registers that any instruction names, explicitly or (`rbx`) implicitly. A gate need
    /// not save a register that no code in the window mentions. Implicit uses of `rax`, `rcx`,
    /// `rdx`, `rsi` and `rdi` are not counted.
    pub mentions: RegSet,
    /// Callee-saved registers written by any function.
    pub writes: RegSet,
    /// Whether any function has SSE or AVX instructions.
    pub uses_vector: bool,
    /// Whether any function has x87 instructions: then gates have to keep the x87 state.
    pub uses_x87: bool,
    /// Largest [`Function::max_depth`].
    pub max_depth: u32,
    /// Label numbers that markers carry, ascending, each once.
    pub labels: Vec<u16>,
    /// All landing pads in order of address.
    pub pads: Vec<Pad>,
    /// Number of instructions.
    pub instructions: u64,
}

impl Report {
    /// The depth that a live frame must have for control to be resumed at `offset`, in the function there. `None` if that is
    /// no landing pad: nothing may resume anywhere else.
    #[must_use]
    pub fn pad_depth(&self, offset: u32) -> Option<u32> {
        let at = self.pads.binary_search_by_key(&offset, |p| p.offset).ok()?;
        Some(self.pads[at].depth)
    }

    /// The function that the instruction at `offset` belongs to.
    #[must_use]
    pub fn function_at(&self, offset: u32) -> Option<&Function> {
        let after = self.functions.partition_point(|f| f.entry <= offset);
        self.functions[..after].last().filter(|f| offset < f.end)
    }

    /// The function whose entry is `offset`.
    #[must_use]
    pub fn function_with_entry(&self, offset: u32) -> Option<&Function> {
        self.function_at(offset).filter(|f| f.entry == offset)
    }
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

impl fmt::Debug for CodeBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in self.as_slice().iter().enumerate() {
            write!(f, "{}{byte:02x}", if i == 0 { "" } else { " " })?;
        }
        Ok(())
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

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:#x}: {}: {} [{:?}]",
            self.offset, self.rule, self.reason, self.bytes
        )
    }
}

/// The verdict on text that breaks the rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// At least one, at most [`Rejected::LIMIT`], in order of address within each stage of the check.
    pub rejections: Vec<Rejection>,
    /// Whether there were more.
    pub truncated: bool,
}

impl Rejected {
    /// How many rejections are reported at most.
    pub const LIMIT: usize = 100;
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rejections.first() {
            None => f.write_str("the verifier rejects the code"),
            Some(first) if self.rejections.len() == 1 => write!(f, "the verifier rejects the code: {first}"),
            Some(first) => {
                let more = self.rejections.len() - 1;
                let least = if self.truncated { "at least " } else { "" };
                write!(
                    f,
                    "the verifier rejects the code: {first} (and {least}{more} more)"
                )
            }
        }
    }
}

impl std::error::Error for Rejected {}

/// A place in the text that holds an identifier, as found by [`crate::identifiers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdPlace {
    /// Address of the identifier's four bytes.
    pub offset: u32,
    /// The value that stands there.
    pub id: u32,
    /// What it is part of.
    pub kind: IdKind,
}

/// What an identifier is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdKind {
    /// A marker: `nopl ID(%rax,%rax,1)` at a multiple of 8.
    Marker,
    /// The compare of a checked indirect jump or call.
    Compare,
}
