//! Code that comes to a living domain, and goes again.

use std::ffi::{c_char, c_void};

use ringfence::Code;

use crate::arguments::{Place, not_null, text};
use crate::error::status;
use crate::function::find_function;
use crate::objects::{self, Callee};
use crate::status::{Failure, Status};

/// See the header.
///
/// # Safety
/// `name` is null or a string, `code` null or `length` bytes, `function` null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_code_add(
    domain: *mut c_void,
    name: *const c_char,
    code: *const c_void,
    length: usize,
    entry: usize,
    function: *mut *mut c_void,
) -> Status {
    status(|| {
        // SAFETY: the caller's promise.
        let function = unsafe { Place::new(function, "function") }?;
        let object = objects::domain(domain)?;
        // SAFETY: the caller's promise.
        let name = unsafe { text(name, "name") }?;
        not_null(code, "code")?;
        if isize::try_from(length).is_err() {
            return Err(Failure::new(Status::ERROR_ARGUMENT, "length is impossible"));
        }
        // SAFETY: the caller's promise. The runtime copies before it checks.
        let bytes = unsafe { std::slice::from_raw_parts(code.cast::<u8>(), length) };
        // An offset that is too large is no function's entry either.
        let entry = u32::try_from(entry).unwrap_or(u32::MAX);
        let added = object
            .domain
            .add_code::<(), ()>(name, &Code { bytes, entry })?
            .untyped();
        match objects::add_function(&object, Callee::Entry(added)) {
            Ok(handle) => {
                function.give(handle);
                Ok(())
            }
            Err(e) => {
                // All or nothing: nobody has been told of it yet.
                let _ = object.domain.remove_code(name);
                Err(e)
            }
        }
    })
}

/// See the header.
///
/// # Safety
/// `name` is null or a string, `function` null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_code_find(
    domain: *mut c_void,
    name: *const c_char,
    function: *mut *mut c_void,
) -> Status {
    // SAFETY: the caller's promise.
    status(|| unsafe {
        find_function(domain, name, function, |d, n| {
            d.find_code::<(), ()>(n).map(|f| f.untyped())
        })
    })
}

/// See the header.
///
/// # Safety
/// `name` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_code_remove(domain: *mut c_void, name: *const c_char) -> Status {
    status(|| {
        let object = objects::domain(domain)?;
        // SAFETY: the caller's promise.
        let name = unsafe { text(name, "name") }?;
        object.domain.remove_code(name)?;
        Ok(())
    })
}
