//! How the host ends a call into a domain.

use crate::host_cause::said;
use std::any::Any;

/// How host code ends the call into the domain that it was called from: a function of the host's instead of returning,
/// a policy instead of performing a system call. What its caller gets for it is a [`CallError`](crate::CallError).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndCall {
    /// With [`FaultKind::Host`](crate::FaultKind::Host) and this reason.
    Fail(String),
    /// With [`CallError::Exit`](crate::CallError::Exit) and this status.
    Exit(i32),
    /// With [`FaultKind::Abort`](crate::FaultKind::Abort) and this reason: as if the domain had called `abort`.
    Abort(i32),
    /// With [`FaultKind::Uncaught`](crate::FaultKind::Uncaught): an exception of this type.
    Uncaught(String),
    /// With [`FaultKind::OutOfMemory`](crate::FaultKind::OutOfMemory): the domain has used more memory than it may.
    OutOfMemory,
}

impl EndCall {
    /// The end by host code, `who`, that panicked with this payload.
    #[must_use]
    pub fn panicked(who: &str, payload: &(dyn Any + Send)) -> Self {
        Self::Fail(format!("{who} panicked: {}", said(payload)))
    }
}
