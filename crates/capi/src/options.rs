//! `rf_domain_options` and what it names, as C has them.

use std::ffi::{c_char, c_void};
use std::ptr;

use ringfence::{DomainOptions, LimitHit, OnFailure, OnLimit, Signature};

use crate::arguments::text;
use crate::caller::Import;
use crate::status::{Failure, Status};

/// `rf_domain_options` of the header.
#[repr(C)]
pub struct Options {
    size: usize,
    pub(crate) imports: *const Import,
    pub(crate) import_count: usize,
    pub(crate) slots: *const Slot,
    pub(crate) slot_count: usize,
    pub(crate) policy: *const c_void,
    pub(crate) on_limit: Option<OnLimitFn>,
    pub(crate) on_limit_context: *mut c_void,
    /// The rows of the table, in its order; 0 is the default.
    pub(crate) numbers: [u64; DomainOptions::TABLE.len()],
    pub(crate) cancel: *const i32,
    pub(crate) arena: *const c_void,
}

impl Options {
    /// Whether functions, slots or a policy are among them.
    pub(crate) fn has_more_than_numbers(&self) -> bool {
        let counts = self.import_count > 0 || self.slot_count > 0;
        counts || !self.policy.is_null() || !self.arena.is_null() || self.on_limit.is_some()
    }
}

/// `rf_limit_hit` of the header.
#[repr(C)]
pub struct Hit {
    domain: *mut c_void,
    what: i32,
    reserved: i32,
    wanted: u64,
    used: u64,
    limit: u64,
}

/// The program's function for limits.
pub(crate) type OnLimitFn = unsafe extern "C" fn(hit: *const Hit, context: *mut c_void) -> u64;

/// What the program decides about a limit.
///
/// # Safety
/// `function` and `context` are what the header demands.
pub(crate) unsafe fn decide(
    function: OnLimitFn,
    context: *mut c_void,
    domain: *mut c_void,
    hit: &LimitHit,
) -> OnLimit {
    let (what, wanted, used, limit) = match *hit {
        LimitHit::Memory { wanted, used, limit } => (1, wanted, used, limit),
        LimitHit::CallTime { limit } => (2, 0, 0, limit),
        LimitHit::ProcessorTime { used, limit } => (3, 0, used, limit),
        LimitHit::Faults { faults, limit } => (4, 1, faults, limit),
        LimitHit::Descriptors { limit } => (5, 1, limit, limit),
        LimitHit::Calls { limit } => (6, 1, limit, limit),
        LimitHit::Lanes { limit } => (7, 1, limit, limit),
        LimitHit::Disk { wanted, used, limit } => (8, wanted, used, limit),
        // One that this interface does not know yet holds.
        _ => return OnLimit::Keep,
    };
    let hit = Hit {
        domain,
        what,
        reserved: 0,
        wanted,
        used,
        limit,
    };
    // SAFETY: the caller's promise.
    match unsafe { function(&raw const hit, context) } {
        0 => OnLimit::Keep,
        to => OnLimit::Raise(to),
    }
}

/// Reads as much of the options as the program's version of the struct has.
///
/// # Safety
/// `options` is null or points to `options->size` readable bytes.
pub(crate) unsafe fn read_options(options: *const Options) -> Result<Options, Failure> {
    let mut all = Options {
        size: size_of::<Options>(),
        imports: ptr::null(),
        import_count: 0,
        slots: ptr::null(),
        slot_count: 0,
        policy: ptr::null(),
        on_limit: None,
        on_limit_context: ptr::null_mut(),
        numbers: [0; DomainOptions::TABLE.len()],
        cancel: ptr::null(),
        arena: ptr::null(),
    };
    if options.is_null() {
        return Ok(all);
    }
    // SAFETY: the size comes first in every version.
    let size = unsafe { (&raw const (*options).size).read() };
    if size < size_of::<usize>() || size > 4096 {
        let message = format!("rf_domain_options.size is {size}; set it through RF_DOMAIN_OPTIONS_INIT");
        return Err(Failure::new(Status::ERROR_ARGUMENT, message));
    }
    let known = size.min(size_of::<Options>());
    // SAFETY: both have `known` bytes; the struct is plain numbers and pointers.
    unsafe { ptr::copy_nonoverlapping(options.cast::<u8>(), (&raw mut all).cast::<u8>(), known) };
    // SAFETY: the caller's promise: `size` bytes are readable.
    let rest = unsafe { std::slice::from_raw_parts(options.cast::<u8>().add(known), size - known) };
    if rest.iter().any(|&b| b != 0) {
        let message = "rf_domain_options asks for something that this version of the library does not know";
        return Err(Failure::new(Status::ERROR_ARGUMENT, message));
    }
    Ok(all)
}

/// `rf_slot` of the header.
#[repr(C)]
pub struct Slot {
    name: *const c_char,
    ints: u8,
    floats: u8,
    int_results: u8,
    float_results: u8,
    on_failure: i32,
    value: u64,
}

/// Reads an array of `rf_slot`.
///
/// # Safety
/// `list` is null or points to `count` slots whose names are null or strings.
pub(crate) unsafe fn read_slots(
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
