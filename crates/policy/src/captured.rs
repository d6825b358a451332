//! Output that is kept for the host.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes that a domain wrote to a captured stream.
#[derive(Clone, Debug, Default)]
pub struct Captured(pub(crate) Arc<Mutex<VecDeque<u8>>>);

impl Captured {
    /// Takes what was written so far.
    #[must_use]
    pub fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner)).into()
    }

    /// Takes at most the first `most` bytes of it.
    #[must_use]
    pub fn take_first(&self, most: usize) -> Vec<u8> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let n = most.min(held.len());
        held.drain(..n).collect()
    }
}
