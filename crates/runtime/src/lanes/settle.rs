//! Waits until no thread is between a test of the words mode and its access.
//!
//! A test that has been passed is good for one access, however late it comes. So whoever takes rights away asks each thread that is inside:
//! the watchdog's tick interrupts it, and its handler answers if the instruction it came from does not stand behind a test. One that does is
//! asked again, when it has gone on (`answer.rs`).

use crate::lanes::lane::Lane;
use crate::lanes::{all, gate, tick, watchdog};
use crate::os::clock;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// How long to ask.
const PATIENCE_NS: u64 = 100_000_000;
/// When to ask again.
const AGAIN_NS: u64 = 15_000;

static ASKED: AtomicU64 = AtomicU64::new(0);

/// After rights were taken from the domains of the windows at these bases: waits until every access that was allowed before is over.
/// False if a thread did not answer for a tenth of a second: it waits for a processor, blocks the signal, or a handler of the host's has
/// interrupted it.
///
/// Without other threads inside it is one fence.
pub(crate) fn settle(bases: &[u64]) -> bool {
    // Our stores to tables before the look at who is inside.
    fence(Ordering::SeqCst);
    let own = gate::thread_pointer();
    let others = || {
        all::all()
            .filter(|lane| bases.contains(&lane.base) && lane.thread.load(Ordering::Acquire) != own)
            .filter(|lane| !lane.owner.load(Ordering::Acquire).is_null())
    };
    // A lane that comes later is made under locks, so it finds the tables changed.
    if others().next().is_none() {
        return true;
    }
    // Gates store that they enter without a fence: this is the fence.
    watchdog::barrier();
    let number = ASKED.fetch_add(1, Ordering::AcqRel) + 1;
    let mut settled = true;
    for lane in others() {
        settled &= ask(lane, number);
    }
    settled
}

fn ask(lane: &Lane, number: u64) -> bool {
    let call = lane.sequence.load(Ordering::Acquire);
    // Once out, whatever comes is tested by the tables as they are now.
    let inside = || {
        lane.active()
            && lane.top.load(Ordering::Acquire) == 0
            && lane.sequence.load(Ordering::Acquire) == call
    };
    if !inside() {
        return true;
    }
    lane.asked.store(number, Ordering::Release);
    let begun = clock::now();
    let mut sent = 0;
    loop {
        if !inside() || lane.answered.load(Ordering::Acquire) >= number {
            return true;
        }
        let now = clock::now();
        if now.saturating_sub(begun) > PATIENCE_NS {
            return false;
        }
        if now.saturating_sub(sent) > AGAIN_NS {
            tick::send(lane.tid.load(Ordering::Relaxed));
            sent = now;
        } else if now.saturating_sub(begun) > AGAIN_NS {
            // It waits for a processor, maybe for ours.
            std::thread::yield_now();
        }
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::lane::tests::marked;

    #[test]
    fn nobody_is_asked_outside() {
        let lane = marked(1, 0, 0);
        assert!(ask(&lane, 3));
        // Out in the host.
        lane.host_sp.store(8, Ordering::Relaxed);
        lane.top.store(8, Ordering::Relaxed);
        assert!(ask(&lane, 3));
        assert!(settle(&[0x1234]), "no such window");
    }
}
