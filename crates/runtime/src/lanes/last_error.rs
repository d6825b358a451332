//! Why the calling thread's last call failed.

use crate::lanes::first::First;
use crate::lanes::gate::{self, status};
use ringfence_core::error::CallError;
use std::cell::RefCell;
use std::sync::Arc;

thread_local! {
    static ERROR: RefCell<Option<CallError>> = const { RefCell::new(None) };
    /// What the domain that refused the last call was refused for.
    static REFUSED: RefCell<Option<Arc<First>>> = const { RefCell::new(None) };
}

/// A call was refused because of an earlier failure.
pub(crate) fn refuse(first: &Arc<First>) {
    let _ = REFUSED.try_with(|slot| slot.try_borrow_mut().map(|mut s| *s = Some(first.clone())));
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
        status::FAULTED => {
            let first = REFUSED.try_with(|slot| slot.try_borrow_mut().ok()?.take());
            let first = first.ok().flatten().and_then(|first| first.get());
            Some(CallError::Faulted {
                first: first.map(Box::new),
            })
        }
        status::GONE => Some(CallError::Gone),
        status::REVOKED => Some(CallError::Revoked),
        status::INSIDE => Some(CallError::Inside),
        status::SIGNAL_STACK => Some(CallError::SignalStack),
        status::ENDING => Some(CallError::Ending),
        status::REMOVED => Some(CallError::Removed),
        _ => ERROR.try_with(|slot| slot.try_borrow_mut().ok()?.take()).ok()?,
    }
}
