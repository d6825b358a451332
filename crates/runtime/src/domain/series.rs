//! Several calls under one limit of time: the constructors of a domain, or its destructors. There may be 65,536 of each, and
//! making or ending a domain takes no longer than one call may.

use super::{Call, Domain, Entry, Inner};
use crate::lanes::gate;
use crate::lanes::lane::Lane;
use crate::os::clock;
use ringfence_core::error::CallError;
use ringfence_core::work::{Bound, Exceeded};
use std::sync::atomic::Ordering;

/// Calls of one thread that share the domain's limit of time, from the first one on.
pub(super) struct Series<'a> {
    domain: &'a Domain,
    /// The limit in nanoseconds, 0 for none, and when it is reached by the kernel's clock.
    limit: u64,
    deadline: u64,
}

impl Series<'_> {
    /// The time begins now.
    pub(super) fn new(domain: &Domain) -> Series<'_> {
        Series::since(domain, None)
    }

    /// The time began when the work of which the calls are a part did ([`clock::now`]), if that is told.
    pub(super) fn since(domain: &Domain, begun: Option<u64>) -> Series<'_> {
        let limit = domain.0.time_limit.load(Ordering::Relaxed);
        // Without a limit nobody asks for the time.
        let deadline = if limit == 0 {
            0
        } else {
            begun.unwrap_or_else(clock::now).saturating_add(limit)
        };
        Series {
            domain,
            limit,
            deadline,
        }
    }

    /// One of the calls. Calls that are short may all end before the watchdog looks: the time is looked at here, too.
    ///
    /// # Errors
    /// [`CallError`]. If no time is left, the domain has faulted: it is half made, or half ended.
    pub(super) fn call(&self, entry: &Entry) -> Result<(), CallError> {
        if self.limit != 0 {
            if clock::now() >= self.deadline {
                self.domain.0.set_faulted(None);
                return Err(CallError::Exceeded(Exceeded {
                    bound: Bound::Time,
                    limit: self.limit,
                }));
            }
            self.domain.0.set_deadline(self.deadline);
        }
        entry.call(&mut Call::default()).map(drop)
    }
}

impl Drop for Series<'_> {
    fn drop(&mut self) {
        if self.limit != 0 {
            self.domain.0.set_deadline(0);
        }
    }
}

impl Inner {
    /// For the calls to come on the calling thread's lane. It has none before its first call here, which has the whole time.
    fn set_deadline(&self, deadline: u64) {
        self.with_own_lane(|lane| lane.deadline.store(deadline, Ordering::Relaxed));
    }

    /// Shows `f` the calling thread's lane, if it has one.
    pub(super) fn with_own_lane(&self, f: impl Fn(&Lane)) {
        let me = gate::thread_pointer();
        for &lane in &self.lanes().lanes {
            // SAFETY: lanes in the list are this domain's; only atomics are used.
            let lane: &Lane = unsafe { &*lane };
            if lane.thread.load(Ordering::Relaxed) == me {
                f(lane);
            }
        }
    }
}
