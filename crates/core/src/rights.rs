//! What may be done with shared memory.

use std::fmt;

/// What may be done to a region. Ordered: more is greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rights {
    /// Nothing: the region is not there.
    #[default]
    None,
    /// Loads.
    Read,
    /// Loads and stores.
    Write,
}

impl fmt::Display for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rights::None => "no rights",
            Rights::Read => "the right to read",
            Rights::Write => "the right to write",
        })
    }
}
