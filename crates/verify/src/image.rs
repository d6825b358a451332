//! What is to be verified, and what it is allowed.

use core::ops::RangeInclusive;
use ringfence_isa::{Addressing, Isolation};

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

/// What this module is allowed beyond the fixed rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Whether loads are confined too.
    pub isolation: Isolation,
    /// Whether operands may go through `r14`.
    pub addressing: Addressing,
    /// The label numbers that this module may use; they must be unique in a window.
    pub label_numbers: RangeInclusive<u16>,
    /// Whether `rdtsc` is accepted.
    pub allow_tsc: bool,
    /// Whether x87 instructions are accepted.
    pub allow_x87: bool,
}

impl Default for Rules {
    /// Full isolation, any addressing, every label number, no time-stamp reads, x87 accepted.
    fn default() -> Self {
        Rules {
            isolation: Isolation::Full,
            addressing: Addressing::Any,
            label_numbers: ringfence_isa::identifier::LABEL_MIN..=ringfence_isa::identifier::LABEL_MAX,
            allow_tsc: false,
            allow_x87: true,
        }
    }
}
