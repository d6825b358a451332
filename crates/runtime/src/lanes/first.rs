//! Why a domain is of no use until its reset.

use crate::lanes::lane::Lane;
use ringfence_core::error::CallError;
use std::sync::{Mutex, PoisonError};

/// The first failure of a domain since its last reset. Whoever finds it locked goes without: it may be this very thread, in code
/// that a signal handler interrupted.
#[derive(Default)]
pub(crate) struct First(Mutex<Option<(usize, CallError)>>);

impl First {
    /// Keeps the error of a call, if it is the first. `lane`: the one of the call, if calls around it in the same lane end for the same reason.
    pub(crate) fn keep(&self, lane: Option<&Lane>, error: &CallError) {
        if let Ok(mut first) = self.0.try_lock() {
            let lane = lane.map_or(0, |lane| std::ptr::from_ref(lane) as usize);
            first.get_or_insert_with(|| (lane, error.clone()));
        }
    }

    pub(crate) fn get(&self) -> Option<CallError> {
        Some(self.0.try_lock().ok()?.as_ref()?.1.clone())
    }

    /// The same, if it was in this lane, so on this thread.
    pub(crate) fn get_of(&self, lane: &Lane) -> Option<CallError> {
        let first = self.0.try_lock().ok()?;
        let (of, error) = first.as_ref()?;
        (*of == std::ptr::from_ref(lane) as usize).then(|| error.clone())
    }

    /// The domain is as new.
    pub(crate) fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
