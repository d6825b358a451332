//! Calls that the host jumps over.

use ringfence_core::calling;
use ringfence_runtime::{Backend, Feature, Mark, StaleMark, Unsupported};

/// Why calls were not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnwindError {
    /// Nothing has happened.
    Stale(StaleMark),
    /// A domain whose back end cannot be left so has been left: its call stays in progress there, for as long as the domain.
    /// Calls of domains in windows are ended.
    Unsupported(Unsupported),
}

impl std::fmt::Display for UnwindError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            UnwindError::Stale(e) => e.fmt(f),
            UnwindError::Unsupported(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for UnwindError {}

impl From<StaleMark> for UnwindError {
    fn from(e: StaleMark) -> Self {
        UnwindError::Stale(e)
    }
}

/// Ends all calls of the calling thread that were begun since the mark was taken, as [`ringfence_runtime::unwind`] says.
///
/// # Errors
/// [`UnwindError`].
///
/// # Safety
/// As for [`ringfence_runtime::unwind`].
pub unsafe fn unwind(mark: Mark) -> Result<u32, UnwindError> {
    // SAFETY: the caller's promise.
    let ended = unsafe { ringfence_runtime::unwind(mark) }?;
    // What was left lies further in on the stack than who calls this: a call and a call out, which take more than this function.
    let here = 0u8;
    match calling::left_to(std::ptr::from_ref(&here) as u64) {
        false => Ok(ended),
        true => Err(UnwindError::Unsupported(Unsupported {
            feature: Feature::Unwind,
            backend: Backend::Process,
        })),
    }
}
