//! How many calls a domain may still get.
//!
//! The limit holds exactly, for all threads together, and calls of domains without one pay nothing for it. The bit
//! [`COUNTED`](crate::lanes::lane::attention::COUNTED) keeps a limited domain's lanes on the gate's second path, which takes one from the lane's
//! [`credit`](crate::lanes::lane::Lane::credit) for each outermost call that begins. Credit is handed out in batches, with the world locked; the last
//! ones are taken back from lanes that do not need them.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Most calls that a lane is given at once.
const BATCH: u64 = 256;

/// What a domain has left. Changed with the world locked.
pub(crate) struct CallCredit {
    /// No limit is `u64::MAX`, here and below.
    limit: AtomicU64,
    /// Calls that no lane was given yet.
    left: AtomicU64,
}

impl CallCredit {
    pub(crate) fn new(limit: Option<u64>) -> CallCredit {
        let limit = limit.unwrap_or(u64::MAX);
        CallCredit {
            limit: limit.into(),
            left: limit.into(),
        }
    }

    /// Whether calls are counted.
    pub(crate) fn is_limited(&self) -> bool {
        self.limit() != u64::MAX
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// The limit is higher from now on.
    pub(crate) fn raise(&self, to: u64) {
        // One that was limited stays so: its lanes have the bit.
        let to = to.min(u64::MAX - 1);
        let more = to.saturating_sub(self.limit());
        self.limit.fetch_add(more, Ordering::Relaxed);
        self.left.fetch_add(more, Ordering::Relaxed);
    }

    /// Takes back what a lane has left of its credit.
    pub(crate) fn take_back(&self, credit: &AtomicI64) {
        // Below 0 while its thread finds out that there is none.
        let some = |credit: i64| (credit > 0).then_some(0);
        let old = credit.fetch_update(Ordering::AcqRel, Ordering::Relaxed, some);
        self.left
            .fetch_add(old.map_or(0, i64::unsigned_abs), Ordering::Relaxed);
    }

    /// Gives a lane more; `all` are the credits of all the domain's lanes. False if there is no more.
    pub(crate) fn hand_out<'a>(&self, all: impl Iterator<Item = &'a AtomicI64>, to: &AtomicI64) -> bool {
        if self.left.load(Ordering::Relaxed) == 0 {
            all.for_each(|credit| self.take_back(credit));
        }
        let left = self.left.load(Ordering::Relaxed);
        let some = left.min(BATCH);
        self.left.store(left - some, Ordering::Relaxed);
        to.fetch_add(some as i64, Ordering::AcqRel);
        some > 0
    }

    /// As when the domain was made, with nobody inside.
    pub(crate) fn renew<'a>(&self, limit: Option<u64>, all: impl Iterator<Item = &'a AtomicI64>) {
        let limit = limit.unwrap_or(u64::MAX);
        all.for_each(|credit| credit.store(0, Ordering::Release));
        self.limit.store(limit, Ordering::Relaxed);
        self.left.store(limit, Ordering::Relaxed);
    }
}
