//! Why the supervisor refuses.

use crate::object::Object;
use crate::sink::NoRoom;
use ringfence_core::{DomainId, GroupId, Party};
use std::ops::Range;

/// Why an operation was refused. No rights have changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Bytes that are no whole words.
    #[error("bytes {start:#x} to {end:#x} are no whole words: start and length have to be multiples of 4")]
    Misaligned {
        /// The first byte, from the arena's start.
        start: u64,
        /// The byte behind the last one.
        end: u64,
    },
    /// No words at all.
    #[error("there are no words in {:#x}..{:#x}", .0.start, .0.end)]
    Empty(Range<u64>),
    /// Words that the arena does not have.
    #[error("bytes {:#x} to {:#x} are not in the arena, which has {size:#x}", .bytes.start, .bytes.end)]
    Outside {
        /// What was asked for.
        bytes: Range<u64>,
        /// The arena's bytes.
        size: u64,
    },
    /// A new object in the place of one that is there.
    #[error("{wanted:?} overlaps an object that is there: {there}")]
    Overlaps {
        /// The new one's words.
        wanted: Range<u32>,
        /// The other.
        there: Object,
    },
    /// Words that belong to no object.
    #[error("word {word:#x} belongs to no object: only what was allocated can be exported or freed")]
    Nobodys {
        /// The first of them.
        word: u32,
    },
    /// Words beyond the end of an object.
    #[error("{wanted:?} goes beyond the object it begins in: {object}")]
    Beyond {
        /// What was asked for.
        wanted: Range<u32>,
        /// The object.
        object: Object,
    },
    /// Not an object's start.
    #[error("word {word:#x} is inside an object, not its start: {object}")]
    Inside {
        /// What was asked for.
        word: u32,
        /// The object.
        object: Object,
    },
    /// Neither the host nor the owner asked.
    #[error("only the host and the owner may do this; the owner is {owner}")]
    NotOwner {
        /// Who could have.
        owner: Party,
    },
    /// A call has rights to the object.
    #[error("{calls} calls in progress have rights to the object, one in domain #{}: {object}", .domain.0)]
    InUse {
        /// The object.
        object: Object,
        /// A domain that is called.
        domain: DomainId,
        /// How many calls have rights to it.
        calls: usize,
    },
    /// No such domain, or it has ended.
    #[error("domain #{} does not exist", .0.0)]
    NoDomain(DomainId),
    /// A number that is taken.
    #[error("there is a domain #{} already", .0.0)]
    SameDomain(DomainId),
    /// No such group, or it has ended.
    #[error("group {} does not exist", .0.0)]
    NoGroup(GroupId),
    /// The group admits nobody by itself.
    #[error("group {} is closed: its owner admits members", .0.0)]
    Closed(GroupId),
    /// It is not in the group.
    #[error("it is not a member of group {}", .0.0)]
    NotMember(GroupId),
    /// Groups that would contain each other.
    #[error("group {} cannot be in group {}, which is in it", .inner.0, .outer.0)]
    Circle {
        /// What was to be a member.
        inner: GroupId,
        /// Of what.
        outer: GroupId,
    },
    /// The supervisor's own tables would become too large.
    #[error("the supervisor's tables would take {needed} bytes; they may take {limit}")]
    Memory {
        /// What all of them would take.
        needed: usize,
        /// The limit.
        limit: usize,
    },
    /// There is no memory for the supervisor's own tables.
    #[error("there is no memory for the supervisor's tables: {needed} bytes")]
    NoMemory {
        /// How many bytes could not be had.
        needed: usize,
    },
    /// There is no memory for a domain's table.
    #[error("domain #{}: {why}", .domain.0)]
    Table {
        /// Whose.
        domain: DomainId,
        /// What its keeper said.
        why: NoRoom,
    },
}
