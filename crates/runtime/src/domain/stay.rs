//! Keeps a domain from going for a moment.

use super::Inner;
use std::sync::atomic::{AtomicU32, Ordering};

impl Inner {
    /// Keeps the domain from going while the host is told of a limit by a thread that has no call in progress in it. With the world
    /// locked.
    pub(crate) fn stay(&self) -> Stay {
        self.stays.fetch_add(1, Ordering::AcqRel);
        Stay(self)
    }
}

/// A domain that stays; for ever, if its last handle is dropped meanwhile, as when a host function drops it that the domain called.
pub(crate) struct Stay(*const Inner);

impl std::ops::Deref for Stay {
    type Target = Inner;
    fn deref(&self) -> &Inner {
        // SAFETY: it was alive with the world locked, and whoever retires a domain with the world locked sees the number.
        unsafe { &*self.0 }
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        let stays: &AtomicU32 = &self.stays;
        stays.fetch_sub(1, Ordering::AcqRel);
    }
}
