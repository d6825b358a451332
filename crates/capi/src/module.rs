//! Modules: opening and ending.

use std::ffi::{c_char, c_void};
use std::ptr;

use ringfence::{Backend, LoadOptions, Module};

use crate::arguments::{self, not_null, text};
use crate::error::status;
use crate::objects;
use crate::status::{Failure, Status};

/// The load options that the flags stand for.
pub(crate) fn load_options(flags: i32) -> Result<LoadOptions, Failure> {
    const INTEGRITY: i32 = 1;
    const UNFENCED: i32 = 2;
    let unknown = flags & !(INTEGRITY | UNFENCED);
    if unknown != 0 {
        return Err(Failure::new(
            Status::ERROR_ARGUMENT,
            format!("unknown flags {unknown:#x}"),
        ));
    }
    let mut options = LoadOptions::default();
    options.allow_integrity = flags & INTEGRITY != 0;
    if flags & UNFENCED != 0 {
        options.backend = Backend::None;
    }
    Ok(options)
}

/// See the header.
///
/// # Safety
/// `path` is null or a string, `module` null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_module_create(
    path: *const c_char,
    flags: i32,
    module: *mut *mut c_void,
) -> Status {
    status(|| {
        not_null(module, "module")?;
        // SAFETY: not null, so writable.
        unsafe { *module = ptr::null_mut() };
        // SAFETY: the caller's promise.
        let path = unsafe { arguments::path(path) }?;
        let opened = objects::add_module(Module::open_with(path, &load_options(flags)?)?)?;
        // SAFETY: not null, so writable.
        unsafe { *module = opened };
        Ok(())
    })
}

/// See the header.
///
/// # Safety
/// `bytes` is null or has `length` bytes, `name` is null or a string, `module` null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_module_create_from_bytes(
    bytes: *const c_void,
    length: usize,
    name: *const c_char,
    flags: i32,
    module: *mut *mut c_void,
) -> Status {
    status(|| {
        not_null(module, "module")?;
        // SAFETY: not null, so writable.
        unsafe { *module = ptr::null_mut() };
        not_null(bytes, "bytes")?;
        let name = if name.is_null() {
            "(memory)"
        } else {
            // SAFETY: the caller's promise.
            unsafe { text(name, "name") }?
        };
        // A copy: what is verified must be what is loaded, whatever the program does to its buffer.
        // SAFETY: the caller's promise.
        let bytes = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), length) }.to_vec();
        let opened = objects::add_module(Module::from_bytes(name, &bytes, &load_options(flags)?)?)?;
        // SAFETY: not null, so writable.
        unsafe { *module = opened };
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_module_destroy(module: *mut c_void) -> Status {
    status(|| {
        if module.is_null() {
            Ok(())
        } else {
            objects::remove_module(module)
        }
    })
}
