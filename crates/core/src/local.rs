//! Values of each thread's own.
//!
//! The standard library's `thread_local!` has the C library note that a value is to be dropped, and that ends the process where there is
//! no memory for the note. A value that cannot be had is an answer here.

use std::cell::Cell;
use std::ffi::c_void;
use std::mem::zeroed;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::LocalKey;

/// A value of each thread's, made when it is first needed, and dropped when the thread ends; that of the thread that ends the process
/// stays. Made by [`local!`](crate::local!).
///
/// The C library drops it, by a key of its own. A copy in another link name space has another C library, whose keys the program's threads
/// do not know: they would be taken for the program's. There values stay when threads end.
pub struct Local<T: 'static> {
    cell: &'static LocalKey<Place<T>>,
    /// One more than the number of the C library's key; 0 before the first use, or [`NONE`].
    key: AtomicU32,
}

/// Where a thread's value is; null before it is there.
pub type Place<T> = Cell<*mut Held<T>>;

/// There is no key: values stay.
const NONE: u32 = u32::MAX;

/// A value.
pub struct Held<T: 'static> {
    cell: &'static LocalKey<Place<T>>,
    value: T,
}

/// Makes a [`Local`].
#[macro_export]
macro_rules! local {
    ($(#[$attribute:meta])* $visible:vis static $name:ident: $value:ty) => {
        $(#[$attribute])*
        $visible static $name: $crate::local::Local<$value> = {
            ::std::thread_local! {
                static CELL: $crate::local::Place<$value> = const { ::std::cell::Cell::new(::std::ptr::null_mut()) };
            }
            $crate::local::Local::new(&CELL)
        };
    };
}

/// Stands for a value that was dropped: nobody gets another one on a thread that is ending.
fn ended<T: 'static>() -> *mut Held<T> {
    std::ptr::without_provenance_mut(align_of::<Held<T>>())
}

/// The thread ends, with this value.
extern "C" fn end<T: 'static>(held: *mut c_void) {
    // SAFETY: made by `Local::with`, which nobody is in any more.
    let held = unsafe { Box::from_raw(held.cast::<Held<T>>()) };
    held.cell.set(ended());
    drop(held);
}

/// Whether this code is in the program's own link name space.
fn is_in_base() -> bool {
    static HERE: u8 = 0;
    /// `RTLD_DL_LINKMAP`.
    const DL_LINKMAP: libc::c_int = 2;
    // SAFETY: asks the loader which object an address of ours is in, and that object's name space.
    unsafe {
        let (mut info, mut object): (libc::Dl_info, *mut c_void) = (zeroed(), null_mut());
        let at = (&raw const HERE).cast();
        if libc::dladdr1(at, &raw mut info, &raw mut object, DL_LINKMAP) == 0 || object.is_null() {
            return true; // a program without a loader
        }
        let mut space: libc::Lmid_t = libc::LM_ID_BASE;
        libc::dlinfo(object, libc::RTLD_DI_LMID, (&raw mut space).cast()) != 0 || space == libc::LM_ID_BASE
    }
}

impl<T: Default> Local<T> {
    /// No thread has one.
    #[must_use]
    pub const fn new(cell: &'static LocalKey<Place<T>>) -> Self {
        Self {
            cell,
            key: AtomicU32::new(0),
        }
    }

    /// The key, made if it was not, or [`NONE`]. `None` if the process has no more.
    fn key(&self) -> Option<u32> {
        let known = self.key.load(Ordering::Acquire);
        if known != 0 {
            return Some(known);
        }
        let (mut key, is_in_base) = (0, is_in_base());
        // SAFETY: the values are what `end` takes.
        if is_in_base && unsafe { libc::pthread_key_create(&raw mut key, Some(end::<T>)) } != 0 {
            return None;
        }
        let new = if is_in_base { key + 1 } else { NONE };
        match self
            .key
            .compare_exchange(0, new, Ordering::AcqRel, Ordering::Acquire)
        {
            Ok(_) => Some(new),
            Err(other) => {
                if is_in_base {
                    // SAFETY: our own, of which nobody knows.
                    unsafe { libc::pthread_key_delete(key) };
                }
                Some(other)
            }
        }
    }

    /// Lets `f` see the calling thread's value, if it has one. Allocates nothing.
    pub fn look<R>(&'static self, f: impl FnOnce(&T) -> R) -> Option<R> {
        let held = self.cell.get();
        if held == ended() {
            return None;
        }
        // SAFETY: null, or what `with` has made. It stays until the thread ends, which it does not in `f`.
        let held = unsafe { held.as_ref() }?;
        Some(f(&held.value))
    }

    /// Lets `f` see the calling thread's value. `None` if the thread is ending, or there is no memory for one.
    pub fn with<R>(&'static self, f: impl FnOnce(&T) -> R) -> Option<R> {
        if self.cell.get().is_null() {
            let key = self.key()?;
            let held = Box::into_raw(Box::new(Held {
                cell: self.cell,
                value: T::default(),
            }));
            // SAFETY: a key that is there for ever, and what `end` takes.
            if key != NONE && unsafe { libc::pthread_setspecific(key - 1, held.cast()) } != 0 {
                // SAFETY: made above, and nobody has it.
                drop(unsafe { Box::from_raw(held) });
                return None;
            }
            self.cell.set(held);
        }
        self.look(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    crate::local!(static LOCAL: Counted);

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
