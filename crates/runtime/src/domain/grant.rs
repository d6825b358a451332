//! Grants: functions of one domain that another one may call under a name.
//!
//! What stands in another domain's slot is a thunk with a target of its own, so that taking one grant away touches no other.
//!
//! *Revoking* stores 0 in the target's index, then sends every lane of the callee the slow way in, which looks at the index again. A
//! thread that was in between either has stored its host stack in the lane by then (its call runs, and finishes), or it
//! fails. So a call that begins after `revoke` has returned never gets in, and neither does one from before that was held up
//! on its way: what it would have called may belong to somebody else by now.

use crate::domain::{Domain, Signature, WeakDomain};
use crate::lanes::lane::Target;
use crate::lanes::thunk::Thunk;
use ringfence_core::error::HostError;
#[cfg(doc)]
use ringfence_isa::window::call_status;
use std::ffi::c_void;
use std::sync::Arc;

/// A function that stands, or stood, in a slot.
pub(crate) struct Granted {
    thunk: Thunk,
    callee: WeakDomain,
}

impl Granted {
    /// A function of `callee`, behind a thunk of its own.
    pub(super) fn new(
        target: Target,
        signature: &Signature,
        callee: WeakDomain,
    ) -> Result<Arc<Self>, HostError> {
        let thunk = Thunk::new(target, signature)?;
        Ok(Arc::new(Self { thunk, callee }))
    }

    /// What the calling domain calls.
    pub(super) fn code(&self) -> *const c_void {
        self.thunk.code()
    }

    /// The domain that is called, while it lives.
    pub(super) fn callee(&self) -> Option<Domain> {
        self.callee.upgrade()
    }

    pub(super) fn live(&self) -> bool {
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

/// A function of one domain that another one may call, until it is [revoked](Grant::revoke). Dropping this revokes nothing.
#[derive(Clone)]
pub struct Grant(pub(super) Arc<Granted>);

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
