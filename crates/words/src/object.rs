//! Objects, as others see them.

use ringfence_core::Party;
use std::fmt;
use std::ops::Range;

/// What an object is, as its allocator says: a number of a type that reports know the name of. 0 is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeId(pub u32);

/// An object, as others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Its words.
    pub words: Range<u32>,
    /// Who owns it.
    pub owner: Party,
    /// What it is.
    pub kind: TypeId,
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (at, len) = (u64::from(self.words.start) * 4, self.words.len() * 4);
        write!(f, "{len} bytes at {at:#x} of {}", self.owner)
    }
}
