//! The allocator of this program: it counts, and it can fail.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};

/// The system's allocator, counted.
pub struct Meter;

static LIVE: AtomicI64 = AtomicI64::new(0);
static PEAK: AtomicI64 = AtomicI64::new(0);
/// Allocations until one fails, while armed.
static LEFT: AtomicU64 = AtomicU64::new(0);
static ARMED: AtomicBool = AtomicBool::new(false);
/// All that follow fail, too.
static STICKY: AtomicBool = AtomicBool::new(false);
static FAILED: AtomicU64 = AtomicU64::new(0);

fn count(bytes: i64) {
    let live = LIVE.fetch_add(bytes, Relaxed) + bytes;
    PEAK.fetch_max(live, Relaxed);
}

/// Whether this one is to fail.
fn fails() -> bool {
    if !ARMED.load(Relaxed) {
        return false;
    }
    let left = LEFT.fetch_update(Relaxed, Relaxed, |n| n.checked_sub(1));
    let fails = match left {
        Ok(1) => true,
        Ok(_) => false,
        Err(_) => STICKY.load(Relaxed),
    };
    if fails {
        FAILED.fetch_add(1, Relaxed);
    }
    fails
}

// SAFETY: what does not fail is passed on.
unsafe impl GlobalAlloc for Meter {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if fails() {
            return std::ptr::null_mut();
        }
        count(layout.size() as i64);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if fails() {
            return std::ptr::null_mut();
        }
        count(layout.size() as i64);
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if fails() {
            return std::ptr::null_mut();
        }
        // While it moves, both are there.
        count(size as i64);
        count(-(layout.size() as i64));
        // SAFETY: the caller's promise.
        unsafe { System.realloc(at, layout, size) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }
}

/// Bytes in use.
#[must_use]
pub fn live() -> i64 {
    LIVE.load(Relaxed)
}

/// Starts anew to look for the most that is in use.
pub fn begin() {
    PEAK.store(live(), Relaxed);
}

/// The most that was in use since [`begin`].
#[must_use]
pub fn peak() -> i64 {
    PEAK.load(Relaxed)
}

/// The `n`th allocation from now on fails, the first being 1; and all that follow, if `sticky`.
pub fn arm(n: u64, sticky: bool) {
    LEFT.store(n, Relaxed);
    STICKY.store(sticky, Relaxed);
    FAILED.store(0, Relaxed);
    ARMED.store(true, Relaxed);
}

/// Allocations succeed again. How many have failed.
pub fn disarm() -> u64 {
    ARMED.store(false, Relaxed);
    FAILED.load(Relaxed)
}
