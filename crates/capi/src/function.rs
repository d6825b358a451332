//! Functions: handles and checked calls.

use std::ffi::{c_char, c_void};
use std::ptr;

use ringfence::Domain;
use ringfence::dynamic::{Argument, Function, Results};

use crate::arguments::{not_null, pointer, text};
use crate::error::{border, status};
use crate::objects;
use crate::status::{Failure, Status};

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

impl Value {
    /// What it is as an argument; `None` if it can be none.
    fn argument(&self) -> Option<Argument> {
        Some(match self.kind {
            I32 => Argument::Int(self.bits as i32 as i64 as u64),
            U32 => Argument::Int(u64::from(self.bits as u32)),
            I64 | U64 | PTR => Argument::Int(self.bits),
            F32 => Argument::Float(u64::from(self.bits as u32)),
            F64 => Argument::Float(self.bits),
            _ => return None,
        })
    }
}

fn bad_type(kind: i32) -> Failure {
    Failure::new(
        Status::ERROR_ARGUMENT,
        format!("{kind} is no rf_type that a value can have here"),
    )
}

/// Calls `function`.
///
/// # Safety
/// `arguments` is null or has `count` values; `result` is null or writable.
pub(crate) unsafe fn call(
    function: &Function,
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
    if count > Function::MOST_ARGUMENTS {
        let most = Function::MOST_ARGUMENTS;
        return Err(Failure::new(
            Status::ERROR_TOO_LONG,
            format!("{count} arguments; at most {most} pass"),
        ));
    }
    let list = if count == 0 {
        &[]
    } else {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts(arguments, count) }
    };
    if let Some(bad) = list.iter().find(|v| v.argument().is_none()) {
        return Err(bad_type(bad.kind));
    }
    let Results { int, float } = function.call(list.iter().filter_map(Value::argument))?;
    if !result.is_null() {
        let bits = match kind {
            VOID => 0,
            I32 | U32 => u64::from(int as u32),
            F32 => u64::from(float as u32),
            F64 => float,
            _ => int,
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
    find: impl FnOnce(&Domain, &str) -> Result<Function, E>,
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
    status(|| unsafe { find_function(domain, name, function, Domain::function) })
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
        unsafe { call(&object.function, arguments, count, result) }
    })
}

/// See the header.
///
/// # Safety
/// `module` and `name` are null or strings, `function` null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_function_create_in(
    domain: *mut c_void,
    module: *const c_char,
    name: *const c_char,
    function: *mut *mut c_void,
) -> Status {
    // SAFETY: the caller's promise.
    status(|| unsafe {
        not_null(function, "function")?;
        *function = ptr::null_mut();
        let module = text(module, "module")?;
        find_function(domain, name, function, |domain, name| {
            domain.function_in(module, name)
        })
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_function_address(function: *mut c_void) -> *mut c_void {
    border(
        |_| ptr::null_mut(),
        || {
            let object = objects::function(function)?;
            Ok(pointer(object.function.address()))
        },
    )
}
