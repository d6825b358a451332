//! Encodings, offsets and constants that every part of Ringfence shares.
//!
//! Nothing here decides anything: the rewriter emits what this crate names, the verifier
//! demands it, and the runtime lays windows out by it. `docs/abi.md` is the same in prose.

#![no_std]
#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod frames;
pub mod identifier;
pub mod note;
pub mod pad;
pub mod sequence;
pub mod window;
pub mod words;

/// Version of the module format and of the window layout. A module carries the version it was
/// built for in its note; the loader refuses any other.
pub const ABI_VERSION: u32 = 1;

/// Size of a page, in bytes.
pub const PAGE: u64 = 4096;

/// What a module's memory accesses are confined to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Isolation {
    /// Loads, stores and jumps are confined. The default.
    #[default]
    Full,
    /// Stores and jumps are confined; loads are free, so a module may read host memory that it
    /// is pointed to. A host has to allow it by name.
    Integrity,
    /// As [`Full`](Self::Full), and code may reach objects of the host's [word for word](crate::words), as far as a table
    /// of rights says. A host has to give an arena.
    Words,
}

/// By which forms of operands code reaches the places that it is confined to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Addressing {
    /// Through `gs`, or through `r14` and `r11` where a move before it makes `r11` small enough. The default.
    #[default]
    Any,
    /// Through `gs` only: each operand is confined by what it is, whatever the registers hold and wherever control comes from.
    Segment,
}

impl Isolation {
    /// The name on command lines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Isolation::Full => "full",
            Isolation::Integrity => "integrity",
            Isolation::Words => "words",
        }
    }

    /// The one of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Isolation> {
        let all = [Isolation::Full, Isolation::Integrity, Isolation::Words];
        all.into_iter().find(|i| i.name() == name)
    }
}

impl Addressing {
    /// All of them, in the order of their numbers in the interface of C.
    pub const ALL: [Addressing; 2] = [Addressing::Any, Addressing::Segment];

    /// The name on command lines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Addressing::Any => "any",
            Addressing::Segment => "segment",
        }
    }

    /// The one of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Addressing> {
        Self::ALL.into_iter().find(|a| a.name() == name)
    }
}
