//! What a failed host function leaves for the call that it ends, and the one type that all errors convert to.

use std::cell::RefCell;
use std::fmt::Write;
use std::sync::Arc;

use ringfence_core::local;
use ringfence_runtime::{FaultKind, HostCause, HostFailure, MOST_TEXT, RegionError, Text};

use crate::CheckError;
pub use ringfence_runtime::{CallError, DomainError, HostError, LoadError, MemoryError};

/// Anything that can go wrong, for callers that pass errors on.
///
/// Each function returns the narrower type; `?` converts.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file did not become a module.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A domain could not be made, reset, or has no such export.
    #[error(transparent)]
    Domain(#[from] DomainError),
    /// A call has no result.
    #[error(transparent)]
    Call(#[from] CallError),
    /// A batch of calls has not reached its end.
    #[error(transparent)]
    Batch(#[from] crate::BatchError),
    /// A domain's memory could not be accessed.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The domain's back end has no such thing.
    #[error(transparent)]
    Unsupported(#[from] crate::Unsupported),
    /// An operation on shared memory was refused.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// A call by a policy touched what the policy does not say.
    #[error("{source}\n{report}")]
    Denied {
        /// Which field of whose object, the rights that were there, and the line that the policy lacks.
        report: String,
        /// The fault.
        source: CallError,
    },
    /// Rights to words were refused.
    #[error(transparent)]
    Words(#[from] crate::WordsError),
    /// There is no snapshot of a domain.
    #[error(transparent)]
    Snapshot(#[from] crate::SnapshotError),
    /// A value from a domain failed a check.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// A string in a domain's memory is not what was asked for.
    #[error(transparent)]
    Text(#[from] TextError),
}

/// A string in a domain's memory cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TextError {
    /// The memory could not be read.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// No NUL came within the limit.
    #[error("the string at {address:#x} has no end within {limit} bytes")]
    TooLong {
        /// Where it starts.
        address: u64,
        /// The limit that the host set.
        limit: usize,
    },
    /// It is not UTF-8.
    #[error("the string at {address:#x} is not UTF-8 from byte {valid} on")]
    NotUtf8 {
        /// Where it starts.
        address: u64,
        /// How many bytes at the start are.
        valid: usize,
    },
}

/// The outcome of a call, with what the host function on this thread left behind if one ended it.
#[cold]
pub(crate) fn with_cause(error: CallError) -> CallError {
    let CallError::Fault(fault) = error else {
        return error;
    };
    // Looked at always, so that no stale failure waits for a later call.
    match PENDING.look(RefCell::take).flatten() {
        Some((import, cause)) if ended_by_host(&fault.kind) == Some(&*failure_text(&import, &cause)) => {
            CallError::Host(Arc::new(HostFailure::new(import, cause, *fault)))
        }
        _ => CallError::Fault(fault),
    }
}

/// What the host function said that ended the call, if one did.
fn ended_by_host(kind: &FaultKind) -> Option<&str> {
    match kind {
        FaultKind::Host(why) => Some(why),
        FaultKind::Callee(inner) => ended_by_host(&inner.kind),
        _ => None,
    }
}

/// The text by which a failure is found again, as much of it as a fault has: a domain may go on after a domain that it called was ended by a host function, and
/// what that left is nobody's then.
fn failure_text(import: &str, cause: &HostCause) -> String {
    let mut text = Text::<MOST_TEXT>::EMPTY;
    let _ = write!(text, "host function {import} {cause}");
    text.as_str().to_owned()
}

local! {
    /// What the last failing host function on this thread left for the call that it ends.
    static PENDING: RefCell<Option<(String, HostCause)>>
}

/// Keeps why a host function failed until the call that it ends returns on this thread.
#[cold]
pub(crate) fn leave_failure(import: &str, cause: HostCause) -> String {
    let message = failure_text(import, &cause);
    PENDING.with(|pending| pending.replace(Some((import.to_owned(), cause))));
    message
}
