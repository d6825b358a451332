//! What a host does when a domain reaches a limit.
//!
//! The host's function runs on the thread that reached the limit, with none of the runtime's locks held, and several times at once if
//! several threads reach one. While it runs, further limits that the same thread reaches are not told: they hold.

use crate::domain::{DomainRef, Inner};
use std::cell::Cell;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::Ordering;

pub(crate) use ringfence_core::LimitHook;
pub use ringfence_core::{LimitHit, OnLimit};

thread_local! {
    static TELLING: Cell<bool> = const { Cell::new(false) };
}

impl Inner {
    /// Tells the host, if it wants to know. The higher limit, if it decides so. Call it without any lock held.
    pub(crate) fn tell_limit(&self, hit: &LimitHit) -> Option<u64> {
        let hook = self.limit_hook()?;
        if TELLING.try_with(|t| t.replace(true)).unwrap_or(true) {
            return None;
        }
        let domain = DomainRef::of(self);
        // A panic in it must not pass through a gate; the limit holds then.
        let decision = std::panic::catch_unwind(AssertUnwindSafe(|| hook(&domain, hit)));
        TELLING.set(false);
        match decision {
            Ok(OnLimit::Raise(to)) if to > hit.limit() => Some(to),
            _ => None,
        }
    }

    /// More memory is wanted than there may be. Whether there may be more now.
    pub(crate) fn raise_memory(&self, wanted: u64, used: u64, limit: u64) -> bool {
        // The same error also stands for a lack of room or mappings.
        if used.saturating_add(wanted) <= limit {
            return false;
        }
        match self.tell_limit(&LimitHit::Memory { wanted, used, limit }) {
            Some(to) => {
                self.memory().raise(to);
                true
            }
            None => false,
        }
    }

    /// A call has ended because time was up.
    pub(crate) fn tell_time(&self) {
        let used = self.lanes.time_used.load(Ordering::Relaxed);
        let limit = self.lanes.time_budget.load(Ordering::Relaxed);
        if used <= limit {
            let limit = self.time_limit.load(Ordering::Relaxed);
            self.tell_limit(&LimitHit::CallTime { limit });
        } else if let Some(to) = self.tell_limit(&LimitHit::ProcessorTime { used, limit }) {
            self.lanes.time_budget.fetch_max(to, Ordering::Relaxed);
        }
    }
}
