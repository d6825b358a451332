//! Why the calling thread's last call failed.

use crate::lanes::gate::{self, status};
use ringfence_core::error::CallError;
use std::cell::RefCell;

thread_local! {
    static ERROR: RefCell<Option<CallError>> = const { RefCell::new(None) };
}

/// Fills the calling thread's slot and sets its status.
pub(crate) fn set_error(error: CallError) {
    let _ = ERROR.try_with(|slot| slot.try_borrow_mut().map(|mut s| *s = Some(error)));
    // SAFETY: our own thread's words.
    unsafe { (*gate::tls()).status = status::SLOT };
}

/// The last failed call's error.
pub(crate) fn take_error() -> Option<CallError> {
    // SAFETY: our own thread's words.
    let code = unsafe { std::mem::take(&mut (*gate::tls()).status) };
    match code {
        0 => None,
        status::FAULTED => Some(CallError::Faulted),
        status::GONE => Some(CallError::Gone),
        status::REVOKED => Some(CallError::Revoked),
        status::INSIDE => Some(CallError::Inside),
        status::SIGNAL_STACK => Some(CallError::SignalStack),
        status::ENDING => Some(CallError::Ending),
        status::REMOVED => Some(CallError::Removed),
        _ => ERROR.try_with(|slot| slot.try_borrow_mut().ok()?.take()).ok()?,
    }
}
