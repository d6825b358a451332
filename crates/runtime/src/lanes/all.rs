//! All lanes that were ever made, for the watchdog: it looks at them without a lock, so that it is never late because a thread that holds
//! one was interrupted.

use crate::lanes::lane::Lane;
use crate::lanes::set::Lanes;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// The lane that was made last; each names the one before. They are never unmapped.
static LAST: AtomicPtr<Lane> = AtomicPtr::new(null_mut());

/// Not 0 while the watchdog looks at a lane.
static LOOKING: AtomicU32 = AtomicU32::new(0);

/// Adds a new lane, for ever. One thread at a time does.
pub(crate) fn add(lane: &'static Lane) {
    lane.before.store(LAST.load(Ordering::Relaxed), Ordering::Relaxed);
    LAST.store(std::ptr::from_ref(lane).cast_mut(), Ordering::Release);
}

/// All lanes.
pub(crate) fn all() -> impl Iterator<Item = &'static Lane> {
    // SAFETY: null, or a lane.
    let lane = |at: &AtomicPtr<Lane>| unsafe { at.load(Ordering::Acquire).as_ref() };
    std::iter::successors(lane(&LAST), move |l| lane(&l.before))
}

/// Lets the watchdog see what a lane shares with others of its domain, if the lane is somebody's. That stays, and the lane is not
/// given to anybody else, until `f` returns, which waits for nothing.
pub(crate) fn look<T>(lane: &Lane, f: impl FnOnce(&Lanes) -> T) -> Option<T> {
    LOOKING.store(1, Ordering::SeqCst);
    // SAFETY: who takes the lane away stores null first, and waits until nobody is looking.
    let result = unsafe { lane.owner.load(Ordering::SeqCst).as_ref() }.map(f);
    LOOKING.store(0, Ordering::Release);
    result
}

/// A lane is about to be nobody's. From here on the watchdog does not see it.
pub(crate) fn take_away(lane: &Lane) {
    lane.owner.store(null_mut(), Ordering::SeqCst);
    // The watchdog waits for nothing meanwhile, so this ends.
    while LOOKING.load(Ordering::SeqCst) != 0 {
        std::thread::yield_now();
    }
}

/// In a forked child, which has no watchdog yet.
pub(crate) fn forget() {
    LOOKING.store(0, Ordering::SeqCst);
}
