//! Slots: imports of a domain that take functions of other domains.
//!
//! The host fills a slot with a grant when the domain is made, or later, and takes it out again whenever it wants. A slot that nobody
//! has filled holds a thunk without a target.
//!
//! The target that a thread has in hand on its way in stays allocated: a slot keeps what was taken out of it until no thread is in
//! the calling domain.

use crate::domain::grant::{Grant, Granted};
use crate::domain::{Domain, Signature};
use crate::lanes::gate;
use crate::lanes::lane::{Import, Target};
use crate::lanes::last_error::LastCall;
use crate::lanes::thunk::Thunk;
use crate::os::lock::{Lock, Locked, Rank};
use ringfence_core::FaultKind;
use ringfence_core::error::{CallError, GrantError};
use ringfence_isa::window::call_status;
use std::sync::Arc;
use std::sync::atomic::Ordering;

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

/// A failed call of a granted function, as the host's hook sees it.
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

/// What stands in a slot, and what did: threads may still be on their way through it.
#[derive(Default)]
struct Content {
    now: Option<Arc<Granted>>,
    before: Vec<Arc<Granted>>,
    /// What the domain was made with.
    first: Option<Arc<Granted>>,
}

impl Content {
    /// Keeps what was taken out until no thread is on its way through it, as `idle` tells. It is revoked when the lock is given back:
    /// its callee's last handle may go with that, and ending a domain takes locks that stand above this one.
    fn retire(&mut self, old: Option<Arc<Granted>>, idle: impl FnOnce() -> bool) {
        self.before.extend(old);
        if idle() {
            self.before.clear();
        }
    }
}

/// An import that takes entries of other domains.
pub(crate) struct Slot {
    pub name: String,
    pub signature: Signature,
    pub on_failure: OnFailure,
    /// What is called while nothing stands in the slot.
    empty: Thunk,
    content: Lock<Content>,
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
            content: Lock::new(Rank::Slot, Content::default()),
        })
    }

    fn content(&self) -> Locked<'_, Content> {
        self.content.lock()
    }

    /// What an import without an entry calls.
    pub(crate) fn empty(&self) -> u64 {
        self.empty.code() as u64
    }

    /// Puts a function in, in place of what is there. `idle` tells whether no thread is in the calling domain.
    pub(crate) fn fill(&self, import: &Import, grant: &Grant, idle: impl FnOnce() -> bool) {
        let granted = &grant.0;
        let mut content = self.content();
        import.function.store(granted.code() as u64, Ordering::Release);
        let old = content.now.replace(granted.clone());
        // What the domain was made with comes back when it is recycled.
        let is_first = |old: &Arc<Granted>| {
            content
                .first
                .as_ref()
                .is_some_and(|first| Arc::ptr_eq(first, old))
        };
        let revoked = old.clone().filter(|old| !is_first(old));
        content.retire(old, idle);
        drop(content);
        if let Some(old) = revoked {
            old.revoke();
        }
    }

    /// Puts in what the domain is made with.
    pub(crate) fn fill_first(&self, import: &Import, grant: &Grant) {
        self.fill(import, grant, || true);
        self.content().first = Some(grant.0.clone());
    }

    /// Puts back what the domain was made with. False if that was revoked or is gone.
    pub(crate) fn as_made(&self, import: &Import, idle: impl FnOnce() -> bool) -> bool {
        let first = self.content().first.clone();
        let Some(first) = first else {
            self.clear(import, idle);
            return true;
        };
        let mut content = self.content();
        import.function.store(first.code() as u64, Ordering::Release);
        let old = content.now.replace(first.clone());
        let old = old.filter(|old| !Arc::ptr_eq(old, &first));
        content.retire(old.clone(), || false);
        drop(content);
        if let Some(old) = old {
            old.revoke();
        }
        first.live()
    }

    /// Takes out what is in. True if there was something that could be called.
    pub(crate) fn clear(&self, import: &Import, idle: impl FnOnce() -> bool) -> bool {
        let mut content = self.content();
        import.function.store(self.empty(), Ordering::Release);
        let old = content.now.take();
        content.retire(old.clone(), idle);
        drop(content);
        old.is_some_and(|old| old.revoke())
    }

    /// The domain that is called now.
    pub(crate) fn callee(&self) -> Option<Domain> {
        let content = self.content();
        content.now.as_ref().filter(|granted| granted.live())?.callee()
    }
}

/// What the calling domain is told. `callee`: the call failed because of a further one.
pub(crate) fn code(last: &LastCall, callee: bool) -> u32 {
    match last {
        LastCall::Fault(FaultKind::TimeLimit | FaultKind::Interrupted) if !callee => call_status::TIME,
        LastCall::Fault(_) => call_status::FAULT,
        LastCall::Exit(_) => call_status::EXIT,
        LastCall::Faulted => call_status::FAULTED,
        LastCall::Gone => call_status::GONE,
        LastCall::Revoked | LastCall::Removed => call_status::REVOKED,
        _ => call_status::REFUSED,
    }
}
