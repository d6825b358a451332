//! What a module offers and needs, by name.

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
