//! The short way in, like the dynamic linker's.

use std::ffi::{c_char, c_void};
use std::ptr;

use ringfence::{DomainError, Module, Signature};

use crate::arguments::{self, pointer, text};
use crate::caller;
use crate::error::{border, status};
use crate::module::load_options;
use crate::objects;
use crate::options::{Options, read_options};
use crate::policy;
use crate::prototype::{self, Named, STACK_ARGS_MAX};
use crate::recipe::Recipe;
use crate::status::{Failure, Status};

/// See the header.
///
/// # Safety
/// `path` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_dlopen(path: *const c_char, flags: i32) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe { rf_dlopen_with(path, flags, ptr::null()) }
}

/// See the header.
///
/// # Safety
/// `path` is null or a string, `options` null or valid as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_dlopen_with(
    path: *const c_char,
    flags: i32,
    options: *const Options,
) -> *mut c_void {
    border(
        |_| ptr::null_mut(),
        || {
            // SAFETY: the caller's promise.
            let (path, options) = unsafe { (arguments::path(path)?, read_options(options)?) };
            let module = Module::open_with(path, &load_options(flags)?)?;
            // SAFETY: the caller's promise.
            let mut recipe = unsafe { Recipe::read(module, &options) }?;
            recipe.provided = true;
            objects::publish(recipe.make()?, None)
        },
    )
}

/// See the header.
///
/// # Safety
/// `name` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe { rf_dlsym_args(handle, name, 0) }
}

/// See the header.
///
/// # Safety
/// `name` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_dlsym_args(
    handle: *mut c_void,
    name: *const c_char,
    stack_bytes: usize,
) -> *mut c_void {
    border(
        |_| ptr::null_mut(),
        || {
            let object = objects::domain(handle)?;
            // SAFETY: the caller's promise.
            let name = unsafe { text(name, "name") }?;
            if stack_bytes > STACK_ARGS_MAX {
                let message =
                    format!("{stack_bytes} bytes of stack arguments; at most {STACK_ARGS_MAX} pass");
                return Err(Failure::new(Status::ERROR_TOO_LONG, message));
            }
            let (name, signature) = match prototype::read(name)? {
                Named::Function(_, signature) if stack_bytes > 0 => {
                    let words = signature.stack;
                    let message =
                        format!("{name}: its type says it all, {words} words on the stack; use rf_dlsym");
                    return Err(Failure::new(Status::ERROR_ARGUMENT, message));
                }
                Named::Function(name, signature) => (name, Some(signature)),
                Named::Untyped(name) => {
                    let stack = stack_bytes.div_ceil(8) as u8;
                    (
                        name,
                        Some(Signature {
                            stack,
                            ..Signature::UNKNOWN
                        }),
                    )
                }
                Named::Bare(name) => (name, None),
            };
            match (object.domain.function(name), signature) {
                (Ok(entry), Some(signature)) => Ok(entry.try_thunk(signature)?.cast_mut()),
                (Ok(_), None) => Err(prototype::no_type(
                    name,
                    &format!(
                        "write RF_DLSYM(handle, int, {name}, (int, int)) or rf_dlsym(handle, \"int {name}(int, int)\"), \
                         with the types that it has"
                    ),
                )),
                (Err(DomainError::NotFunction { .. }), None)
                    if object.domain.symbol(None, name).is_some() =>
                {
                    Ok(pointer(object.domain.symbol(None, name).unwrap_or(0)))
                }
                (Err(e), _) => Err(e.into()),
            }
        },
    )
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_dlclose(handle: *mut c_void) -> i32 {
    border(
        |_| -1,
        || {
            let object = objects::domain(handle)?;
            // The handle is good for host functions that they call.
            let ended = if object.domain.faulted() {
                Ok(())
            } else {
                object.domain.run_destructors()
            };
            objects::remove_domain(handle)?;
            match ended {
                // Others are inside: they end when they leave, and nothing more runs.
                Ok(()) | Err(DomainError::Busy { .. }) => Ok(0),
                Err(e) => Err(e.into()),
            }
        },
    )
}

/// See the header. One handle serves both.
#[unsafe(no_mangle)]
pub extern "C" fn rf_dldomain(handle: *mut c_void) -> *mut c_void {
    border(|_| ptr::null_mut(), || objects::domain(handle).map(|_| handle))
}

/// See the header.
///
/// # Safety
/// `name` is null or a string; `function` obeys the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_dlprovide(name: *const c_char, function: *const c_void) -> Status {
    status(|| {
        // SAFETY: the caller's promise.
        caller::provide(unsafe { text(name, "name") }?, function)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_dlprovide_policy(handle: *const c_void) -> Status {
    status(|| policy::provide(handle))
}
