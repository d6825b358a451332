//! Runtimes: functions that come as text.

use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::Arc;

use ringfence::DomainOptions;
use ringfence_functions::{BuiltIns, Func, FunctionError, Runtime, compile};

use crate::arguments::{Place, bad_handle, full, not_null, number, pointer, text};
use crate::caller::{Callback, Context, call_back};
use crate::error::{border, status};
use crate::handles::{LateHandle, Table};
use crate::objects::{self, Callee};
use crate::options::{Options, read_options};
use crate::recipe::{Made, numbers};
use crate::status::{Failure, Status};

static RUNTIMES: Table<Arc<RuntimeObject>> = Table::new(0x5A9);

/// A runtime, and the handle of its domain.
struct RuntimeObject {
    runtime: Runtime,
    domain: u64,
}

/// `rf_built_in` of the header.
#[repr(C)]
pub struct BuiltIn {
    declaration: *const c_char,
    callback: Option<Callback>,
    context: *mut c_void,
}

fn runtime(handle: *const c_void) -> Result<Arc<RuntimeObject>, Failure> {
    RUNTIMES
        .get(number(handle))
        .map_err(|_| bad_handle("runtime", handle))
}

/// # Safety
/// `list` is null or has `count` functions as the header says.
unsafe fn built_ins(list: *const BuiltIn, count: usize, late: &LateHandle) -> Result<BuiltIns, Failure> {
    if count > 0 {
        not_null(list, "built_ins")?;
    }
    let mut all = BuiltIns::new();
    for i in 0..count {
        // SAFETY: the caller's promise.
        let one = unsafe { &*list.add(i) };
        // SAFETY: the caller's promise.
        let declaration = unsafe { text(one.declaration, "the declaration of a built-in function") }?;
        let Some(callback) = one.callback else {
            let message = format!("{declaration}: callback is NULL");
            return Err(Failure::new(Status::ERROR_ARGUMENT, message));
        };
        let (late, context) = (late.clone(), Context(one.context));
        all = all.dynamic(declaration, move |frame| {
            call_back(callback, &context, &late, frame)
        })?;
    }
    Ok(all)
}

/// What a runtime takes of a domain's options.
fn limits(options: &Options) -> Result<DomainOptions, Failure> {
    if options.has_more_than_numbers() {
        return Err(Failure::new(
            Status::ERROR_ARGUMENT,
            "a runtime takes limits and sizes of rf_domain_options only: no imports, slots, policy and on_limit",
        ));
    }
    numbers(options)
}

/// See the header.
///
/// # Safety
/// `built_ins` is null or has `count` functions, `options` null or valid, both as the header says; `runtime` null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_runtime_create(
    list: *const BuiltIn,
    count: usize,
    options: *const Options,
    to: *mut *mut c_void,
) -> Status {
    status(|| {
        // SAFETY: the caller's promise.
        let to = unsafe { Place::new(to, "runtime") }?;
        // SAFETY: the caller's promise.
        let options = limits(&unsafe { read_options(options) }?)?;
        let late = LateHandle::default();
        // SAFETY: the caller's promise.
        let runtime = Runtime::new(unsafe { built_ins(list, count, &late) }?, &options)?;
        let made = Made {
            domain: runtime.domain().clone(),
            module: None,
            policy: None,
            late,
        };
        let domain = objects::publish(made, None)?;
        let object = RuntimeObject {
            runtime,
            domain: number(domain),
        };
        match RUNTIMES.insert(Arc::new(object)) {
            Ok(handle) => {
                to.give(pointer(handle));
                Ok(())
            }
            Err(_) => {
                let _ = objects::remove_domain(domain);
                Err(full("runtime"))
            }
        }
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_runtime_destroy(handle: *mut c_void) -> Status {
    status(|| {
        if handle.is_null() {
            return Ok(());
        }
        let removed = RUNTIMES.remove(number(handle));
        let object = removed.map_err(|_| bad_handle("runtime", handle))?;
        // The program may have ended that one by itself.
        let _ = objects::remove_domain(pointer(object.domain));
        Ok(())
    })
}

/// Does something with a function's name, and gives the function a handle if the program wants one.
///
/// # Safety
/// `name` is null or a string, `function` null or writable.
unsafe fn with_function(
    handle: *mut c_void,
    name: *const c_char,
    function: *mut *mut c_void,
    act: impl FnOnce(&Runtime, &str) -> Result<Func, FunctionError>,
) -> Result<(), Failure> {
    // SAFETY: the caller's promise.
    let place = (!function.is_null()).then(|| unsafe { Place::new(function, "function") });
    let place = place.transpose()?;
    let object = runtime(handle)?;
    // SAFETY: the caller's promise.
    let func = act(&object.runtime, unsafe { text(name, "name") }?)?;
    if let Some(place) = place {
        let domain = objects::domain(pointer(object.domain))?;
        place.give(objects::add_function(&domain, Callee::Text(func))?);
    }
    Ok(())
}

/// See the header.
///
/// # Safety
/// `name` and `source` are null or strings, `function` null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_runtime_create_function(
    handle: *mut c_void,
    name: *const c_char,
    source: *const c_char,
    function: *mut *mut c_void,
) -> Status {
    // SAFETY: the caller's promise.
    status(|| unsafe {
        let source = text(source, "text")?;
        with_function(handle, name, function, |r, name| r.create(name, source))
    })
}

/// See the header.
///
/// # Safety
/// `name` and `source` are null or strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_runtime_replace_function(
    handle: *mut c_void,
    name: *const c_char,
    source: *const c_char,
) -> Status {
    // SAFETY: the caller's promise.
    status(|| unsafe {
        let source = text(source, "text")?;
        with_function(handle, name, ptr::null_mut(), |r, name| r.replace(name, source))
    })
}

/// # Safety
/// `object` is null or has `size` bytes, which stay as they are while the result is used.
unsafe fn object_code<'a>(object: *const c_void, size: usize) -> Result<&'a [u8], Failure> {
    not_null(object, "object")?;
    if isize::try_from(size).is_err() {
        let message = "size is larger than anything in memory";
        return Err(Failure::new(Status::ERROR_ARGUMENT, message));
    }
    // SAFETY: not null; the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(object.cast(), size) })
}

/// See the header.
///
/// # Safety
/// `source` is null or a string, `object` null or `capacity` writable bytes, `size` null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_runtime_compile(
    source: *const c_char,
    object: *mut c_void,
    capacity: usize,
    size: *mut usize,
) -> Status {
    status(|| {
        not_null(size, "size")?;
        // SAFETY: not null, so writable.
        unsafe { *size = 0 };
        // SAFETY: the caller's promise.
        let compiled = compile(unsafe { text(source, "text") }?).map_err(FunctionError::Text)?;
        let bytes = compiled.object();
        // SAFETY: not null, so writable.
        unsafe { *size = bytes.len() };
        if object.is_null() && capacity == 0 {
            return Ok(());
        }
        not_null(object, "object")?;
        if bytes.len() > capacity {
            let message = format!(
                "the object code has {} bytes, capacity is {capacity}",
                bytes.len()
            );
            return Err(Failure::new(Status::ERROR_TOO_LONG, message));
        }
        // SAFETY: there is room for `capacity` bytes, and these are not more.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), object.cast(), bytes.len()) };
        Ok(())
    })
}

/// See the header.
///
/// # Safety
/// `name` is null or a string, `object` null or `size` bytes, `function` null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_runtime_create_object(
    handle: *mut c_void,
    name: *const c_char,
    object: *const c_void,
    size: usize,
    function: *mut *mut c_void,
) -> Status {
    // SAFETY: the caller's promise.
    status(|| unsafe {
        let object = object_code(object, size)?;
        with_function(handle, name, function, |r, name| r.create_object(name, object))
    })
}

/// See the header.
///
/// # Safety
/// `name` is null or a string, `object` null or `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_runtime_replace_object(
    handle: *mut c_void,
    name: *const c_char,
    object: *const c_void,
    size: usize,
) -> Status {
    // SAFETY: the caller's promise.
    status(|| unsafe {
        let object = object_code(object, size)?;
        with_function(handle, name, ptr::null_mut(), |r, name| {
            r.replace_object(name, object)
        })
    })
}

/// See the header.
///
/// # Safety
/// `name` is null or a string, `function` null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_runtime_lookup_function(
    handle: *mut c_void,
    name: *const c_char,
    function: *mut *mut c_void,
) -> Status {
    // SAFETY: the caller's promise.
    status(|| unsafe {
        not_null(function, "function")?;
        with_function(handle, name, function, Runtime::lookup)
    })
}

/// See the header.
///
/// # Safety
/// `name` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_runtime_delete_function(handle: *mut c_void, name: *const c_char) -> Status {
    status(|| {
        let object = runtime(handle)?;
        // SAFETY: the caller's promise.
        object.runtime.delete(unsafe { text(name, "name") }?)?;
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_runtime_reset(handle: *mut c_void) -> Status {
    status(|| Ok(runtime(handle)?.runtime.reset()?))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_runtime_domain(handle: *mut c_void) -> *mut c_void {
    border(|_| ptr::null_mut(), || Ok(pointer(runtime(handle)?.domain)))
}
