//! Why a domain is of no use until its reset.

use crate::lanes::note::Notes;
use ringfence_core::error::CallError;
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};

/// A lane, told by its address; 0 for none.
pub(crate) type LaneId = usize;

/// The first failure of a domain since its last reset. Calls that fail never wait for it.
///
/// A lock of its own: calls that fail try it and go without, and a forked child can free it.
#[derive(Default)]
pub(crate) struct First {
    taken: AtomicBool,
    state: UnsafeCell<State>,
}

// SAFETY: whoever uses the state has taken the lock.
unsafe impl Send for First {}
// SAFETY: as above.
unsafe impl Sync for First {}

#[derive(Default)]
struct State {
    set: bool,
    /// The lane of the call, if those around it end for the same reason; else none.
    lane: LaneId,
    /// There since the domain has a lane.
    notes: Option<Box<Notes>>,
}

/// Looks at the lock so often. Whoever has it holds it for less than a microsecond, unless it is this very thread, in code that a
/// signal handler has interrupted, or a thread that does not run.
const TRIES: u32 = 1_000;

/// The state, for the one who has taken the lock.
struct Taken<'a>(&'a First);

impl Deref for Taken<'_> {
    type Target = State;
    fn deref(&self) -> &State {
        // SAFETY: the lock is taken.
        unsafe { &*self.0.state.get() }
    }
}

impl DerefMut for Taken<'_> {
    fn deref_mut(&mut self) -> &mut State {
        // SAFETY: as above.
        unsafe { &mut *self.0.state.get() }
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.0.taken.store(false, Ordering::Release);
    }
}

impl First {
    /// Not from signal handlers.
    fn lock(&self) -> Taken<'_> {
        loop {
            match self.try_lock() {
                Some(taken) => return taken,
                None => std::thread::yield_now(),
            }
        }
    }

    fn try_lock(&self) -> Option<Taken<'_>> {
        for _ in 0..TRIES {
            if !self.taken.swap(true, Ordering::Acquire) {
                return Some(Taken(self));
            }
            std::hint::spin_loop();
        }
        None
    }

    /// In a forked child: who had the lock is not there. That was a call that failed, and what it had written is no failure yet.
    pub(crate) fn free(&self) {
        self.taken.store(false, Ordering::Release);
    }

    /// Makes room for a failure, ahead of need.
    pub(crate) fn prepare(&self) {
        self.lock().notes.get_or_insert_with(Notes::new);
    }

    /// Gives the room back: the domain has no lane, and the next one [makes](Self::prepare) it again.
    pub(crate) fn give_room_back(&self) {
        let mut state = self.lock();
        if !state.set {
            let room = state.notes.take();
            // Freed without the lock.
            drop(state);
            drop(room);
        }
    }

    /// Keeps the failure of a call, which `fill` notes, if it is the first. `lane`: the one of the call, if calls around it in the
    /// same lane end for the same reason; else 0.
    ///
    /// Allocates and waits for nothing. Goes without if the lock is not free: then there is a first failure already, which
    /// somebody is looking at or about to keep.
    pub(crate) fn keep(&self, lane: LaneId, fill: impl FnOnce(&mut Notes)) {
        let Some(mut state) = self.try_lock() else { return };
        let state = &mut *state;
        if let Some(notes) = &mut state.notes
            && !state.set
        {
            fill(notes);
            state.lane = lane;
            state.set = true;
        }
    }

    /// Notes it in `to`, if it was in this lane, so on this thread. Whether it was.
    pub(crate) fn copy_of(&self, lane: LaneId, to: &mut Notes) -> bool {
        let Some(state) = self.try_lock() else {
            return false;
        };
        match &state.notes {
            Some(notes) if state.set && lane == state.lane => {
                to.copy(notes);
                true
            }
            _ => false,
        }
    }

    /// The same, for the host.
    pub(crate) fn error(&self) -> Option<CallError> {
        let state = self.lock();
        state.notes.as_ref().filter(|_| state.set)?.error()
    }

    /// The domain is as new.
    pub(crate) fn forget(&self) {
        let mut state = self.lock();
        if !state.set {
            return;
        }
        state.set = false;
        if let Some(notes) = &mut state.notes {
            notes.clear();
        }
        // Dropping a module may free memory: not with the lock.
        while let Some((Some(module), more)) = state.notes.as_mut().map(|notes| notes.release()) {
            drop(state);
            drop(module);
            if !more {
                return;
            }
            state = self.lock();
        }
    }
}
