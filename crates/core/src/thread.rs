//! Threads of back ends' own.
//!
//! Not made by the standard library: what that does at a thread's start (an alternate signal stack, with a guard) ends the process if the
//! system refuses it memory. Nothing here does; a thread that cannot be made is an error.

use std::ffi::{CStr, c_void};
use std::io;
use std::mem::zeroed;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

/// A thread's name and its work.
struct Start<F> {
    name: &'static CStr,
    work: Option<F>,
}

impl<F: FnOnce()> Start<F> {
    /// Does the work, once. A panic in it goes no further.
    fn run(&mut self) {
        // SAFETY: names the calling thread.
        unsafe { libc::prctl(libc::PR_SET_NAME, self.name.as_ptr(), 0, 0, 0) };
        if let Some(work) = self.work.take() {
            let _ = catch_unwind(AssertUnwindSafe(work));
        }
    }
}

/// A thread begins here.
extern "C" fn main<F: FnOnce()>(start: *mut c_void) -> *mut c_void {
    // SAFETY: whoever makes the thread leaves this to it alone, until it has ended or for good.
    unsafe { &mut *start.cast::<Start<F>>() }.run();
    null_mut()
}

/// The same, for a thread that owns its work.
extern "C" fn main_of_own<F: FnOnce()>(start: *mut c_void) -> *mut c_void {
    // SAFETY: whoever makes the thread gives it this.
    unsafe { Box::from_raw(start.cast::<Start<F>>()) }.run();
    null_mut()
}

type Main = extern "C" fn(*mut c_void) -> *mut c_void;

/// Makes a thread; with all signals blocked if it is `quiet`, else those that the calling thread blocks.
///
/// # Safety
/// `start` is what `main` takes, and its work may be done on another thread.
unsafe fn make(main: Main, start: *mut c_void, stack: usize, quiet: bool) -> io::Result<libc::pthread_t> {
    // SAFETY: changes the calling thread's mask and puts it back; the attributes are made and given back here.
    let (status, thread) = unsafe {
        let mut attributes: libc::pthread_attr_t = zeroed();
        let mut thread: libc::pthread_t = zeroed();
        let mut status = libc::pthread_attr_init(&raw mut attributes);
        if status == 0 {
            let (mut all, mut old): (libc::sigset_t, libc::sigset_t) = (zeroed(), zeroed());
            if quiet {
                libc::sigfillset(&raw mut all);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, &raw mut old);
            status = libc::pthread_attr_setstacksize(&raw mut attributes, stack);
            if status == 0 {
                status = libc::pthread_create(&raw mut thread, &raw const attributes, main, start);
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const old, null_mut());
            libc::pthread_attr_destroy(&raw mut attributes);
        }
        (status, thread)
    };
    match status {
        0 => Ok(thread),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Starts a thread that nobody waits for, with `stack` bytes of stack and the calling thread's signals.
///
/// # Errors
/// What the system says; `work` is dropped then.
pub fn spawn<F: FnOnce() + Send + 'static>(name: &'static CStr, stack: usize, work: F) -> io::Result<()> {
    let start = Box::into_raw(Box::new(Start {
        name,
        work: Some(work),
    }));
    // SAFETY: the thread owns it from its beginning on.
    match unsafe { make(main_of_own::<F>, start.cast(), stack, false) } {
        Ok(thread) => {
            // SAFETY: our thread, which nobody joins.
            unsafe { libc::pthread_detach(thread) };
            Ok(())
        }
        Err(e) => {
            // SAFETY: made above, and no thread has it.
            drop(unsafe { Box::from_raw(start) });
            Err(e)
        }
    }
}

/// Starts a thread that nobody waits for. It has `stack` bytes of stack, and blocks all signals.
///
/// # Errors
/// What the system says.
pub fn start(name: &'static CStr, stack: usize, work: fn()) -> io::Result<()> {
    let start = Box::into_raw(Box::new(Start {
        name,
        work: Some(work),
    }));
    // SAFETY: it is never freed if the thread begins: some words for each, and there is one watchdog.
    match unsafe { make(main::<fn()>, start.cast(), stack, true) } {
        Ok(thread) => {
            // SAFETY: our thread, which nobody joins.
            unsafe { libc::pthread_detach(thread) };
            Ok(())
        }
        Err(e) => {
            // SAFETY: made above, and no thread has it.
            drop(unsafe { Box::from_raw(start) });
            Err(e)
        }
    }
}

/// Does `work` on a thread with `stack` bytes of stack, and waits for it. `None` if there can be no thread, or the work panics.
pub fn apart<T: Send>(name: &'static CStr, stack: usize, work: impl FnOnce() -> T + Send) -> Option<T> {
    /// The thread's main function for a closure's type.
    fn main_for<F: FnOnce()>(_: &Start<F>) -> Main {
        main::<F>
    }
    let mut result = None;
    let into = &mut result;
    let mut start = Start {
        name,
        work: Some(move || *into = Some(work())),
    };
    let main = main_for(&start);
    // SAFETY: the thread has ended before `start`, or what it borrows, goes.
    unsafe {
        if let Ok(thread) = make(main, (&raw mut start).cast(), stack, true) {
            libc::pthread_join(thread, null_mut());
        }
    }
    drop(start);
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn work_is_done_apart_with_no_signals() {
        let here = std::thread::current().id();
        let text = String::from("borrowed");
        let found = apart(c"rf-test", 256 << 10, || {
            // SAFETY: asks for the calling thread's mask.
            let blocked = unsafe {
                let mut mask: libc::sigset_t = zeroed();
                libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &raw mut mask);
                libc::sigismember(&raw const mask, libc::SIGUSR1) == 1
            };
            (std::thread::current().id() != here, blocked, text.len())
        });
        assert_eq!(found, Some((true, true, 8)));
        assert_eq!(
            // A panic, but for the message, which nobody would expect in the log.
            apart(c"rf-test", 256 << 10, || -> u32 {
                std::panic::resume_unwind(Box::new("in a thread"))
            }),
            None
        );
        assert_eq!(apart(c"rf-test", usize::MAX / 2, || 1), None, "no such stack");
    }

    #[test]
    fn a_thread_of_its_own_begins() {
        static DONE: AtomicU32 = AtomicU32::new(0);
        start(c"rf-test", 128 << 10, || DONE.store(1, Ordering::Release)).unwrap();
        while DONE.load(Ordering::Acquire) == 0 {
            std::thread::yield_now();
        }
        assert!(start(c"rf-test", usize::MAX / 2, || ()).is_err());
    }
}
