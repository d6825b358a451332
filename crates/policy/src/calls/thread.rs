//! Threads that a domain has made for it: each is a thread of the host's with a call into the domain.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use ringfence_runtime::{CallError, Domain, FaultKind};

use super::Context;
use crate::sys::Outcome;

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

    fn begin(&self, limit: usize) -> bool {
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

    fn end(&self, failed: Option<CallError>) {
        let mut state = self.state();
        state.running -= 1;
        if let Some(e) = failed {
            state.failed.get_or_insert(e);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Forgets what the last run left.
    pub(crate) fn forget(&self) {
        self.state().failed = None;
    }

    /// Ends all of them, and waits until they have left the domain. What the first that failed by itself failed of.
    pub(crate) fn stop(&self, domain: &Domain) -> Option<CallError> {
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

/// How long a domain that has all its threads waits for one to leave, before it is told that there are no more.
const LEAVING: Duration = Duration::from_millis(100);

/// What a C library asks for that makes a thread, and what is no `fork`.
const THREAD: u64 = (libc::CLONE_VM | libc::CLONE_THREAD) as u64;

/// `clone(CLONE_VM | CLONE_THREAD, function, argument)`: calls the function on a new thread. There are no stacks to be given,
/// and nothing returns twice.
pub(super) fn create(cx: Context<'_>) -> Outcome {
    let [flags, function, argument, ..] = cx.args;
    if flags & THREAD != THREAD {
        return Err(libc::EAGAIN); // a process
    }
    let threads: &Arc<Threads> = &cx.monitor.threads;
    let domain = cx.domain.handle().ok_or(libc::EAGAIN)?;
    let entry = domain
        .entry_by_address(cx.domain.translate(function))
        .map_err(|_| libc::EINVAL)?;
    if !threads.begin(cx.monitor.policy.threads) {
        return Err(libc::EAGAIN);
    }
    let ended = threads.clone();
    let started = entry.spawn(argument, move |result| {
        ended.end(result.err().filter(|e| match e {
            CallError::Fault(fault) => !matches!(fault.kind, FaultKind::Elsewhere | FaultKind::Interrupted),
            _ => true,
        }));
    });
    match started {
        Ok(()) => Ok(0),
        Err(_) => {
            threads.end(None);
            Err(libc::EAGAIN)
        }
    }
}
