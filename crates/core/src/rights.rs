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

/// Number of a domain. Never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DomainId(pub u64);

/// Number of a group. Never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u64);

/// Who asks for something, or owns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Party {
    /// The host program: may do everything that does not exceed the most.
    Host,
    /// A domain.
    Domain(DomainId),
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Party::Host => f.write_str("the host"),
            Party::Domain(id) => write!(f, "domain #{}", id.0), // as the matrix has it
        }
    }
}

/// Who is given rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Grantee {
    /// One domain.
    Domain(DomainId),
    /// All members of a group, present and future.
    Group(GroupId),
}
