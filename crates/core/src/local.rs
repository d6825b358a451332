//! Values of each thread's own.
//!
//! The standard library's `thread_local!` has the C library note that a value is to be dropped, and that ends the process where there is
//! no memory for the note. A value that cannot be had is an answer here.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, Ordering};

/// A value of each thread's, made when it is first needed, and dropped when the thread ends; that of the thread that ends the process stays.
pub struct Local<T: 'static> {
    /// One more than the number of the C library's key; 0 before the first use.
    key: AtomicU32,
    value: PhantomData<fn() -> T>,
}

/// What a key leads to.
struct Held<T> {
    key: libc::pthread_key_t,
    value: T,
}

/// Stands for a value that was dropped: nobody gets another one on a thread that is ending.
static ENDED: u8 = 0;

fn ended() -> *mut c_void {
    (&raw const ENDED).cast_mut().cast()
}

/// The thread ends, with this value.
extern "C" fn end<T>(held: *mut c_void) {
    if held == ended() {
        return;
    }
    // SAFETY: made by `Local::with`, which nobody is in any more.
    let held = unsafe { Box::from_raw(held.cast::<Held<T>>()) };
    // SAFETY: a key that is there for ever. Nothing is allocated: this thread had a value there.
    unsafe { libc::pthread_setspecific(held.key, ended()) };
    drop(held);
}

impl<T: Default> Local<T> {
    /// No thread has one.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            key: AtomicU32::new(0),
            value: PhantomData,
        }
    }

    /// The key, made if it was not. `None` if the process has no more.
    fn key(&self) -> Option<libc::pthread_key_t> {
        let known = self.key.load(Ordering::Acquire);
        if known != 0 {
            return Some(known - 1);
        }
        let mut key = 0;
        // SAFETY: the values are what `end` takes.
        if unsafe { libc::pthread_key_create(&raw mut key, Some(end::<T>)) } != 0 {
            return None;
        }
        match self
            .key
            .compare_exchange(0, key + 1, Ordering::AcqRel, Ordering::Acquire)
        {
            Ok(_) => Some(key),
            Err(other) => {
                // SAFETY: our own, of which nobody knows.
                unsafe { libc::pthread_key_delete(key) };
                Some(other - 1)
            }
        }
    }

    /// Lets `f` see the calling thread's value, if it has one. Allocates nothing.
    pub fn look<R>(&'static self, f: impl FnOnce(&T) -> R) -> Option<R> {
        let key = self.key.load(Ordering::Acquire).checked_sub(1)?;
        // SAFETY: a key that is there for ever.
        let held = unsafe { libc::pthread_getspecific(key) };
        if held == ended() {
            return None;
        }
        // SAFETY: null, or what `with` has made. It stays until the thread ends, which it does not in `f`.
        let held = unsafe { held.cast::<Held<T>>().as_ref() }?;
        Some(f(&held.value))
    }

    /// Lets `f` see the calling thread's value. `None` if the thread is ending, or there is no memory for one.
    pub fn with<R>(&'static self, f: impl FnOnce(&T) -> R) -> Option<R> {
        let key = self.key()?;
        // SAFETY: a key that is there for ever.
        if unsafe { libc::pthread_getspecific(key) }.is_null() {
            let held = Box::into_raw(Box::new(Held {
                key,
                value: T::default(),
            }));
            // SAFETY: what `end` takes.
            if unsafe { libc::pthread_setspecific(key, held.cast()) } != 0 {
                // SAFETY: made above, and nobody has it.
                drop(unsafe { Box::from_raw(held) });
                return None;
            }
        }
        self.look(f)
    }
}

impl<T: Default> Default for Local<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::sync::atomic::AtomicUsize;

    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    static LOCAL: Local<Counted> = Local::new();

    #[derive(Default)]
    struct Counted(Cell<u32>);

    impl Drop for Counted {
        fn drop(&mut self) {
            assert_eq!(LOCAL.with(|_| ()), None, "there is no other one");
            DROPPED.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn each_thread_has_its_own_until_it_ends() {
        let thread = |n: u32| {
            move || {
                assert_eq!(LOCAL.look(|_| ()), None, "nobody has asked");
                LOCAL.with(|v| v.0.set(n)).expect("a value");
                assert_eq!(LOCAL.look(|v| v.0.get()), Some(n));
                assert_eq!(LOCAL.with(|v| v.0.get()), Some(n));
            }
        };
        let threads: Vec<_> = (0..4).map(|n| std::thread::spawn(thread(n))).collect();
        for thread in threads {
            thread.join().expect("no failure");
        }
        assert_eq!(DROPPED.load(Ordering::SeqCst), 4);
    }
}
