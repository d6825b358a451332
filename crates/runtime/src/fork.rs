//! Children: a forked child has private copies of all windows, one thread, and no watchdog.

use crate::error::HostError;
use crate::world::{self, Guard};
use std::cell::UnsafeCell;

/// The world's lock, held across `fork` so that the child finds it free and the tables consistent.
struct Held(UnsafeCell<Option<Guard>>);
// SAFETY: touched by the thread that forks, which holds the lock meanwhile.
unsafe impl Sync for Held {}

static HELD: Held = Held(UnsafeCell::new(None));

pub(crate) fn install() -> Result<(), HostError> {
    // SAFETY: registers three functions that stay.
    let e = unsafe { libc::pthread_atfork(Some(prepare), Some(parent), Some(child)) };
    if e != 0 {
        let source = std::io::Error::from_raw_os_error(e);
        return Err(HostError::Os {
            what: "registering for fork",
            source,
        });
    }
    Ok(())
}

unsafe extern "C" fn prepare() {
    if let Some(guard) = world::lock() {
        // SAFETY: we hold the lock.
        unsafe { *HELD.0.get() = Some(guard) };
    }
}

unsafe extern "C" fn parent() {
    // SAFETY: set by this thread in `prepare`.
    drop(unsafe { (*HELD.0.get()).take() });
}

unsafe extern "C" fn child() {
    // SAFETY: as above.
    let guard = unsafe { (*HELD.0.get()).take() };
    crate::watchdog::forget();
    if let Some(mut world) = guard {
        world::after_fork(&mut world);
    }
}
