//! Calls that the host leaves without returning to them: `longjmp` out of a function that a domain has called.
//!
//! Such a jump passes gates, which therefore put nothing in order: the lanes say that their calls are in progress. [`mark`] is taken
//! where the jump goes to, and [`unwind`] afterwards ends the calls that were begun since. The host's stack below that place is dead
//! then and is not looked at. What is, lies
//!
//! * on the control stacks, out of every domain's reach: each call in has left its `host_sp` 8 bytes below the top that it began at;
//! * in frames of calls out that are older than the mark, and so alive.
//!
//! A lane counts its calls out in progress. Of its calls in, all but the innermost have called out, and the next one began at the
//! stack top of that call out. So the calls in are found from the outermost on, each by the one before, until one is younger than the
//! mark or none is left that has called out.

use crate::lanes::gate::{self, OutWords, Tail, kind};
use crate::lanes::lane::Lane;
use crate::lanes::{signal, world};
use std::sync::atomic::{Ordering, compiler_fence};

/// Where a thread stands among its calls; see [`mark`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Mark(u64);

impl Mark {
    /// The mark as a number, for other languages.
    #[must_use]
    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// The mark that [`to_bits`](Self::to_bits) gave.
    #[must_use]
    pub fn from_bits(bits: u64) -> Mark {
        Mark(bits)
    }
}

/// A mark that is none of the calling thread's: the call that was its innermost has ended since. Nothing has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaleMark;

impl std::fmt::Display for StaleMark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the call in which the mark was taken has ended, or was another thread's")
    }
}

impl std::error::Error for StaleMark {}

/// The calling thread's lanes with a call in progress.
fn active() -> impl Iterator<Item = &'static Lane> {
    // SAFETY: our own thread's words; the table has a place for every index; lanes are never unmapped.
    let table = unsafe { (*gate::tls()).lanes };
    (1..world::indices())
        // SAFETY: as above.
        .filter_map(move |i| unsafe { (*table.add(i as usize)).load(Ordering::Relaxed).as_ref() })
        .filter(|lane| lane.active())
}

/// Where the calling thread stands: its innermost call in that is in progress. Async-signal-safe.
///
/// Looks at each domain's place among the thread's lanes: some nanoseconds for ten domains.
#[must_use]
pub fn mark() -> Mark {
    // The stack grows down.
    let innermost = active().map(|lane| lane.host_sp.load(Ordering::Relaxed)).min();
    Mark(innermost.unwrap_or(u64::MAX))
}

/// What of a lane's calls is older than a mark.
enum Rest<'a> {
    All,
    /// So many, at least one. The innermost of them began at `host_sp`, and has called out.
    Some {
        calls: u32,
        host_sp: u64,
        out: &'a OutWords,
    },
    Nothing,
}

/// Finds out which calls of a lane are older than the mark. An error if what is found is no chain of calls.
fn rest(lane: &Lane, mark: u64) -> Result<Rest<'_>, StaleMark> {
    if lane.host_sp.load(Ordering::Relaxed) >= mark {
        return Ok(Rest::All);
    }
    let imports = lane.imports..lane.imports.wrapping_add(lane.import_count as usize);
    let low = lane.berth.control_low();
    let mut top = lane.berth.control_top();
    let mut found = Rest::Nothing;
    for calls in 1..=lane.depth.load(Ordering::Relaxed) {
        // SAFETY: on the lane's control stack, which only this thread uses. As many calls in as have called out have written this word.
        let host_sp = unsafe { (*(top as *const Tail).sub(1)).host_sp };
        if host_sp < mark {
            break;
        }
        // SAFETY: the gate's words below a call in of this thread that is in progress, has called out, and is older than the mark.
        let out = unsafe { &*((host_sp as *const OutWords).sub(1)) };
        let sound =
            out.top % 8 == 0 && (low + 16..top - 8).contains(&out.top) && imports.contains(&out.import);
        if !sound {
            return Err(StaleMark);
        }
        found = Rest::Some { calls, host_sp, out };
        top = out.top;
    }
    Ok(found)
}

/// Ends the calls of a lane that are younger than a mark. How many there were.
fn leave(lane: &Lane, rest: &Rest<'_>) -> u32 {
    let inside = lane.top.load(Ordering::Relaxed) == 0;
    let before = lane.depth.load(Ordering::Relaxed) + u32::from(inside);
    // A handler that comes now does not enter the lane.
    lane.top.store(0, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
    match *rest {
        Rest::All => unreachable!("nothing is to be left"),
        Rest::Nothing => {
            lane.rewind();
            before.max(1)
        }
        Rest::Some { calls, host_sp, out } => {
            lane.data_top
                .store(out.data_top_for_calls(lane.base), Ordering::Relaxed);
            lane.depth.store(calls, Ordering::Relaxed);
            // SAFETY: an entry of the table of the lane's domain, which stays while the call is in progress.
            let callee = unsafe { (*out.import).kind } & kind::DOMAIN != 0;
            lane.in_callee.store(callee.into(), Ordering::Relaxed);
            lane.host_sp.store(host_sp, Ordering::Relaxed);
            lane.top.store(out.top, Ordering::Release);
            before.saturating_sub(calls).max(1)
        }
    }
}

/// Ends all calls of the calling thread that were begun since the mark was taken, without going back to them. How many there were.
///
/// A call that is ended so has no result and no error, and its domain has not faulted: it takes calls at once. What the module was about to
/// do stays undone, as with any function that `longjmp` leaves, so the caller decides whether the domain is good for more calls or for a reset.
/// Lanes, both their stacks, limits of time and what counts calls in progress are as if the calls had returned.
/// If there were any, the signals of faults and the watchdog's are not blocked afterwards, whatever mask the jump left behind.
///
/// Async-signal-safe.
///
/// # Errors
/// [`StaleMark`].
///
/// # Safety
/// The thread has left the frames of all calls that are ended: they are never gone back to. They, and those that stay, are on the stack on
/// which the mark was taken. No function of the runtime other than plain calls, and nothing that would have been dropped, was left.
pub unsafe fn unwind(mark: Mark) -> Result<u32, StaleMark> {
    let mark = mark.0;
    // First everything is looked at, then something changes.
    let mut found = mark == u64::MAX;
    for lane in active() {
        match rest(lane, mark)? {
            Rest::All => found |= lane.host_sp.load(Ordering::Relaxed) == mark,
            Rest::Some { host_sp, .. } => found |= host_sp == mark,
            Rest::Nothing => {}
        }
    }
    if !found {
        return Err(StaleMark);
    }
    let mut ended = 0;
    for lane in active() {
        match rest(lane, mark)? {
            Rest::All => {}
            rest => ended += leave(lane, &rest),
        }
    }
    if ended != 0 {
        // The jump may have left a handler, or what the host had blocked all signals for: without the tick later calls would not end.
        signal::unblock();
        // How they ended, nobody told.
        // SAFETY: our own thread's words.
        unsafe { (*gate::tls()).status = 0 };
    }
    Ok(ended)
}
