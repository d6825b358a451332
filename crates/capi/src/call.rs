//! Calls through plain function pointers: how the last one ended, also in signal handlers.

use ringfence::dynamic;

use crate::status::Status;

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
