//! What a program may do early, for the whole process.

use ringfence::{InitOptions, init};

use crate::error::status;
use crate::status::{Failure, Status};

/// `rf_process_options` of the header.
#[repr(C)]
pub struct Init {
    size: usize,
    tick_signal: i32,
    reserved: i32,
}

/// See the header.
///
/// # Safety
/// `options` is null or points to `options->size` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_process_init(options: *const Init) -> Status {
    status(|| {
        let mut wanted = InitOptions::default();
        if !options.is_null() {
            // SAFETY: the size comes first in every version.
            let size = unsafe { (&raw const (*options).size).read() };
            if size != size_of::<Init>() {
                let message =
                    format!("rf_process_options.size is {size}; set it through RF_PROCESS_OPTIONS_INIT");
                return Err(Failure::new(Status::ERROR_ARGUMENT, message));
            }
            // SAFETY: the caller's promise.
            let given = unsafe { &*options };
            wanted.tick_signal = (given.tick_signal != 0).then_some(given.tick_signal);
        }
        init(&wanted).map_err(Failure::from)
    })
}
