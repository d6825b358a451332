//! What a host does when a domain reaches a limit.

/// A limit that a domain has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LimitHit {
    /// Memory: the domain, or the host for it, wants more than [`DomainOptions::memory_limit`](crate::DomainOptions::memory_limit) allows.
    /// Can be raised, to `used + wanted` at least: then the request is tried once more. The next reset puts the limit back.
    Memory {
        /// Bytes asked for.
        wanted: u64,
        /// Bytes in use.
        used: u64,
        /// The limit.
        limit: u64,
    },
    /// A call has taken longer than its limit. It has ended; the domain has faulted.
    CallTime {
        /// Nanoseconds, for calls that start now.
        limit: u64,
    },
    /// The domain has used up its [`processor_time`](crate::DomainOptions::processor_time). The call has ended; the domain has faulted.
    /// Can be raised, for the calls after the next reset.
    ProcessorTime {
        /// Nanoseconds used.
        used: u64,
        /// The limit, in nanoseconds.
        limit: u64,
    },
    /// A domain that has faulted as often as [`fault_limit`](crate::DomainOptions::fault_limit) allows is to be reset. Can be raised:
    /// then it is.
    Faults {
        /// How often it has faulted.
        faults: u64,
        /// The limit.
        limit: u64,
    },
    /// The domain has had as many calls as [`call_limit`](crate::DomainOptions::call_limit) allows, and one more is to begin. Can be
    /// raised: then it does. Asked with no call of this thread in progress in the domain.
    Calls {
        /// The limit.
        limit: u64,
    },
    /// As many threads as [`max_lanes`](crate::DomainOptions::max_lanes) allows have stacks in the domain, and another one wants to
    /// enter. Can be raised, to 63 at most: then it does.
    Lanes {
        /// The limit.
        limit: u64,
    },
    /// The policy's limit of open descriptors. The domain gets `EMFILE`.
    Descriptors {
        /// The limit.
        limit: u64,
    },
    /// The policy's limit of bytes that the domain may put on disk. Can be raised: then the call is tried once more. Otherwise the
    /// domain gets `EDQUOT`.
    Disk {
        /// Bytes that the call would put there.
        wanted: u64,
        /// Bytes so far.
        used: u64,
        /// The limit.
        limit: u64,
    },
}

impl LimitHit {
    /// The limit.
    #[must_use]
    pub fn limit(&self) -> u64 {
        match *self {
            LimitHit::Memory { limit, .. }
            | LimitHit::CallTime { limit }
            | LimitHit::ProcessorTime { limit, .. }
            | LimitHit::Faults { limit, .. }
            | LimitHit::Calls { limit }
            | LimitHit::Lanes { limit }
            | LimitHit::Descriptors { limit }
            | LimitHit::Disk { limit, .. } => limit,
        }
    }
}

/// What the host decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLimit {
    /// The limit holds.
    #[default]
    Keep,
    /// The limit is so high from now on, if it can be raised and this is more than it is.
    Raise(u64),
}
