//! What a module says of itself: its note, its segments, and what it exports and imports.

pub use ringfence_core::{Export, ExportKind, Import};
use ringfence_verify::SegmentKind;

/// What the module's note claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// ABI version.
    pub abi: u32,
    /// [`ringfence_isa::note::flag`] bits.
    pub flags: u32,
    /// [`ringfence_isa::window::feature`] bits.
    pub features: u32,
}

/// A loadable segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Offset in the image.
    pub offset: u32,
    /// Length in memory.
    pub len: u32,
    /// Length in the file.
    pub file_len: u32,
    /// What it holds.
    pub kind: SegmentKind,
}
