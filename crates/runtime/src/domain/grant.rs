//! Links: functions of one domain that another one calls under a name.
//!
//! An import of a domain that takes entries of others is a *slot*. The host fills it when the domain is made, or later, and takes the
//! entry out again whenever it wants. What stands in a slot is a thunk with a target of its own, so that taking one
//! entry away touches no other. A slot that nobody has filled holds a thunk without a target.
//!
//! *Revoking* stores 0 in the target's index, then sends every lane of the callee the slow way in, which looks at the index again. A
//! thread that was in between either has stored its host stack in the lane by then (its call runs, and finishes), or it
//! fails. So a call that begins after `revoke` has returned never gets in, and neither does one from before that was held up
//! on its way: what it would have called may belong to somebody else by now.
//!
//! The target that a thread has in hand on its way in stays allocated: a slot keeps what was taken out of it until no thread is in
//! the calling domain.

use crate::domain::{Domain, Entry, Signature, WeakDomain};
use crate::lanes::gate;
use crate::lanes::lane::{Import, Target};
use crate::lanes::thunk::Thunk;
use ringfence_core::FaultKind;
pub use ringfence_core::GrantError;
use ringfence_core::error::CallError;
use ringfence_isa::window::call_status;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What becomes of a domain whose call of another one failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// The call returns 0, and `__rf_call_status` tells why. A domain that does not link `__rf_call_status` could not tell
    /// the 0 from a result: its own call ends, with [`FaultKind::Callee`].
    #[default]
    Tell,
    /// The call returns this value in `rax`, and `__rf_call_status` tells why.
    Return(u64),
    /// The calling domain's own call ends, with [`FaultKind::Callee`].
    End,
}

/// A failed call through a link, as the host's hook sees it.
#[derive(Debug)]
#[non_exhaustive]
pub struct CalleeFailure<'a> {
    /// The name under which the calling domain has the function.
    pub import: &'a str,
    /// The domain that was called; `None` if the slot is empty or the domain is gone.
    pub callee: Option<Domain>,
    /// Why the call failed.
    pub error: &'a CallError,
}

/// An entry that stands, or stood, in a slot.
pub(crate) struct Granted {
    thunk: Thunk,
    callee: WeakDomain,
}

impl Granted {
    fn live(&self) -> bool {
        self.thunk.live()
    }

    /// The callee goes: calls fail from now on.
    pub(crate) fn sever(&self) {
        self.thunk.disable(false);
    }

    /// Calls fail from now on. True if they did not before.
    pub(crate) fn revoke(&self) -> bool {
        let was = self.live();
        self.thunk.disable(true);
        if let Some(callee) = self.callee.upgrade() {
            callee.divert();
        }
        was
    }
}

/// What stands in a slot, and what did: threads may still be on their way through it.
#[derive(Default)]
struct Content {
    now: Option<Arc<Granted>>,
    before: Vec<Arc<Granted>>,
    /// What the domain was made with.
    first: Option<Arc<Granted>>,
}

/// An import that takes entries of other domains.
pub(crate) struct Slot {
    pub name: String,
    pub signature: Signature,
    pub on_failure: OnFailure,
    /// What is called while nothing stands in the slot.
    empty: Thunk,
    content: Mutex<Content>,
}

impl Slot {
    pub(crate) fn new(name: &str, signature: Signature, on_failure: OnFailure) -> Result<Slot, GrantError> {
        if signature.stack > 0 {
            return Err(GrantError::StackArguments {
                name: name.into(),
                words: signature.stack,
            });
        }
        let empty = Thunk::new(
            Target::nothing(gate::__rf_in_bare as *const () as u64),
            &signature,
        )?;
        Ok(Slot {
            name: name.into(),
            signature,
            on_failure,
            empty,
            content: Mutex::default(),
        })
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What an import without an entry calls.
    pub(crate) fn empty(&self) -> u64 {
        self.empty.code() as u64
    }

    /// Puts an entry in, in place of what is there. `idle` tells whether no thread is in the calling domain.
    pub(crate) fn fill(
        &self,
        import: &Import,
        entry: &Entry,
        idle: impl FnOnce() -> bool,
    ) -> Result<Grant, GrantError> {
        let (target, callee) = entry.target_for(&self.signature);
        let link = Arc::new(Granted {
            thunk: Thunk::new(target, &self.signature)?,
            callee,
        });
        entry.granted(&link);
        let mut content = self.content();
        import.function.store(link.thunk.code() as u64, Ordering::Release);
        if let Some(old) = content.now.replace(link.clone()) {
            // What the domain was made with comes back when it is recycled.
            if content
                .first
                .as_ref()
                .is_none_or(|first| !Arc::ptr_eq(first, &old))
            {
                old.revoke();
            }
            content.before.push(old);
        }
        if idle() {
            content.before.clear();
        }
        Ok(Grant(link))
    }

    /// Puts in what the domain is made with.
    pub(crate) fn fill_first(&self, import: &Import, entry: &Entry) -> Result<(), GrantError> {
        let Grant(link) = self.fill(import, entry, || true)?;
        self.content().first = Some(link);
        Ok(())
    }

    /// Puts back what the domain was made with. False if that was revoked or is gone.
    pub(crate) fn as_made(&self, import: &Import, idle: impl FnOnce() -> bool) -> bool {
        let first = self.content().first.clone();
        let Some(first) = first else {
            self.clear(import, idle);
            return true;
        };
        let mut content = self.content();
        import
            .function
            .store(first.thunk.code() as u64, Ordering::Release);
        if let Some(old) = content.now.replace(first.clone())
            && !Arc::ptr_eq(&old, &first)
        {
            old.revoke();
            content.before.push(old);
        }
        first.live()
    }

    /// Takes out what is in. True if there was something that could be called.
    pub(crate) fn clear(&self, import: &Import, idle: impl FnOnce() -> bool) -> bool {
        let mut content = self.content();
        import.function.store(self.empty(), Ordering::Release);
        let old = content.now.take();
        let was = old.as_ref().is_some_and(|old| old.revoke());
        content.before.extend(old);
        if idle() {
            content.before.clear();
        }
        was
    }

    /// The domain that is called now.
    pub(crate) fn callee(&self) -> Option<Domain> {
        let content = self.content();
        content.now.as_ref().filter(|link| link.live())?.callee.upgrade()
    }
}

/// A function of one domain that another one may call, until it is [revoked](Grant::revoke). Dropping this revokes nothing.
#[derive(Clone)]
pub struct Grant(Arc<Granted>);

impl Grant {
    /// Takes the function away: calls of it fail in the calling domain from now on, with
    /// [`call_status::REVOKED`]. Calls in progress finish. Does not touch other grants, of the same function either. True if
    /// it could be called until now.
    pub fn revoke(&self) -> bool {
        self.0.revoke()
    }

    /// Whether the function can still be called: not revoked, not replaced, and the domain that has it lives.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.0.live()
    }
}

impl std::fmt::Debug for Grant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Grant").field("live", &self.is_live()).finish()
    }
}

/// What the calling domain is told.
pub(crate) fn code(error: &CallError) -> u32 {
    match error {
        CallError::Fault(fault) => match fault.kind {
            FaultKind::TimeLimit | FaultKind::Interrupted => call_status::TIME,
            _ => call_status::FAULT,
        },
        CallError::Exit(_) => call_status::EXIT,
        CallError::Faulted { .. } => call_status::FAULTED,
        CallError::Gone => call_status::GONE,
        CallError::Revoked | CallError::Removed => call_status::REVOKED,
        _ => call_status::REFUSED,
    }
}
