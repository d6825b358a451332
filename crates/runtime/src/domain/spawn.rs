//! Handles of a domain, and threads that the domain has asked for: such a thread holds a handle, but does not keep its domain.

use super::{Call, Domain, Entry, Inner, Returned, Shared};
use crate::lanes::tick;
use ringfence_core::error::CallError;
use ringfence_core::thread;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

impl Domain {
    pub(super) fn of(shared: Arc<Shared>) -> Domain {
        shared.handles.fetch_add(1, Ordering::SeqCst);
        Domain(shared)
    }
}

impl Clone for Domain {
    fn clone(&self) -> Domain {
        Domain::of(self.0.clone())
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        // A spawned thread takes itself off before its handle: whoever makes the two numbers equal for good finds out here.
        let left = self.0.handles.fetch_sub(1, Ordering::SeqCst) - 1;
        if left > 0 && left == self.0.spawned.load(Ordering::SeqCst) {
            self.interrupt();
        }
    }
}

impl Inner {
    /// Whether the thread with this system-wide number has a call in progress.
    fn inside(&self, tid: i32) -> bool {
        self.lanes().lanes.iter().any(|&lane| {
            // SAFETY: lanes are never unmapped; only atomics are used.
            let lane = unsafe { &*lane };
            lane.tid.load(Ordering::Relaxed) == tid && lane.active()
        })
    }
}

/// Bytes of a spawned thread's own stack, on which host functions run that the domain calls there.
const STACK: usize = 2 << 20;

/// How far a spawned thread has come.
#[derive(Default)]
struct Progress {
    tid: AtomicI32,
    /// Its call is over, or never began.
    over: AtomicBool,
}

impl Entry {
    /// Calls the function with one argument on a thread of its own, for the domain that asks for it. Returns when that thread is
    /// inside, so that a domain which nobody is in has none on their way to it; `done` gets the call's end, on that thread.
    ///
    /// The thread does not keep the domain: when the last other handle goes, it is interrupted.
    ///
    /// # Errors
    /// [`CallError`] if the system makes no thread, or the domain takes no call; `done` is not called then.
    pub fn spawn(
        self,
        argument: u64,
        done: impl FnOnce(Result<Returned, CallError>) + Send + 'static,
    ) -> Result<(), CallError> {
        let domain = self.domain.clone();
        let progress = Arc::new(Progress::default());
        let (sender, refused) = std::sync::mpsc::channel();
        let inner = &domain.0;
        inner.spawned.fetch_add(1, Ordering::SeqCst);
        let started = thread::spawn(c"ringfence-spawn", STACK, {
            let progress = progress.clone();
            move || {
                // Without a number the call is refused.
                progress
                    .tid
                    .store(tick::own_tid().unwrap_or(0), Ordering::Release);
                let result = self.call(&mut Call::ints(&[argument]));
                self.domain.0.spawned.fetch_sub(1, Ordering::SeqCst);
                drop(self);
                match result {
                    Ok(_) | Err(CallError::Fault(_) | CallError::Exit(_)) => done(result),
                    // Nobody listens if the thread was seen inside, which it was not.
                    Err(e) => drop(sender.send(e)),
                }
                progress.over.store(true, Ordering::Release);
            }
        });
        if let Err(e) = started {
            inner.spawned.fetch_sub(1, Ordering::SeqCst);
            return Err(CallError::Lane(format!("no thread: {e}")));
        }
        loop {
            if progress.over.load(Ordering::Acquire) {
                return refused.try_recv().map_or(Ok(()), Err);
            }
            let tid = progress.tid.load(Ordering::Acquire);
            if tid != 0 && inner.inside(tid) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_micros(20));
        }
    }
}
