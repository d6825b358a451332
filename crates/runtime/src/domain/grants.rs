//! What a domain may call in others, and what of it others may call.

use super::{Domain, Entry, Inner};
use crate::domain::grant::{Grant, Granted};
use crate::domain::imports::EndCall;
use crate::domain::regions;
use crate::domain::slot::{CalleeFailure, Slot};
use crate::lanes::lane::Import;
use crate::lanes::watchdog;
use ringfence_core::error::{CallError, DomainError, GrantError};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

impl Inner {
    /// The slot that stands at a place of the table of imports.
    pub(crate) fn slot(&self, number: usize) -> Option<&Slot> {
        self.slots.get(&number)
    }

    /// Whether code in the window can learn how its calls of other domains went.
    pub(crate) fn asks_call_status(&self) -> bool {
        self.asks_call_status || self.asks_later.load(Ordering::Acquire)
    }

    /// Tells the host of a failed call through a slot.
    pub(crate) fn tell(&self, slot: &Slot, error: &CallError) -> Result<(), EndCall> {
        let Some(hook) = &self.hook else {
            return Ok(());
        };
        let failure = CalleeFailure {
            import: &slot.name,
            callee: slot.callee(),
            error,
        };
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| hook(&failure)))
            .unwrap_or_else(|panic| Err(EndCall::panicked("the host's hook for failed calls", &*panic)))
    }

    /// Whether the host wants to know of failed calls of other domains.
    pub(crate) fn has_hook(&self) -> bool {
        self.hook.is_some()
    }

    /// Whether no thread has a call in progress. The answer holds for threads that were in before it was asked.
    fn idle(&self) -> bool {
        watchdog::barrier();
        // SAFETY: lanes in the list are this domain's.
        !self.lanes().lanes.iter().any(|&lane| unsafe { (*lane).active() })
    }

    /// Functions of this domain that others may still call.
    pub(super) fn grants_of_it(&self) -> Vec<Arc<Granted>> {
        let granted = self.granted.lock();
        granted.iter().filter_map(Weak::upgrade).collect()
    }
}

impl Domain {
    fn find_slot(&self, name: &str) -> Result<(&Slot, &Import), GrantError> {
        let found = self.0.slots.iter().find(|(_, slot)| slot.name == name);
        let (number, slot) = found.ok_or_else(|| GrantError::NoSlot { name: name.into() })?;
        Ok((slot, &self.0.imports[*number]))
    }

    /// Gives this domain `entry`, of any domain, under the name of one of its [slots](crate::Imports::slot), in place of what is
    /// there; calls of that finish. From any thread, while domains run. The slot does not keep the other domain alive:
    /// when it goes, calls fail.
    ///
    /// # Errors
    /// [`GrantError`].
    pub fn grant(&self, name: &str, entry: &Entry) -> Result<Grant, GrantError> {
        let (slot, import) = self.find_slot(name)?;
        let grant = entry.grant(&slot.signature)?;
        slot.fill(import, &grant, || self.0.idle());
        Ok(grant)
    }

    /// Empties a slot: calls that begin from now on fail, calls in progress finish. True if something callable was in it.
    ///
    /// # Errors
    /// [`GrantError::NoSlot`].
    pub fn revoke(&self, name: &str) -> Result<bool, GrantError> {
        let (slot, import) = self.find_slot(name)?;
        Ok(slot.clear(import, || self.0.idle()))
    }

    /// Revokes all functions of this domain that others have, however they got them.
    pub fn revoke_all(&self) {
        for granted in self.0.grants_of_it() {
            granted.revoke();
        }
    }

    /// Makes the domain fit for another user: a [`reset`](Self::reset), and everything that came after its making is taken back:
    /// rights to regions, its own regions and groups, membership in groups, functions granted to it and by it, time limit and tag.
    ///
    /// # Errors
    /// [`DomainError::Busy`] while calls are in progress; [`DomainError::Spent`] if something that it was made with is gone
    /// for good. It should be dropped then: it may have lost a part already.
    pub fn recycle(&self) -> Result<(), DomainError> {
        self.revoke_all();
        for (number, slot) in &self.0.slots {
            if !slot.as_made(&self.0.imports[*number], || self.0.idle()) {
                return Err(DomainError::Spent {
                    import: slot.name.clone(),
                });
            }
        }
        regions::forget(self.0.base());
        self.set_time_limit(self.0.options.time_limit);
        self.set_tag(0);
        self.reset_for(true)
    }
}
