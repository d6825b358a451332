//! What a host gives to a domain, for every back end.

use crate::end::EndCall;
use crate::frame::OutFrame;
use crate::limits::{LimitHit, OnLimit};
use crate::policy::SyscallHandler;
use crate::signature::Signature;
use crate::space::DomainRef;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A closure as an import.
pub type Closure = dyn Fn(&mut OutFrame) -> Result<(), EndCall> + Send + Sync;

/// The host's function for limits.
pub type LimitHook = dyn Fn(&DomainRef<'_>, &LimitHit) -> OnLimit + Send + Sync;

/// A host function that a domain may call.
#[derive(Clone)]
pub enum HostFunction {
    /// A C function, called with the register arguments as they are.
    Plain {
        /// Its address.
        function: usize,
        /// Its type.
        signature: Signature,
    },
    /// Called with a frame.
    Closure(Arc<Closure>),
}

/// What a host gives to a domain.
#[derive(Clone, Default)]
pub struct Given {
    /// Host functions by name.
    pub functions: BTreeMap<String, HostFunction>,
    /// Who answers system calls.
    pub policy: Option<Arc<dyn SyscallHandler>>,
    /// Who is told of limits.
    pub on_limit: Option<Arc<LimitHook>>,
}
