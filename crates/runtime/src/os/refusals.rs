//! For tests: lets the calling thread's system calls of [`sys`](super::sys) fail, one at a time.

use std::cell::Cell;

thread_local! {
    static LEFT: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Lets `count` calls pass, and the next one fail; `None` lets all pass. Whether the last request came true.
pub(crate) fn after(count: Option<u64>) -> bool {
    LEFT.replace(count).is_none()
}

/// Whether the call at hand fails; `errno` is set then.
pub(super) fn refused() -> bool {
    match LEFT.get() {
        None => false,
        Some(0) => {
            LEFT.set(None);
            // SAFETY: the calling thread's own word.
            unsafe { *libc::__errno_location() = libc::ENOMEM };
            true
        }
        Some(n) => {
            LEFT.set(Some(n - 1));
            false
        }
    }
}
