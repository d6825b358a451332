//! Why a host function ended a domain's call.

use std::any::Any;
use std::fmt;
use std::sync::{Mutex, PoisonError};

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
        let text = payload.as_ref().map_or(NO_MESSAGE, |payload| said(&**payload));
        text.to_owned()
    }
}

/// What a panic without text, or one whose payload was taken, is told with.
const NO_MESSAGE: &str = "(no message)";

/// What a panic said.
pub(crate) fn said(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or(NO_MESSAGE)
}

impl fmt::Debug for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Panic").field(&self.message()).finish()
    }
}
