//! A little memory for when there is none: an allocator that a host puts around its own.
//!
//! What a module's author decides the size of is allocated so that failing is an error. The runtime's own records are small, many, and
//! made through types of the standard library, which ends the process when there is no memory for them. With a [`Reserve`] as
//! the global allocator such an allocation is served from a block that the program has had from its start; and operations that make
//! records begin only while enough of the block is free, and are [`HostError::NoMemory`] otherwise. So what begins, ends.

use ringfence_core::error::HostError;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Bytes of the block. Untouched ones cost address space only.
pub const SIZE: usize = 1 << 20;

/// One operation takes no more than this: making a domain, with a lane, takes about a tenth.
const NEEDED: usize = 512 << 10;

/// What is larger is no record of the runtime's: it fails, and whoever asked for it can tell.
const LARGEST: usize = 64 << 10;

/// Pieces are counted in these.
const GRAIN: usize = 64;
const GRAINS: usize = SIZE / GRAIN;

#[repr(align(4096))]
struct Block(UnsafeCell<[u8; SIZE]>);

// SAFETY: each piece of it is used by who got it; `Taken` sees to that.
unsafe impl Sync for Block {}

static BLOCK: Block = Block(UnsafeCell::new([0; SIZE]));

/// Which grains are in use, a bit each.
struct Taken(UnsafeCell<[u64; GRAINS / 64]>);

// SAFETY: looked at and changed by who holds `LOCKED` only.
unsafe impl Sync for Taken {}

static TAKEN: Taken = Taken(UnsafeCell::new([0; GRAINS / 64]));
static LOCKED: AtomicBool = AtomicBool::new(false);
/// Bytes in use.
static USED: AtomicUsize = AtomicUsize::new(0);

/// An allocator with a reserve of a megabyte for small allocations that fail otherwise. All `Reserve`s of a program share it.
///
/// The C library has one. A Rust program gives itself one, and none of the runtime's own allocations ends it any more:
///
/// ```
/// # use ringfence_runtime::Reserve;
/// #[global_allocator]
/// static MEMORY: Reserve = Reserve::system();
/// ```
///
/// Costs a comparison for each deallocation. Thread-safe; for signal handlers as little as any allocator.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reserve<A = System>(A);

impl Reserve {
    /// Around the system's allocator.
    #[must_use]
    pub const fn system() -> Reserve {
        Reserve(System)
    }
}

impl<A> Reserve<A> {
    /// Bytes of the block that are in use: 0 unless allocations have failed.
    #[must_use]
    pub fn used() -> usize {
        USED.load(Ordering::Relaxed)
    }

    /// Around an allocator.
    #[must_use]
    pub const fn around(allocator: A) -> Reserve<A> {
        Reserve(allocator)
    }
}

/// Whether an operation may begin that makes records. Without a [`Reserve`] it always may.
///
/// # Errors
/// [`HostError::NoMemory`].
pub(crate) fn ready() -> Result<(), HostError> {
    match SIZE - USED.load(Ordering::Relaxed) >= NEEDED {
        true => Ok(()),
        false => Err(HostError::NoMemory),
    }
}

/// Calls `work` with the bits of all grains, alone.
fn alone<T>(work: impl FnOnce(&mut [u64; GRAINS / 64]) -> T) -> T {
    while LOCKED
        .compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed)
        .is_err()
    {
        std::hint::spin_loop();
    }
    // SAFETY: the lock is held.
    let done = work(unsafe { &mut *TAKEN.0.get() });
    LOCKED.store(false, Ordering::Release);
    done
}

fn is_free(taken: &[u64; GRAINS / 64], grain: usize) -> bool {
    taken[grain / 64] >> (grain % 64) & 1 == 0
}

fn flip(taken: &mut [u64; GRAINS / 64], from: usize, count: usize) {
    for grain in from..from + count {
        taken[grain / 64] ^= 1 << (grain % 64);
    }
}

fn grains(size: usize) -> usize {
    size.div_ceil(GRAIN).max(1)
}

/// A piece of the block; null if there is none.
#[cold]
fn take(layout: Layout) -> *mut u8 {
    if layout.size() > LARGEST || layout.align() > 4096 {
        return null_mut();
    }
    let (count, step) = (grains(layout.size()), (layout.align() / GRAIN).max(1));
    let place = alone(|taken| {
        let fits = |&from: &usize| from + count <= GRAINS && (from..from + count).all(|g| is_free(taken, g));
        let from = (0..GRAINS).step_by(step).find(fits)?;
        flip(taken, from, count);
        Some(from)
    });
    let Some(place) = place else {
        return null_mut();
    };
    USED.fetch_add(count * GRAIN, Ordering::Relaxed);
    // SAFETY: inside the block.
    unsafe { BLOCK.0.get().cast::<u8>().add(place * GRAIN) }
}

/// Whether a pointer is into the block.
fn is_ours(at: *mut u8) -> bool {
    (at as usize).wrapping_sub(BLOCK.0.get() as usize) < SIZE
}

#[cold]
fn give(at: *mut u8, size: usize) {
    let place = (at as usize - BLOCK.0.get() as usize) / GRAIN;
    alone(|taken| flip(taken, place, grains(size)));
    USED.fetch_sub(grains(size) * GRAIN, Ordering::Relaxed);
}

// SAFETY: what the inner allocator gives is the inner allocator's, and what the block gives is the block's; which it is, the address
// tells. Pieces of the block do not overlap, and are aligned to 64 bytes, or to what was asked for.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Reserve<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let at = unsafe { self.0.alloc(layout) };
        if at.is_null() { take(layout) } else { at }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let at = unsafe { self.0.alloc_zeroed(layout) };
        if !at.is_null() {
            return at;
        }
        let at = take(layout);
        if !at.is_null() {
            // SAFETY: a piece of this size.
            unsafe { at.write_bytes(0, layout.size()) };
        }
        at
    }

    #[inline]
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !is_ours(at) {
            // SAFETY: the caller's promise.
            let moved = unsafe { self.0.realloc(at, layout, size) };
            if !moved.is_null() {
                return moved;
            }
        }
        // SAFETY: the caller's promise: the size is not too large for the alignment.
        let new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        let moved = match is_ours(at) {
            // SAFETY: the caller's promise.
            true => unsafe { self.alloc(new) },
            false => take(new),
        };
        if !moved.is_null() {
            // SAFETY: two different pieces, both at least so large; the old one is given back as it was got.
            unsafe {
                moved.copy_from_nonoverlapping(at, layout.size().min(size));
                self.dealloc(at, layout);
            }
        }
        moved
    }

    #[inline]
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        if is_ours(at) {
            return give(at, layout.size());
        }
        // SAFETY: the caller's promise, and it is the inner allocator's.
        unsafe { self.0.dealloc(at, layout) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// There never is any memory.
    struct Nothing;

    // SAFETY: it gives nothing.
    unsafe impl GlobalAlloc for Nothing {
        unsafe fn alloc(&self, _: Layout) -> *mut u8 {
            null_mut()
        }
        unsafe fn dealloc(&self, _: *mut u8, _: Layout) {
            panic!("it gave nothing");
        }
    }

    /// One test: all reserves share the block, and the operations of other tests must be allowed to begin.
    #[test]
    fn what_there_is_no_memory_for_is_from_the_reserve() {
        let reserve = Reserve::around(Nothing);
        let layout = |size, align| Layout::from_size_align(size, align).unwrap();
        // SAFETY: what is allocated is used in its bounds, and given back with its layout.
        unsafe {
            let mut all = Vec::new();
            for (n, (size, align)) in [(1, 1), (64, 8), (65, 64), (4096, 4096), (100, 256)]
                .into_iter()
                .enumerate()
            {
                let layout = layout(size, align);
                let at = reserve.alloc(layout);
                assert!(
                    is_ours(at) && (at as usize).is_multiple_of(align),
                    "{size} {align}"
                );
                at.write_bytes(n as u8, size);
                all.push((at, layout, n as u8));
            }
            ready().unwrap();
            let (at, small, _) = all[1];
            let grown = reserve.realloc(at, small, 5000);
            all[1] = (grown, layout(5000, 8), 1);
            assert!((0..64).all(|i| *grown.add(i) == 1));
            let shrunk = reserve.realloc(grown, layout(5000, 8), 10);
            all[1] = (shrunk, layout(10, 8), 1);
            for &(at, layout, n) in &all {
                assert!((0..layout.size()).all(|i| *at.add(i) == n), "{layout:?}");
                reserve.dealloc(at, layout);
            }
            let zeroes = layout(300, 16);
            let at = reserve.alloc_zeroed(zeroes);
            assert!((0..300).all(|i| *at.add(i) == 0));
            reserve.dealloc(at, zeroes);
            assert!(
                reserve.alloc(layout(LARGEST + 1, 8)).is_null(),
                "no record is so large"
            );
            // As long as enough is left, operations begin. In a child: those of other tests may go on.
            let large = layout(LARGEST, 8);
            let child = libc::fork();
            if child == 0 {
                let taken: [*mut u8; SIZE / LARGEST] = std::array::from_fn(|_| reserve.alloc(large));
                let mut fine = taken.iter().all(|at| !at.is_null()) && reserve.alloc(layout(1, 1)).is_null();
                fine &= matches!(ready(), Err(HostError::NoMemory));
                taken.into_iter().for_each(|at| reserve.dealloc(at, large));
                libc::_exit(i32::from(!(fine && ready().is_ok())));
            }
            let mut status = -1;
            assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
            assert_eq!(status, 0);
            ready().unwrap();
            assert_eq!(USED.load(Ordering::Relaxed), 0);
        }
    }
}
