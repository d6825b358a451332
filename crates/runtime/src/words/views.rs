//! Where windows show arenas: what a forked child loses.

use super::table::Table;
use crate::os::lock::{Lock, Locked, Rank};
use crate::os::sys;
use ringfence_core::error::HostError;
use ringfence_isa::words;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Those of all domains, also of such as nobody has entered yet.
static ALL: Lock<Vec<Arc<View>>> = Lock::new(Rank::Views, Vec::new());

/// An arena in a domain's window.
pub(super) struct View {
    pub(super) base: u64,
    table: Arc<Table>,
    /// It stayed with the parent, and this is the child.
    gone: AtomicBool,
}

impl View {
    /// Of the window at `base`, where arena and table are mapped.
    pub(super) fn remember(base: u64, table: Arc<Table>) -> Arc<View> {
        let gone = AtomicBool::new(false);
        let view = Arc::new(View { base, table, gone });
        ALL.lock().push(view.clone());
        view
    }

    /// The domain goes.
    pub(super) fn forget(this: &Arc<View>) {
        ALL.lock().retain(|view| !Arc::ptr_eq(view, this));
    }

    pub(super) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }

    /// In a forked child: what was shared with the parent becomes inaccessible, and the table another one.
    fn part(&self) -> Result<(), HostError> {
        self.gone.store(true, Ordering::Relaxed);
        let len = self.table.len();
        for at in [
            self.base + words::view(words::ARENA),
            self.base + u64::from(words::ARENA + words::TABLE),
        ] {
            // SAFETY: the domain's own places in its window; no thread is in it.
            unsafe { sys::map_anonymous(at, len, libc::PROT_NONE, true)? };
        }
        self.table.part()
    }
}

/// All of them, locked while the process forks.
pub(crate) struct Views(Locked<'static, Vec<Arc<View>>>);

pub(crate) fn hold() -> Views {
    Views(ALL.lock())
}

impl Views {
    /// In the child. False if the system refuses.
    pub(crate) fn part(&self) -> bool {
        self.0.iter().all(|view| view.part().is_ok())
    }
}
