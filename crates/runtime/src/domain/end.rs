//! The end of a domain that has one: destructors run, as when a program exits or a library is closed.

use super::Domain;
use super::series::Series;
use crate::lanes::world;
use ringfence_core::error::{CallError, DomainError};
use std::sync::atomic::Ordering;

impl Domain {
    /// Runs the destructors of the domain's modules: functions with the attribute of that name, then the libc's part: functions given to
    /// `atexit`, destructors of static objects, of the calling thread's `thread_local` objects, and streams are written out. Those of
    /// modules that came last run first, and of a module's functions the last. They are ordinary calls, under the domain's limits; that of time holds for all of them together.
    ///
    /// They run once until a [`reset`](Self::reset), however often this is called. A module that called `exit` has run its own, and takes no
    /// calls. What is called afterwards meets objects that have been destroyed. A domain that is dropped without this ends as a killed process does.
    ///
    /// # Errors
    /// [`DomainError::Busy`] while calls are in progress, the calling thread's own too; nothing has run then. [`DomainError::Fini`]: a destructor failed; those behind it have
    /// not run, and if it was a fault the domain has faulted. A domain that had faulted before is `Fini` too.
    ///
    /// # Examples
    /// ```no_run
    /// # use ringfence_runtime::Domain;
    /// # fn example(domain: Domain) {
    /// if let Err(e) = domain.run_destructors() {
    ///     eprintln!("{e}"); // and it goes all the same
    /// }
    /// # }
    /// ```
    pub fn run_destructors(&self) -> Result<(), DomainError> {
        let inner = &*self.0;
        {
            let _world = world::lock_plain();
            let set = inner.lanes();
            // SAFETY: lanes in the list are this domain's.
            let active = set
                .lanes
                .iter()
                .filter(|&&lane| unsafe { (*lane).active() })
                .count();
            if active > 0 {
                return Err(DomainError::Busy { lanes: active });
            }
        }
        let resets = inner.resets.load(Ordering::Acquire);
        if inner.ended.swap(resets, Ordering::AcqRel) == resets {
            return Ok(());
        }
        let series = Series::new(self);
        self.end_all_added(&series)?;
        for placed in inner.layout.placed.iter().rev() {
            for &offset in placed.module.0.parsed.destructors.iter().rev() {
                let failed = |source| DomainError::Fini {
                    module: placed.module.name().into(),
                    source: Box::new(source),
                };
                if !placed.module.0.is_entry(offset) {
                    return Err(failed(CallError::Lane(
                        "a destructor is no function's entry".into(),
                    )));
                }
                let entry = self.entry_at(inner.base() + u64::from(placed.offset) + u64::from(offset));
                series.call(&entry).map_err(failed)?;
            }
        }
        Ok(())
    }
}
