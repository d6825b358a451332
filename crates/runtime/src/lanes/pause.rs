//! Pauses: a call's time limit does not count what a host function waits for, a slow client for instance.
//!
//! The host function stops the clock of its own thread's call, and starts it again. While it stands, `PAUSED` sends every way into the
//! domain's code, back from the host function or by another call, the slow way, and there the clock starts: no code of a domain ever runs
//! with it stopped, whatever the host forgets.

use crate::lanes::lane::{Lane, attention};
use crate::os::clock;
use std::sync::atomic::Ordering;

impl Lane {
    /// Stops the clock of the call in progress, which has called out. On the lane's own thread.
    pub(crate) fn pause(&self) {
        if self.paused.load(Ordering::Relaxed) == 0 {
            self.paused.store(clock::now().max(1), Ordering::Release);
            self.attention.fetch_or(attention::PAUSED, Ordering::AcqRel);
        }
    }

    /// Lets it run again, if it does not. On the lane's own thread, also in a signal handler.
    pub(crate) fn resume(&self) {
        self.attention.fetch_and(!attention::PAUSED, Ordering::AcqRel);
        let since = self.paused.load(Ordering::Relaxed);
        if since != 0 {
            let stood = clock::now().saturating_sub(since);
            self.waited.fetch_add(stood, Ordering::AcqRel);
            self.paused.store(0, Ordering::Release);
        }
    }

    /// For how many nanoseconds the clock has stood still by now, all calls together. `None` while that changes: look again. For the watchdog.
    pub(crate) fn stood_still(&self, now: u64) -> Option<u64> {
        let since = self.paused.load(Ordering::Acquire);
        let waited = self.waited.load(Ordering::Acquire);
        if self.paused.load(Ordering::Acquire) != since {
            return None;
        }
        // A signal handler may have entered the domain between the two steps of `pause`.
        let inside = self.top.load(Ordering::Acquire) == 0;
        Some(match since {
            0 => waited,
            _ if inside => waited,
            since => waited.saturating_add(now.saturating_sub(since)),
        })
    }
}
