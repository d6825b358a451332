//! Why a call has no result.

use super::MemoryError;
use crate::fault::Fault;
use crate::host_cause::HostCause;
use std::fmt;

/// Why a call has no result: the one outcome that all interfaces have, from the gate to C's `rf_status`.
///
/// After [`Fault`](Self::Fault), [`Host`](Self::Host), [`Exit`](Self::Exit) and a limit of time that was
/// [`Exceeded`](Self::Exceeded) the domain refuses calls, with [`Faulted`](Self::Faulted), until it is reset: its data may
/// be half-changed. After all others it is as it was.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The domain's code failed during this call; the fault tells where.
    #[error(transparent)]
    Fault(Box<Fault>),
    /// A host function that the domain called returned an error or panicked. (From functions that are called by their Rust
    /// types; else such a call has a fault with the kind `Host`.)
    #[error(transparent)]
    Host(std::sync::Arc<HostFailure>),
    /// The domain asked to exit. It refuses calls until it is reset.
    #[error("the module called exit({0})")]
    Exit(i32),
    /// The domain failed in an earlier call and was not reset.
    #[error("the domain has faulted; reset it first{}", first_failure(first.as_deref()))]
    Faulted {
        /// How the first call failed that did, if that is still known: it was not reset since, and nobody else was asking at
        /// the same moment.
        first: Option<Box<CallError>>,
    },
    /// The domain no longer exists.
    #[error("the domain is gone")]
    Gone,
    /// The domain had a process of its own, which is not there any more. A reset starts another one.
    #[error("the domain's process is of no use: {how}; reset the domain")]
    Process {
        /// What has become of it.
        how: String,
    },
    /// The function was revoked, or not handed out yet.
    #[error("the function was revoked, or not handed out yet")]
    Revoked,
    /// The function came to the living domain, and has been removed since.
    #[error("the function has been removed")]
    Removed,
    /// The thread is inside a domain: a signal handler tried to enter one.
    #[error("a domain cannot be entered from a signal handler that interrupted one")]
    Inside,
    /// The caller runs on the alternate signal stack, which a fault would overwrite.
    #[error("a domain cannot be entered from a handler that runs on the alternate signal stack")]
    SignalStack,
    /// Too many calls are nested in each other on this lane, or too little of the thread's stack is left for what the domain may call.
    /// The domain is as it was.
    #[error(
        "host and domains call each other too deeply: more than 100 calls of this domain, or 16 KiB of the thread's stack left"
    )]
    Nesting,
    /// The call that this one is nested in has run out of time, or was interrupted.
    #[error("the call in progress on this thread has to end")]
    Ending,
    /// The domain has had all the calls that it may get.
    #[error(
        "the domain has had the {limit} calls that it may get; make a new one, or raise DomainOptions::call_limit"
    )]
    Calls {
        /// The limit.
        limit: u64,
    },
    /// All lanes of the domain are taken by other threads.
    #[error(
        "{limit} threads already have a lane in this domain; let one of them end, trim the domain, or raise DomainOptions::max_lanes (63 at most)"
    )]
    NoLane {
        /// The limit.
        limit: u32,
    },
    /// The stacks that the calling thread needs in the domain do not fit under its memory limit.
    #[error(
        "the stacks of a thread: {0}; raise DomainOptions::memory_limit, or lower data_stack or control_stack"
    )]
    Memory(MemoryError),
    /// The arguments do not fit.
    #[error("{given} words of stack arguments, at most {limit} are allowed")]
    Arguments {
        /// How many were given.
        given: usize,
        /// How many are allowed.
        limit: usize,
    },
    /// Several calls that have one limit together, constructors or destructors, were given up. The domain has faulted.
    #[error("its constructors or destructors: {0}")]
    Exceeded(crate::work::Exceeded),
    /// The lane could not be made.
    #[error("making a lane: {0}")]
    Lane(String),
}

impl CallError {
    /// What a server may show to its users, as [`Fault::public`] has it.
    #[must_use]
    pub fn public(&self) -> impl fmt::Display + '_ {
        struct Public<'a>(&'a CallError);
        impl fmt::Display for Public<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.0 {
                    CallError::Faulted { first: Some(first) } => {
                        write!(f, "failed before: {}", first.public())
                    }
                    CallError::Faulted { first: None } => f.write_str("failed before"),
                    // The text of the system's may name what is the host's.
                    CallError::Lane(_) => f.write_str("no room for the call"),
                    error => match error.fault() {
                        Some(fault) => write!(f, "{}", fault.public()),
                        None => write!(f, "{error}"),
                    },
                }
            }
        }
        Public(self)
    }

    /// The fault, if the domain's code failed, or a host function ended it.
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
    /// With the original payload, if the call was ended by a panic that nobody has gone on with yet.
    #[must_use]
    pub fn resume_panic(self) -> Self {
        if let Self::Host(failure) = &self
            && let HostCause::Panic(panic) = &failure.cause
            && let Some(payload) = panic.take()
        {
            std::panic::resume_unwind(payload);
        }
        self
    }
}

/// The end of a message about a domain that is of no use because of an earlier failure.
fn first_failure(first: Option<&CallError>) -> String {
    first.map_or(String::new(), |first| format!(" (the first failure: {first})"))
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

impl HostFailure {
    /// What ended the call that has this fault.
    #[must_use]
    pub fn new(import: String, cause: HostCause, fault: Fault) -> Self {
        Self { import, cause, fault }
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
