//! What is told of a host function that ended a domain's call.

use crate::fault::Fault;
use std::any::Any;
use std::fmt;
use std::sync::{Mutex, PoisonError};

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

/// The payload of a panic, until somebody goes on with it. In a lock, so that errors can be shared between threads.
pub struct Panic(Mutex<Option<Box<dyn Any + Send>>>);

impl Panic {
    /// Keeps the payload.
    #[must_use]
    pub fn new(payload: Box<dyn Any + Send>) -> Self {
        Self(Mutex::new(Some(payload)))
    }

    /// The payload; `None` if it was taken before.
    #[must_use]
    pub fn take(&self) -> Option<Box<dyn Any + Send>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The panic's message, if it has one.
    #[must_use]
    pub fn message(&self) -> String {
        let payload = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = payload.as_ref().and_then(|p| {
            let text = p.downcast_ref::<&str>().map(|s| (*s).to_owned());
            text.or_else(|| p.downcast_ref::<String>().cloned())
        });
        text.unwrap_or_else(|| "(no message)".to_owned())
    }
}

impl fmt::Debug for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Panic").field(&self.message()).finish()
    }
}
