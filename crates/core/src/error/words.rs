//! Errors of arenas and of rights to words.

use super::HostError;
use crate::rights::{DomainId, GroupId, Party};

/// An object, or rights to words, are not to be had. Nothing has changed, but for [`Inside`](WordsError::Inside).
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
    /// The domain, or the group, is of another arena.
    #[error("the domain or group has another arena than the one that was asked")]
    OtherArena,
    /// Neither the host nor the owner asked.
    #[error("only the host and the owner may do this; the owner is {owner}")]
    NotOwner {
        /// Who could have.
        owner: Party,
    },
    /// Calls in progress have rights to the object.
    #[error("{calls} calls in progress have rights to the object, one in domain #{}: revoke them first, or let them end", .domain.0)]
    InUse {
        /// A domain that is called.
        domain: DomainId,
        /// How many calls have rights to it.
        calls: usize,
    },
    /// The group admits nobody by itself.
    #[error("group {} is closed: its owner admits members", .0.0)]
    Closed(GroupId),
    /// The domain, or the group, is not in the group.
    #[error("it is not a member of group {}", .0.0)]
    NotMember(GroupId),
    /// The group has ended.
    #[error("group {} does not exist any more", .0.0)]
    NoGroup(GroupId),
    /// Groups that would contain each other.
    #[error("group {} cannot be in group {}, which is in it", .inner.0, .outer.0)]
    Circle {
        /// What was to be a member.
        inner: GroupId,
        /// Of what.
        outer: GroupId,
    },
    /// Tables would become larger than they may, or than memory is.
    #[error("{why}: take rights back that nobody needs, or give the arena more memory for its tables")]
    Tables {
        /// Which, and how large.
        why: String,
    },
    /// The rights are gone for every access that begins from now on. A thread inside of a domain did not come to a place where it is known
    /// to be in none: it may still make one that was allowed before.
    #[error(
        "the rights are taken, but a thread inside of the domain may still make one access that it had begun"
    )]
    Inside,
    /// Another domain is learning what it touches.
    #[error("another domain is learning: one in a process does at a time")]
    Learning,
    /// The policy of the interface does not tell what the call may touch.
    #[error("{0}")]
    Policy(String),
    /// The system refuses.
    #[error(transparent)]
    Host(#[from] HostError),
}
