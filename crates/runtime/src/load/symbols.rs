//! What a module says of itself: its note, and what it exports and imports.

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

/// What an export is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportKind {
    /// A function that the verifier knows as an entry: can be called.
    Function,
    /// A variable.
    Object,
    /// A thread-local variable.
    ThreadLocal,
}

/// A symbol that the module defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: ExportKind,
    /// Offset in the image; for thread-local variables in the thread-local segment.
    pub offset: u32,
    /// Size in bytes, as claimed.
    pub size: u64,
}

/// A symbol that the module needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// Its plain name, without [`ringfence_isa::note::IMPORT_PREFIX`].
    pub name: String,
    /// Whether it is a function (has the prefix) or data. A weak symbol without the prefix may be either.
    pub function: bool,
    /// Whether it may stay undefined.
    pub weak: bool,
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
