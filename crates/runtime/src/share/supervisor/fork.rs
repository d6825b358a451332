//! Regions and `fork`.

use super::{State, lock};
use crate::os::lock::{Lock, Locked, Rank};
use crate::os::sys;
use ringfence_core::error::HostError;
use ringfence_isa::window;
use std::cell::UnsafeCell;

/// The lock, held across `fork` so that the child finds it free and the tables consistent.
struct AcrossFork(UnsafeCell<Option<Locked<'static, State>>>);
// SAFETY: touched by the thread that forks, which holds the lock meanwhile.
unsafe impl Sync for AcrossFork {}

static ACROSS_FORK: AcrossFork = AcrossFork(UnsafeCell::new(None));

/// A forked child has private copies of its parent's memory, but would share regions: it gets none.
pub(super) fn at_fork() -> Result<(), HostError> {
    extern "C" fn prepare() {
        let guard = lock();
        // SAFETY: we hold the lock.
        unsafe { *ACROSS_FORK.0.get() = Some(guard) };
    }
    extern "C" fn parent() {
        // SAFETY: set by this thread in `prepare`.
        drop(unsafe { (*ACROSS_FORK.0.get()).take() });
    }
    extern "C" fn child() {
        // SAFETY: as above.
        let Some(mut state) = (unsafe { (*ACROSS_FORK.0.get()).take() }) else {
            return;
        };
        for known in state.domains.values() {
            let at = known.base + u64::from(window::REGIONS);
            let len = u64::from(window::REGIONS_END - window::REGIONS);
            // SAFETY: the area for regions holds nothing else.
            let replaced = unsafe { sys::map_anonymous(at, len, libc::PROT_NONE, true) };
            // Where nothing may be mapped, what is there stays and cannot be reached.
            // SAFETY: the same area.
            let done = replaced
                .map(|_| ())
                .or_else(|_| unsafe { sys::protect(at, len, libc::PROT_NONE) });
            if done.is_err() {
                // Rather no child than one that shares memory it should not.
                std::process::abort();
            }
        }
        // What domains had is gone in this process. Handles of the host keep their own view, and can be given anew.
        state.revoke_all();
    }
    static DONE: Lock<bool> = Lock::new(Rank::SupervisorFork, false);
    let mut done = DONE.lock();
    if !*done {
        // SAFETY: registers three functions that stay.
        let e = unsafe { libc::pthread_atfork(Some(prepare), Some(parent), Some(child)) };
        if e != 0 {
            let source = std::io::Error::from_raw_os_error(e);
            return Err(HostError::Os {
                what: "registering for fork",
                source,
            });
        }
        *done = true;
    }
    Ok(())
}
