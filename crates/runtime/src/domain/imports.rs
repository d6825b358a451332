//! What a host gives to a domain.

use crate::domain::limits::{LimitHit, LimitHook, OnLimit};
use crate::domain::slot::{CalleeFailure, OnFailure};
use crate::domain::{Domain, DomainRef, Signature};
use crate::words::Arena;
use ringfence_core::policy::SyscallHandler;
use ringfence_core::{Backend, Feature, Given, HostFunction, Unsupported};
pub use ringfence_core::{Closure, EndCall, OutFrame};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::Arc;

/// Named host functions and other things that a domain may use.
#[derive(Default)]
pub struct Imports {
    pub(crate) functions: BTreeMap<String, Binding>,
    pub(crate) policy: Option<Arc<dyn SyscallHandler>>,
    pub(crate) hook: Option<Arc<Hook>>,
    pub(crate) limits: Option<Arc<LimitHook>>,
    pub(crate) arena: Option<Arena>,
}

/// What the host does when a call of another domain has failed.
pub(crate) type Hook = dyn Fn(&CalleeFailure<'_>) -> Result<(), EndCall> + Send + Sync;

#[derive(Clone)]
pub(crate) enum Binding {
    /// Called with the register arguments as they are.
    Plain { function: usize, signature: Signature },
    /// Called with a frame.
    Closure(Arc<Closure>),
    /// An export of another domain.
    Slot {
        /// What is in at first.
        entry: Option<(Domain, String)>,
        signature: Signature,
        on_failure: OnFailure,
    },
}

impl Imports {
    /// Nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives a plain C function, called with the register arguments as they are.
    ///
    /// # Safety
    /// `function` is a C function with no stack arguments that is sound for *any* argument values in registers, from any
    /// thread, for as long as the domain lives, and that neither unwinds nor jumps out.
    #[must_use]
    pub unsafe fn plain(mut self, name: &str, function: *const c_void, signature: Signature) -> Self {
        self.functions.insert(
            name.into(),
            Binding::Plain {
                function: function as usize,
                signature,
            },
        );
        self
    }

    /// Gives a closure. If it panics, the call into the domain fails with the panic's message.
    #[must_use]
    pub fn closure(
        mut self,
        name: &str,
        f: impl Fn(&mut OutFrame) -> Result<(), EndCall> + Send + Sync + 'static,
    ) -> Self {
        self.functions.insert(name.into(), Binding::Closure(Arc::new(f)));
        self
    }

    /// Gives an export of another domain, called with the register arguments as they are. The other domain lives as long as
    /// this one.
    ///
    /// If a call fails, the calling domain is told, see [`OnFailure::Tell`]. The host can
    /// [revoke](Domain::revoke) the function and [grant](Domain::grant) another.
    #[must_use]
    pub fn domain(self, name: &str, domain: &Domain, export: &str, signature: Signature) -> Self {
        self.domain_or(name, domain, export, signature, OnFailure::default())
    }

    /// As [`domain`](Self::domain), and says what becomes of this domain if a call fails.
    #[must_use]
    pub fn domain_or(
        mut self,
        name: &str,
        domain: &Domain,
        export: &str,
        signature: Signature,
        on_failure: OnFailure,
    ) -> Self {
        let binding = Binding::Slot {
            entry: Some((domain.clone(), export.into())),
            signature,
            on_failure,
        };
        self.functions.insert(name.into(), binding);
        self
    }

    /// Names an import that takes functions of other domains, given with [`Domain::grant`] while the domain lives. Until then
    /// calls of it fail.
    #[must_use]
    pub fn slot(mut self, name: &str, signature: Signature, on_failure: OnFailure) -> Self {
        let binding = Binding::Slot {
            entry: None,
            signature,
            on_failure,
        };
        self.functions.insert(name.into(), binding);
        self
    }

    /// Sets what is called when a call of another domain has failed, on the thread that made it, before the calling domain
    /// goes on. It may reset the domain that failed. `Ok` leaves it at what was said when the import was given; everything
    /// else ends the calling domain's call. A panic does, too.
    #[must_use]
    pub fn on_callee_failure(
        mut self,
        hook: impl Fn(&CalleeFailure<'_>) -> Result<(), EndCall> + Send + Sync + 'static,
    ) -> Self {
        self.hook = Some(Arc::new(hook));
        self
    }

    /// Sets what is called when the domain has reached a limit, besides the error that somebody gets for it. Some limits it may
    /// raise: see [`LimitHit`].
    ///
    /// It runs on the thread that reached the limit, and on several at once if several do; no lock of the runtime's is held. It may use
    /// the domain's memory, and call other domains, except when a call has run out of time: then such calls may fail with
    /// [`CallError::Inside`](crate::CallError::Inside). A call into the domain itself counts as nested, or fails with the domain. What it does
    /// reaches limits without being told. A panic in it leaves the limit as it is. It must not wait for other calls of the domain to end.
    #[must_use]
    pub fn on_limit(
        mut self,
        hook: impl Fn(&DomainRef<'_>, &LimitHit) -> OnLimit + Send + Sync + 'static,
    ) -> Self {
        self.limits = Some(Arc::new(hook));
        self
    }

    /// Gives the arena whose objects the domain may get rights to. It is for modules of the words mode, and all of the domain's are
    /// (but for the libraries that are linked into them).
    #[must_use]
    pub fn arena(mut self, arena: &Arena) -> Self {
        self.arena = Some(arena.clone());
        self
    }

    /// Sets who answers system calls. Without one, [`NoPolicy`](ringfence_core::policy::NoPolicy) does.
    #[must_use]
    pub fn policy(mut self, policy: Arc<dyn SyscallHandler>) -> Self {
        self.policy = Some(policy);
        self
    }

    /// The same for a back end without windows.
    ///
    /// # Errors
    /// [`Unsupported`] if something among it is for windows only.
    pub fn for_backend(self, backend: Backend) -> Result<Given, Unsupported> {
        if self.hook.is_some() {
            backend.require(Feature::Grants)?;
        }
        if self.policy.is_some() {
            backend.require(Feature::Policy)?;
        }
        if self.limits.is_some() {
            backend.require(Feature::OnLimit)?;
        }
        if self.arena.is_some() {
            backend.require(Feature::Words)?;
        }
        let mut functions = BTreeMap::new();
        for (name, binding) in self.functions {
            let function = match binding {
                Binding::Plain { function, signature } => {
                    backend.require(Feature::Plain)?;
                    HostFunction::Plain { function, signature }
                }
                Binding::Closure(closure) => HostFunction::Closure(closure),
                Binding::Slot { .. } => {
                    return Err(Unsupported {
                        feature: Feature::Grants,
                        backend,
                    });
                }
            };
            functions.insert(name, function);
        }
        Ok(Given {
            functions,
            policy: self.policy,
            on_limit: self.limits,
        })
    }

    /// The names given so far.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.functions.keys().map(String::as_str)
    }
}
