//! Words of the host's that end calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

/// A word of the host's that ends calls of domains while it is not 0. Signal handlers may set it: nothing else happens at that moment,
/// the watchdog looks at it every four milliseconds while calls are in progress (every one where time is limited). Whoever set it puts it back to 0.
#[derive(Clone, Debug)]
pub struct Cancel(Word);

#[derive(Clone, Debug)]
enum Word {
    Shared(Arc<AtomicI32>),
    Raw(*const AtomicI32),
}

// SAFETY: an atomic, which whoever gave a bare pointer keeps.
unsafe impl Send for Cancel {}
// SAFETY: as above.
unsafe impl Sync for Cancel {}

impl Cancel {
    /// A word that the program shares with its domains.
    #[must_use]
    pub fn new(word: Arc<AtomicI32>) -> Cancel {
        Cancel(Word::Shared(word))
    }

    /// A word that the program has already, such as a `volatile sig_atomic_t` of C.
    ///
    /// # Safety
    /// `word` is aligned, and stays for as long as there are domains that were made with it. It is written by single stores only.
    #[must_use]
    pub unsafe fn at(word: *const i32) -> Cancel {
        Cancel(Word::Raw(word.cast()))
    }

    /// Whether calls have to end.
    #[must_use]
    pub fn is_set(&self) -> bool {
        match &self.0 {
            Word::Shared(word) => word.load(Ordering::Acquire) != 0,
            // SAFETY: as whoever gave it has promised.
            Word::Raw(word) => unsafe { (**word).load(Ordering::Acquire) != 0 },
        }
    }
}
