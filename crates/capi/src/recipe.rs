//! How a program wants its domains made: kept, so that more of them can be made later.

use std::ffi::{CString, c_void};
use std::sync::atomic::Ordering;

use ringfence::{Arena, Cancel, Domain, DomainOptions, Imports, Member, Module, OnFailure, Signature};

use crate::arenas::arena;
use crate::arguments::{pointer, text};
use crate::caller::{Import, provided, read_imports};
use crate::handles::LateHandle;
use crate::options::{OnLimitFn, Options, decide, read_slots};
use crate::policy::{self, InForce};
use crate::status::Failure;

/// A copy of all that `rf_domain_options` names.
pub(crate) struct Recipe {
    pub(crate) module: Module,
    imports: Vec<Import>,
    /// What the imports' names point to.
    _names: Vec<CString>,
    slots: Vec<(String, Signature, OnFailure)>,
    limits: DomainOptions,
    policy: u64,
    arena: Option<Arena>,
    /// The program's function for limits, and its context.
    on_limit: Option<(OnLimitFn, usize)>,
    /// Whether it gets besides what the program provided for all modules of `rf_dlopen`.
    pub(crate) provided: bool,
}

// SAFETY: functions and contexts are the program's, and the header says that they are used on any thread; names are ours.
unsafe impl Send for Recipe {}
// SAFETY: as above.
unsafe impl Sync for Recipe {}

/// The limits and sizes among the options.
pub(crate) fn numbers(options: &Options) -> Result<DomainOptions, Failure> {
    let mut limits = DomainOptions::default();
    // SAFETY: the header demands of the program what is demanded here.
    limits.cancel = (!options.cancel.is_null()).then(|| unsafe { Cancel::at(options.cancel) });
    for (row, &number) in DomainOptions::TABLE.iter().zip(&options.numbers) {
        if number > 0 {
            row.set(&mut limits, number)?;
        }
    }
    Ok(limits)
}

/// A domain and what hangs on it, without a handle.
pub(crate) struct Made {
    pub(crate) domain: Domain,
    /// The module that it is of; a runtime's has none.
    pub(crate) module: Option<Module>,
    pub(crate) policy: Option<InForce>,
    pub(crate) late: LateHandle,
}

impl Recipe {
    /// Copies what the options name.
    ///
    /// # Safety
    /// They are valid as the header says.
    pub(crate) unsafe fn read(module: Module, options: &Options) -> Result<Recipe, Failure> {
        let late = LateHandle::default();
        // Checks them all.
        // SAFETY: the caller's promise.
        unsafe { read_imports(Imports::new(), options.imports, options.import_count, &late) }?;
        let (mut imports, mut names) = (Vec::new(), Vec::new());
        for i in 0..options.import_count {
            // SAFETY: checked above to be there, with a name.
            let (import, name) = unsafe {
                let import = &*options.imports.add(i);
                (import, text(import.name(), "the name of an import")?)
            };
            // A name of ours has no NUL: it was a C string.
            names.push(CString::new(name).unwrap_or_default());
            imports.push(import.named(names[i].as_ptr()));
        }
        // SAFETY: the caller's promise.
        let slots = unsafe { read_slots(options.slots, options.slot_count) }?;
        let limits = numbers(options)?;
        Ok(Recipe {
            module,
            imports,
            _names: names,
            slots,
            limits,
            policy: options.policy as u64,
            arena: (!options.arena.is_null())
                .then(|| arena(options.arena))
                .transpose()?,
            on_limit: options.on_limit.map(|f| (f, options.on_limit_context as usize)),
            provided: false,
        })
    }

    /// What a new domain is given. Its handle comes `late`.
    pub(crate) fn imports(&self) -> Result<(Imports, Option<InForce>, LateHandle), Failure> {
        let late = LateHandle::default();
        let base = if self.provided { provided() } else { Imports::new() };
        // SAFETY: our own copies, of functions for which the header demands what is demanded here.
        let mut imports = unsafe { read_imports(base, self.imports.as_ptr(), self.imports.len(), &late) }?;
        for (name, signature, on_failure) in &self.slots {
            imports = imports.slot(name, *signature, *on_failure);
        }
        if let Some(arena) = &self.arena {
            imports = imports.arena(arena);
        }
        if let Some((function, context)) = self.on_limit {
            let late = late.clone();
            imports = imports.on_limit(move |_, hit| {
                let domain = pointer(late.load(Ordering::Acquire));
                // SAFETY: the header demands of the program what is demanded here.
                unsafe { decide(function, context as *mut c_void, domain, hit) }
            });
        }
        let policy = if self.policy == 0 && self.provided {
            policy::start_provided(&late)?
        } else {
            policy::start(pointer(self.policy), &late)?
        };
        if let Some(policy) = &policy {
            imports = imports.policy(policy.monitor.clone());
        }
        Ok((imports, policy, late))
    }

    pub(crate) fn make(&self) -> Result<Made, Failure> {
        let (imports, policy, late) = self.imports()?;
        let domain = Domain::instantiate(std::slice::from_ref(&self.module), imports, &self.limits)?;
        Ok(Made {
            domain,
            module: Some(self.module.clone()),
            policy,
            late,
        })
    }
}

impl Member for Made {
    fn domain(&self) -> &Domain {
        &self.domain
    }

    fn cleaned(&self) {
        if let Some(policy) = &self.policy {
            policy.forget();
        }
    }
}
