//! Where the calling thread has its stack: host functions that a domain calls need some of it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What must be free of a thread's stack for a call to begin: host functions that a domain calls have it. A quarter of stacks that are
/// smaller than four times that.
const STACK_RESERVE: u64 = 16 << 10;

/// What was found for a process's first thread: its handle, which no other thread ever has, the limit of stacks then, and the result. Only
/// that thread looks here.
static FIRST: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];

/// The lowest address of the calling thread's stack, and what must be free above it; nothing if the system does not tell.
///
/// For a process's first thread the C library reads all of `/proc/self/maps`, which takes a quarter of a millisecond in a large program. A
/// process that `fork` makes has that thread's stack at the same place, so what was found is kept while the limit is the same.
pub(crate) fn find() -> (u64, u64) {
    // SAFETY: these look at no memory of ours.
    let (me, first) = unsafe { (libc::pthread_self() as u64, libc::gettid() == libc::getpid()) };
    if !first {
        return ask();
    }
    let limit = limit();
    let [thread, then, low, reserve] = &FIRST;
    if (thread.load(Relaxed), then.load(Relaxed)) != (me, limit) {
        let found = ask();
        low.store(found.0, Relaxed);
        reserve.store(found.1, Relaxed);
        then.store(limit, Relaxed);
        thread.store(me, Relaxed);
    }
    (low.load(Relaxed), reserve.load(Relaxed))
}

/// The soft limit of stacks.
fn limit() -> u64 {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: writes what it is given.
    unsafe { libc::getrlimit(libc::RLIMIT_STACK, &raw mut limit) };
    limit.rlim_cur
}

fn ask() -> (u64, u64) {
    // SAFETY: asks the C library for the calling thread's attributes, into memory of ours.
    unsafe {
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        let (mut low, mut size) = (std::ptr::null_mut(), 0);
        if libc::pthread_getattr_np(libc::pthread_self(), &raw mut attributes) != 0 {
            return (0, 0);
        }
        let e = libc::pthread_attr_getstack(&raw const attributes, &raw mut low, &raw mut size);
        libc::pthread_attr_destroy(&raw mut attributes);
        match e {
            0 => (low as u64, STACK_RESERVE.min(size as u64 / 4)),
            _ => (0, 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stack_of_any_thread_is_found_where_it_is() {
        let check = || {
            let here = 0u8;
            let (low, reserve) = find();
            let here = (&raw const here) as u64;
            assert!(low < here && here - low <= 1 << 40, "{here:x} {low:x}");
            assert_eq!(reserve, STACK_RESERVE);
            assert_eq!(find(), ask());
        };
        check();
        std::thread::spawn(check).join().unwrap();
    }
}
