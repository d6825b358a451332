//! How a program wants its domains made: kept, so that more of them can be made later.

use std::ffi::{CString, c_void};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ringfence_runtime::{Cancel, Domain, DomainOptions, Imports, Module, OnFailure, Signature};

use crate::domains::{OnLimitFn, Options, decide};
use crate::error::{Failure, Status};
use crate::imports::{Import, provided, read_imports};
use crate::objects::{LateHandle, pointer, text};
use crate::policy::{self, InForce};

/// `rf_slot` of the header.
#[repr(C)]
pub struct Slot {
    name: *const std::ffi::c_char,
    ints: u8,
    floats: u8,
    int_results: u8,
    float_results: u8,
    on_failure: i32,
    value: u64,
}

/// A copy of all that `rf_domain_options` names.
pub(crate) struct Recipe {
    pub(crate) module: Module,
    imports: Vec<Import>,
    /// What the imports' names point to.
    _names: Vec<CString>,
    slots: Vec<(String, Signature, OnFailure)>,
    limits: DomainOptions,
    policy: u64,
    /// The program's function for limits, and its context.
    on_limit: Option<(OnLimitFn, usize)>,
    /// Whether it gets besides what the program provided for all modules of `rf_dlopen`.
    pub(crate) provided: bool,
}

// SAFETY: functions and contexts are the program's, and the header says that they are used on any thread; names are ours.
unsafe impl Send for Recipe {}
// SAFETY: as above.
unsafe impl Sync for Recipe {}

/// A domain and what hangs on it, without a handle.
pub(crate) struct Made {
    pub(crate) domain: Domain,
    pub(crate) module: Module,
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
        let mut limits = DomainOptions::default();
        // SAFETY: the header demands of the program what is demanded here.
        limits.cancel = (!options.cancel.is_null()).then(|| unsafe { Cancel::at(options.cancel) });
        for (row, &number) in DomainOptions::TABLE.iter().zip(&options.numbers) {
            if number > 0 {
                row.set(&mut limits, number)?;
            }
        }
        Ok(Recipe {
            module,
            imports,
            _names: names,
            slots,
            limits,
            policy: options.policy as u64,
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
        let domain = Domain::new(std::slice::from_ref(&self.module), imports, &self.limits)?;
        Ok(Made {
            domain,
            module: self.module.clone(),
            policy,
            late,
        })
    }
}

/// Reads an array of `rf_slot`.
///
/// # Safety
/// `list` is null or points to `count` slots whose names are null or strings.
unsafe fn read_slots(
    list: *const Slot,
    count: usize,
) -> Result<Vec<(String, Signature, OnFailure)>, Failure> {
    let bad = |message: String| Err(Failure::new(Status::ERROR_ARGUMENT, message));
    if list.is_null() && count > 0 {
        return bad("slots is NULL but slot_count is not 0".into());
    }
    let mut slots = Vec::new();
    for i in 0..count {
        // SAFETY: the caller's promise.
        let slot = unsafe { &*list.add(i) };
        // SAFETY: the caller's promise.
        let name = unsafe { text(slot.name, "the name of a slot") }?;
        if slot.ints > 6 || slot.floats > 8 || slot.int_results > 2 || slot.float_results > 2 {
            return bad(format!(
                "slot {name}: at most 6 integers and 8 floats pass in registers, and 2 of each come back"
            ));
        }
        let on_failure = match slot.on_failure {
            0 => OnFailure::Tell,
            1 => OnFailure::Return(slot.value),
            2 => OnFailure::End,
            other => return bad(format!("slot {name}: {other} is no rf_on_failure")),
        };
        let signature = Signature {
            ints: slot.ints,
            floats: slot.floats,
            int_results: slot.int_results,
            float_results: slot.float_results,
            ..Signature::NOTHING
        };
        slots.push((name.to_owned(), signature, on_failure));
    }
    Ok(slots)
}

/// A recipe that several handles use.
pub(crate) type Shared = Arc<Recipe>;
