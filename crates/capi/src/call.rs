//! Calls through plain function pointers: how the last one ended, also in signal handlers; and those that the host leaves.

use ringfence::dynamic::{self, UnwindError};

use crate::caller;
use crate::error::status;
use crate::status::{Failure, Status};

/// `rf_mark` of the header.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Mark {
    call: u64,
    caller: *const caller::Caller,
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_call_mark() -> Mark {
    Mark {
        call: dynamic::mark().to_bits(),
        caller: caller::innermost(),
    }
}

/// See the header.
///
/// # Safety
/// The calls were left as the header demands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_call_unwind(mark: Mark) -> Status {
    // SAFETY: the caller's promise.
    match unsafe { dynamic::unwind(dynamic::Mark::from_bits(mark.call)) } {
        Ok(_) => {
            caller::leave_to(mark.caller);
            Status::OK
        }
        Err(UnwindError::Unsupported(e)) => status(|| Err(e.into())),
        Err(e) => status(|| Err(Failure::new(Status::ERROR_ARGUMENT, e.to_string()))),
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_call_status() -> Status {
    dynamic::last_call().into()
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_call_save() -> u64 {
    dynamic::save_call()
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_call_restore(saved: u64) {
    dynamic::restore_call(saved);
}
