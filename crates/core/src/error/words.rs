//! Errors of arenas and of rights to words.

use super::HostError;

/// An object, or rights to words, are not to be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WordsError {
    /// Not as long as that.
    #[error("an object or arena of {len} bytes: from 1 to {most} are possible")]
    Length {
        /// What was asked for.
        len: u64,
        /// The most.
        most: u64,
    },
    /// The arena has no free place of that length.
    #[error("the arena has no place left for {len} bytes")]
    Full {
        /// What was asked for.
        len: u64,
    },
    /// No object of the arena is there, or it ends sooner.
    #[error("{address:#x}: no object of the arena, or none that is so long")]
    NoObject {
        /// The address.
        address: u64,
    },
    /// Rights are for whole words of four bytes.
    #[error("{len} bytes at {address:#x}: rights are for whole words of 4 bytes")]
    Misaligned {
        /// The address.
        address: u64,
        /// The length.
        len: u64,
    },
    /// The domain was made without an arena.
    #[error("the domain was made without an arena (give one among its imports)")]
    NoArena,
    /// The system refuses.
    #[error(transparent)]
    Host(#[from] HostError),
}
