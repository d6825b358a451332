//! Why an access to a domain's memory failed.

/// Why an access to a domain's memory failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// The range is not inside the domain's window.
    #[error("{len} bytes at {address:#x} are not inside the domain's window")]
    Outside {
        /// First byte.
        address: u64,
        /// Length.
        len: u64,
    },
    /// Nothing is mapped there, or not with these rights.
    #[error("{len} bytes at {address:#x} are not accessible in the domain")]
    Unmapped {
        /// First byte.
        address: u64,
        /// Length.
        len: u64,
    },
    /// The domain's memory limit, or its address space, is used up.
    #[error("{wanted} bytes do not fit under the domain's memory limit of {limit} bytes ({used} used)")]
    Limit {
        /// How much was asked for.
        wanted: u64,
        /// How much is used.
        used: u64,
        /// The limit.
        limit: u64,
    },
    /// Not the start of a live host allocation.
    #[error("{address:#x} is not a live allocation of this domain")]
    NotAllocated {
        /// What was given.
        address: u64,
    },
    /// A size or alignment that cannot work.
    #[error("alignment {align} is not a power of two up to 4096")]
    Alignment {
        /// What was given.
        align: u64,
    },
}
