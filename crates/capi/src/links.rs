//! Code that comes to a living domain, and goes again.

use std::ffi::{c_char, c_void};
use std::ptr;

use ringfence_runtime::{Code, CodeError, Domain, ModuleError};

use crate::calls::find_function;
use crate::error::{Failure, Status, status};
use crate::objects::{self, not_null, text};

impl From<CodeError> for Failure {
    fn from(e: CodeError) -> Self {
        let status = match &e {
            CodeError::Exists { .. } => Status::ERROR_EXISTS,
            CodeError::Unknown { .. } => Status::ERROR_NO_FUNCTION,
            CodeError::Rejected { .. } => Status::ERROR_REJECTED,
            CodeError::Empty { .. } => Status::ERROR_ARGUMENT,
            CodeError::Registers { .. } | CodeError::Features { .. } => Status::ERROR_UNSUPPORTED,
            CodeError::OnStack { .. } | CodeError::Busy { .. } => Status::ERROR_BUSY,
            CodeError::Handler => Status::ERROR_NESTING,
            _ => Status::ERROR_LIMIT,
        };
        Self::new(status, e.to_string())
    }
}

impl From<ModuleError> for Failure {
    fn from(e: ModuleError) -> Self {
        let message = e.to_string();
        let status = match e {
            ModuleError::Exists { .. } | ModuleError::Twice { .. } => Status::ERROR_EXISTS,
            ModuleError::Unknown { .. } => Status::ERROR_NO_OBJECT,
            ModuleError::Registers { .. } => Status::ERROR_UNSUPPORTED,
            ModuleError::Link { .. } => Status::ERROR_IMPORT,
            ModuleError::Needed { .. }
            | ModuleError::OnStack { .. }
            | ModuleError::Busy { .. }
            | ModuleError::Changing { .. } => Status::ERROR_BUSY,
            ModuleError::Init { source, .. } | ModuleError::Fini { source, .. } => {
                return Self::from(*source).in_constructor(message);
            }
            ModuleError::Faulted => Status::ERROR_FAULTED,
            ModuleError::Handler => Status::ERROR_NESTING,
            _ => Status::ERROR_LIMIT,
        };
        Self::new(status, message)
    }
}

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
        not_null(function, "function")?;
        // SAFETY: not null, so writable.
        unsafe { *function = ptr::null_mut() };
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
        let linked = object.domain.add_code(name, &Code { bytes, entry })?;
        match objects::add_function(&object, linked) {
            Ok(handle) => {
                // SAFETY: not null, so writable.
                unsafe { *function = handle };
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
    status(|| unsafe { find_function(domain, name, function, Domain::find_code) })
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

/// See the header.
///
/// # Safety
/// `name` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_domain_add_module(
    domain: *mut c_void,
    name: *const c_char,
    module: *mut c_void,
) -> Status {
    status(|| {
        let object = objects::domain(domain)?;
        // SAFETY: the caller's promise.
        let name = unsafe { text(name, "name") }?;
        Ok(object.domain.add(name, &objects::module(module)?)?)
    })
}

/// See the header.
///
/// # Safety
/// `name` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_domain_remove_module(domain: *mut c_void, name: *const c_char) -> Status {
    status(|| {
        let object = objects::domain(domain)?;
        // SAFETY: the caller's promise.
        let name = unsafe { text(name, "name") }?;
        Ok(object.domain.remove(name)?)
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
            domain.entry_in(module, name)
        })
    })
}

/// See the header.
///
/// # Safety
/// `module` is null or a string, `name` too.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_domain_find_symbol(
    domain: *mut c_void,
    module: *const c_char,
    name: *const c_char,
) -> *mut c_void {
    crate::error::border(
        |_| ptr::null_mut(),
        || {
            let object = objects::domain(domain)?;
            let module = if module.is_null() {
                None
            } else {
                // SAFETY: the caller's promise.
                Some(unsafe { text(module, "module") }?)
            };
            // SAFETY: the caller's promise.
            let name = unsafe { text(name, "name") }?;
            let found = object.domain.as_ref().find(module, name);
            let none = || Failure::new(Status::ERROR_NO_OBJECT, format!("there is no {name:?}"));
            found.map(objects::pointer).ok_or_else(none)
        },
    )
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_function_address(function: *mut c_void) -> *mut c_void {
    crate::error::border(
        |_| ptr::null_mut(),
        || {
            let object = objects::function(function)?;
            Ok(objects::pointer(object.entry.address()))
        },
    )
}
