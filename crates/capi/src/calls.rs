//! Checked calls.

use std::ffi::{c_char, c_void};
use std::ptr;

use ringfence_runtime::{Call, Domain, Entry, Returned};

use crate::error::{Failure, Status, status};
use crate::objects::{self, not_null, text};

/// `rf_value` of the header.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Value {
    kind: i32,
    bits: u64,
}

const VOID: i32 = 0;
const I32: i32 = 1;
const U32: i32 = 2;
const I64: i32 = 3;
const U64: i32 = 4;
const PTR: i32 = 5;
const F32: i32 = 6;
const F64: i32 = 7;

fn bad_type(kind: i32) -> Failure {
    Failure::new(
        Status::ERROR_ARGUMENT,
        format!("{kind} is no rf_type that a value can have here"),
    )
}

/// Calls `entry`.
///
/// # Safety
/// `arguments` is null or has `count` values; `result` is null or writable.
unsafe fn call(
    entry: &Entry,
    arguments: *const Value,
    count: usize,
    result: *mut Value,
) -> Result<(), Failure> {
    let kind = if result.is_null() {
        VOID
    } else {
        // SAFETY: not null, so readable and writable.
        unsafe {
            (*result).bits = 0;
            (*result).kind
        }
    };
    if !(VOID..=F64).contains(&kind) {
        return Err(bad_type(kind));
    }
    if arguments.is_null() && count > 0 {
        return Err(Failure::new(
            Status::ERROR_ARGUMENT,
            "arguments is NULL but count is not 0",
        ));
    }
    const MOST: usize = 14 + ringfence_runtime::domain::MAX_STACK_WORDS;
    if count > MOST {
        return Err(Failure::new(
            Status::ERROR_TOO_LONG,
            format!("{count} arguments; at most {MOST} pass"),
        ));
    }
    let mut stack = Vec::new(); // no allocation unless something is pushed
    let (mut ints, mut floats) = ([0; 6], [0.0; 8]);
    let (mut used_ints, mut used_floats) = (0, 0);
    for i in 0..count {
        // SAFETY: the caller's promise.
        let Value { kind, bits } = unsafe { *arguments.add(i) };
        match kind {
            I32 | U32 | I64 | U64 | PTR => {
                let bits = match kind {
                    I32 => bits as i32 as i64 as u64,
                    U32 => u64::from(bits as u32),
                    _ => bits,
                };
                match ints.get_mut(used_ints) {
                    Some(register) => *register = bits,
                    None => stack.push(bits),
                }
                used_ints += 1;
            }
            F32 | F64 => {
                let bits = if kind == F32 { u64::from(bits as u32) } else { bits };
                match floats.get_mut(used_floats) {
                    Some(register) => *register = f64::from_bits(bits),
                    None => stack.push(bits),
                }
                used_floats += 1;
            }
            _ => return Err(bad_type(kind)),
        }
    }
    let Returned { rax, xmm0, .. } = entry.call(&mut Call {
        ints,
        floats,
        stack: &stack,
    })?;
    if !result.is_null() {
        let bits = match kind {
            VOID => 0,
            I32 | U32 => u64::from(rax as u32),
            F32 => u64::from(xmm0.to_bits() as u32),
            F64 => xmm0.to_bits(),
            _ => rax,
        };
        // SAFETY: not null, so writable.
        unsafe { (*result).bits = bits };
    }
    Ok(())
}

/// Puts the handle of the function that `find` finds by its name where `function` points; null there if there is none.
///
/// # Safety
/// `name` is null or a string, `function` null or writable.
pub(crate) unsafe fn find_function<E: Into<Failure>>(
    domain: *mut c_void,
    name: *const c_char,
    function: *mut *mut c_void,
    find: impl FnOnce(&Domain, &str) -> Result<Entry, E>,
) -> Result<(), Failure> {
    not_null(function, "function")?;
    // SAFETY: not null, so writable.
    unsafe { *function = ptr::null_mut() };
    let object = objects::domain(domain)?;
    // SAFETY: the caller's promise.
    let name = unsafe { text(name, "name") }?;
    let entry = find(&object.domain, name).map_err(Into::into)?;
    let handle = objects::add_function(&object, entry)?;
    // SAFETY: not null, so writable.
    unsafe { *function = handle };
    Ok(())
}

/// See the header.
///
/// # Safety
/// `name` is null or a string, `function` null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_function_create(
    domain: *mut c_void,
    name: *const c_char,
    function: *mut *mut c_void,
) -> Status {
    // SAFETY: the caller's promise.
    status(|| unsafe { find_function(domain, name, function, Domain::entry) })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_function_destroy(function: *mut c_void) -> Status {
    status(|| {
        if function.is_null() {
            Ok(())
        } else {
            objects::remove_function(function)
        }
    })
}

/// See the header.
///
/// # Safety
/// `arguments` is null or has `count` values; `result` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_function_call(
    function: *mut c_void,
    arguments: *const Value,
    count: usize,
    result: *mut Value,
) -> Status {
    status(|| {
        let object = objects::function(function)?;
        // SAFETY: the caller's promise.
        unsafe { call(&object.entry, arguments, count, result) }
    })
}

/// See the header.
///
/// # Safety
/// As [`rf_function_call`]; `name` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_domain_call(
    domain: *mut c_void,
    name: *const c_char,
    arguments: *const Value,
    count: usize,
    result: *mut Value,
) -> Status {
    status(|| {
        let object = objects::domain(domain)?;
        // SAFETY: the caller's promise.
        let name = unsafe { text(name, "name") }?;
        let entry = object.domain.entry(name)?;
        // SAFETY: the caller's promise.
        unsafe { call(&entry, arguments, count, result) }
    })
}

/// See the header.
///
/// # Safety
/// As [`rf_function_call`]; `address` may be anything.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_domain_call_address(
    domain: *mut c_void,
    address: *const c_void,
    arguments: *const Value,
    count: usize,
    result: *mut Value,
) -> Status {
    status(|| {
        let object = objects::domain(domain)?;
        let entry = object.domain.entry_by_address(address as u64)?;
        // SAFETY: the caller's promise.
        unsafe { call(&entry, arguments, count, result) }
    })
}
