//! Errors of calls, and the one type that all errors convert to.

use std::any::Any;
use std::cell::RefCell;
use std::fmt;

use ringfence_runtime::{self as runtime, Fault, FaultKind, RegionError};

use crate::CheckError;
pub use ringfence_runtime::{DomainError, HostError, LoadError, MemoryError};

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
    /// A domain's memory could not be accessed.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// An operation on shared memory was refused.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// There is no image of a domain.
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

/// Why a call into a domain has no result.
///
/// After [`Fault`](Self::Fault), [`Host`](Self::Host) and [`Exit`](Self::Exit) the domain refuses calls, with
/// [`Faulted`](Self::Faulted), until [`Domain::reset`](crate::Domain::reset): its data may be half-changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The module's code failed; the fault tells where.
    #[error(transparent)]
    Fault(Box<Fault>),
    /// A host function that the domain called returned an error or panicked.
    #[error(transparent)]
    Host(Box<HostFailure>),
    /// The module called `exit` with this status.
    #[error("the module called exit({0}); reset the domain to use it again")]
    Exit(i32),
    /// An earlier call failed, and the domain has not been reset since.
    #[error("the domain failed in an earlier call; reset it first")]
    Faulted,
    /// The domain no longer exists.
    #[error("the domain no longer exists")]
    Gone,
    /// The call was refused before any code of the domain ran; the domain is as it was.
    #[error("the call was refused: {0}")]
    Refused(#[source] runtime::CallError),
}

impl CallError {
    /// The fault, if the domain's code failed.
    #[must_use]
    pub fn fault(&self) -> Option<&Fault> {
        match self {
            Self::Fault(fault) => Some(fault),
            Self::Host(failure) => Some(&failure.fault),
            _ => None,
        }
    }

    /// Goes on with the panic that ended the call, if a panic in a host function did; otherwise gives the error back.
    ///
    /// A panic in a host function does not unwind through the domain: it ends the domain's call, and the call returns
    /// [`CallError::Host`]. Hosts for which a panic is a bug that must not be swallowed write
    /// `f.call(…).map_err(CallError::resume_panic)?`.
    ///
    /// # Panics
    /// With the original payload, if the call was ended by a panic.
    #[must_use]
    pub fn resume_panic(self) -> Self {
        match self {
            Self::Host(failure) => match failure.cause {
                HostCause::Panic(Panic(payload)) => {
                    std::panic::resume_unwind(payload.into_inner().unwrap_or_else(|e| e.into_inner()))
                }
                cause => Self::Host(Box::new(HostFailure { cause, ..*failure })),
            },
            other => other,
        }
    }

    /// From the runtime's error, with what the host function on this thread left behind.
    #[cold]
    pub(crate) fn from_runtime(error: runtime::CallError) -> Self {
        match error {
            runtime::CallError::Fault(fault) => {
                // Looked at always, so that no stale failure waits for a later call.
                let left = PENDING.take();
                match left {
                    Some((import, cause))
                        if ended_by_host(&fault.kind) == Some(&*failure_text(&import, &cause)) =>
                    {
                        Self::Host(Box::new(HostFailure {
                            import,
                            cause,
                            fault: *fault,
                        }))
                    }
                    _ => Self::Fault(fault),
                }
            }
            runtime::CallError::Exit(status) => Self::Exit(status),
            runtime::CallError::Faulted => Self::Faulted,
            runtime::CallError::Gone => Self::Gone,
            other => Self::Refused(other),
        }
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

/// The text by which a failure is found again: a domain may go on after a domain that it called was ended by a host function, and
/// what that left is nobody's then.
fn failure_text(import: &str, cause: &HostCause) -> String {
    format!("host function {import} {cause}")
}

thread_local! {
    /// What the last failing host function on this thread left for the call that it ends.
    static PENDING: RefCell<Option<(String, HostCause)>> = const { RefCell::new(None) };
}

/// Keeps why a host function failed until the call that it ends returns on this thread.
#[cold]
pub(crate) fn leave_failure(import: &str, cause: HostCause) -> String {
    let message = failure_text(import, &cause);
    PENDING.set(Some((import.to_owned(), cause)));
    message
}

/// A host function ended a domain's call.
#[derive(Debug)]
#[non_exhaustive]
pub struct HostFailure {
    /// Name of the import.
    pub import: String,
    /// Why it failed.
    pub cause: HostCause,
    /// Where the domain was: its backtrace names the function that called the host.
    pub fault: Fault,
}

/// Why a host function failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum HostCause {
    /// It returned an error.
    Error(Box<dyn std::error::Error + Send + Sync>),
    /// It panicked.
    Panic(Panic),
}

impl fmt::Display for HostCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(e) => write!(f, "failed: {e}"),
            Self::Panic(p) => write!(f, "panicked: {}", p.message()),
        }
    }
}

impl fmt::Display for HostFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "host function {} {}", self.import, self.cause)?;
        if let Some(frame) = self.fault.backtrace().first()
            && let Some(function) = &frame.function
        {
            write!(f, " (called from {function}")?;
            if let (Some(file), Some(line)) = (&frame.file, frame.line) {
                write!(f, " at {file}:{line}")?;
            }
            write!(f, ")")?;
        }
        Ok(())
    }
}

impl std::error::Error for HostFailure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.cause {
            HostCause::Error(e) => Some(&**e),
            HostCause::Panic(_) => None,
        }
    }
}

/// The payload of a panic. In a lock, so that errors can be shared between threads.
pub struct Panic(std::sync::Mutex<Box<dyn Any + Send>>);

impl Panic {
    pub(crate) fn new(payload: Box<dyn Any + Send>) -> Self {
        Self(std::sync::Mutex::new(payload))
    }

    /// The panic's message, if it has one.
    #[must_use]
    pub fn message(&self) -> String {
        let payload = self.0.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(s) = payload.downcast_ref::<&str>() {
            (*s).to_owned()
        } else if let Some(s) = payload.downcast_ref::<String>() {
            s.clone()
        } else {
            "(no message)".to_owned()
        }
    }
}

impl fmt::Debug for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Panic").field(&self.message()).finish()
    }
}
