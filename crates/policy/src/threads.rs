//! The threads that run in a domain because it made them.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use ringfence_core::{CallError, DomainRef};

/// How long a domain that has all its threads waits for one to leave, before it is told that there are no more.
const LEAVING: Duration = Duration::from_millis(100);

/// The threads of one domain.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    running: usize,
    /// Why the first of them that failed did so, or the status with which it ended the program.
    failed: Option<CallError>,
}

impl Threads {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes room for one more, if there may be one.
    pub(crate) fn begin(&self, limit: usize) -> bool {
        let mut state = self.state();
        // One that has been joined may still be on its way out.
        if limit > 0 && state.running >= limit {
            state = self
                .changed
                .wait_timeout_while(state, LEAVING, |state| state.running >= limit)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        let fits = state.running < limit;
        state.running += usize::from(fits);
        fits
    }

    /// One has ended, or was not started.
    pub(crate) fn end(&self, failed: Option<CallError>) {
        let mut state = self.state();
        state.running -= 1;
        if let Some(e) = failed {
            state.failed.get_or_insert(e);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// How many there are.
    pub(crate) fn running(&self) -> usize {
        self.state().running
    }

    /// Forgets what the last run left.
    pub(crate) fn forget(&self) {
        self.state().failed = None;
    }

    /// Ends all of them, and waits until they have left the domain. What the first that failed by itself failed of.
    pub(crate) fn stop(&self, domain: DomainRef<'_>) -> Option<CallError> {
        let mut state = self.state();
        while state.running > 0 {
            drop(state);
            domain.interrupt();
            // Again, should one have been between two calls out.
            state = self
                .changed
                .wait_timeout(self.state(), Duration::from_millis(5))
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        state.failed.take()
    }
}
