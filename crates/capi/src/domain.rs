//! Domains: making, ending, calling by name, control, and what comes and goes while they live.

use std::ffi::{c_char, c_void};
use std::ptr;
use std::time::Duration;

use ringfence::{CallError, DomainError, ExportKind};

use crate::arguments::{Place, not_null, pointer, text};
use crate::error::{border, clear, status};
use crate::function::{Value, call};
use crate::objects;
use crate::options::{Options, read_options};
use crate::recipe::Recipe;
use crate::snapshot::snapshot;
use crate::status::{Failure, Status};

/// `rf_usage` of the header.
#[repr(C)]
pub struct UsageInfo {
    size: usize,
    memory: u64,
    code: u64,
    calls: u64,
    faults: u64,
    processor_time: u64,
    descriptors: u64,
    resets: u64,
    lanes: u32,
    active: u32,
    modules: u64,
    disk: u64,
    blocked: u32,
    reserved: u32,
}

/// See the header.
///
/// # Safety
/// `options` is null or valid as the header says, `domain` null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_domain_create(
    module: *mut c_void,
    options: *const Options,
    domain: *mut *mut c_void,
) -> Status {
    status(|| {
        // SAFETY: the caller's promise.
        let domain = unsafe { Place::new(domain, "domain") }?;
        let module = objects::module(module)?;
        // SAFETY: the caller's promise.
        let options = unsafe { read_options(options) }?;
        // SAFETY: the caller's promise.
        let recipe = unsafe { Recipe::read(module, &options) }?;
        let made = objects::publish(recipe.make()?, None)?;
        domain.give(made);
        Ok(())
    })
}

fn time_limit(nanoseconds: u64) -> Option<Duration> {
    (nanoseconds > 0).then(|| Duration::from_nanos(nanoseconds))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_domain_destroy(domain: *mut c_void) -> Status {
    status(|| {
        if domain.is_null() {
            Ok(())
        } else {
            objects::remove_domain(domain)
        }
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_domain_state(domain: *mut c_void) -> Status {
    match objects::domain(domain) {
        Err(_) => Status::ERROR_HANDLE,
        Ok(object) if object.domain.faulted() => Status::ERROR_FAULTED,
        Ok(_) => Status::OK,
    }
}

/// See the header.
///
/// # Safety
/// `usage` is null or as long as its size says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_domain_usage(domain: *mut c_void, usage: *mut UsageInfo) -> Status {
    status(|| {
        not_null(usage, "usage")?;
        let object = objects::domain(domain)?;
        // SAFETY: not null; the size comes first in every version.
        let size = unsafe { (&raw const (*usage).size).read() };
        if size < size_of::<usize>() || size > 4096 {
            let message = format!("rf_usage.size is {size}; set it through RF_USAGE_INIT");
            return Err(Failure::new(Status::ERROR_ARGUMENT, message));
        }
        let u = object.domain.usage();
        let all = UsageInfo {
            size,
            memory: u.memory,
            code: u.code,
            calls: u.calls,
            faults: u.faults,
            processor_time: u64::try_from(u.processor_time.as_nanos()).unwrap_or(u64::MAX),
            descriptors: u.descriptors,
            resets: u.resets,
            lanes: u.lanes,
            active: u.active,
            modules: u.modules,
            disk: u.disk,
            blocked: u.blocked,
            reserved: 0,
        };
        let known = size.min(size_of::<UsageInfo>());
        // SAFETY: both have `known` bytes; the struct is plain numbers.
        unsafe { ptr::copy_nonoverlapping((&raw const all).cast::<u8>(), usage.cast::<u8>(), known) };
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_domain_reset(domain: *mut c_void) -> Status {
    status(|| {
        objects::domain(domain)?.domain.reset()?;
        clear();
        Ok(())
    })
}

/// See the header.
///
/// # Safety
/// `count` is null or points to a `size_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_domain_trim(domain: *mut c_void, count: *mut usize) -> Status {
    status(|| {
        let given_back = objects::domain(domain)?
            .domain
            .trim()
            .map_err(DomainError::Host)?;
        if !count.is_null() {
            // SAFETY: the caller's promise.
            unsafe { count.write(given_back) };
        }
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_domain_interrupt(domain: *mut c_void) -> Status {
    status(|| Ok(objects::domain(domain)?.domain.interrupt()?))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_domain_set_time_limit(domain: *mut c_void, nanoseconds: u64) -> Status {
    status(|| {
        objects::domain(domain)?
            .domain
            .set_time_limit(time_limit(nanoseconds))?;
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_domain_pause_time(domain: *mut c_void) -> Status {
    status(|| Ok(objects::domain(domain)?.domain.pause_time()?))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_domain_resume_time(domain: *mut c_void) -> Status {
    status(|| Ok(objects::domain(domain)?.domain.resume_time()?))
}

/// See the header.
///
/// # Safety
/// `domain` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_domain_create_from_snapshot(
    handle: *mut c_void,
    domain: *mut *mut c_void,
) -> Status {
    status(|| {
        // SAFETY: the caller's promise.
        let domain = unsafe { Place::new(domain, "domain") }?;
        let made = objects::publish(snapshot(handle)?.make()?, None)?;
        domain.give(made);
        Ok(())
    })
}

/// What the domain's arena knows of an access that was denied, or of a block that was freed in error.
fn report(domain: usize, error: &CallError) -> Option<String> {
    let object = objects::domain(domain as *mut c_void).ok()?;
    object.domain.explain_words(error, None)
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
        let function = object.domain.function(name)?;
        // SAFETY: the caller's promise.
        let called = unsafe { call(&function, arguments, count, result) };
        called.map_err(|failure| failure.of(domain as usize, report))
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
        let function = object.domain.function_at(address as u64)?;
        // SAFETY: the caller's promise.
        unsafe { call(&function, arguments, count, result) }
    })
}

/// See the header.
///
/// # Safety
/// `exit_status` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_domain_run_program(domain: *mut c_void, exit_status: *mut i32) -> Status {
    status(|| {
        let object = objects::domain(domain)?;
        let policy = object.policy("running a program")?;
        let result = object.domain.run_program(&policy.monitor)?;
        if !exit_status.is_null() {
            // SAFETY: not null, so writable.
            unsafe { *exit_status = result };
        }
        Ok(())
    })
}

/// See the header.
///
/// # Safety
/// `to` is null or has room for `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_domain_take_captured(
    domain: *mut c_void,
    number: i32,
    to: *mut c_void,
    capacity: usize,
) -> usize {
    border(
        |_| 0,
        || {
            let object = objects::domain(domain)?;
            let buffer = object.policy("captured output")?.captured(number)?;
            if capacity == 0 {
                return Ok(0);
            }
            not_null(to, "to")?;
            let bytes = buffer.take_first(capacity);
            // SAFETY: the caller's promise; not more than `capacity` were taken.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast::<u8>(), bytes.len()) };
            Ok(bytes.len())
        },
    )
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_domain_checkpoint(domain: *mut c_void) -> Status {
    status(|| Ok(objects::domain(domain)?.domain.checkpoint()?))
}

/// See the header.
///
/// # Safety
/// `slot` and `function` are null or strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_domain_grant(
    domain: *mut c_void,
    slot: *const c_char,
    callee: *mut c_void,
    function: *const c_char,
) -> Status {
    status(|| {
        let (domain, callee) = (objects::domain(domain)?, objects::domain(callee)?);
        // SAFETY: the caller's promise.
        let (slot, function) = unsafe { (text(slot, "slot")?, text(function, "function")?) };
        domain.domain.grant(slot, &callee.domain, function)?;
        Ok(())
    })
}

/// See the header.
///
/// # Safety
/// `slot` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_domain_revoke(domain: *mut c_void, slot: *const c_char) -> Status {
    status(|| {
        let domain = objects::domain(domain)?;
        // SAFETY: the caller's promise.
        domain.domain.revoke(unsafe { text(slot, "slot") }?)?;
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_domain_revoke_all(callee: *mut c_void) -> Status {
    status(|| {
        objects::domain(callee)?.domain.revoke_all();
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
        Ok(object.domain.add_module(name, &objects::module(module)?)?)
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
        Ok(object.domain.remove_module(name)?)
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
    border(
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
            let found = object.domain.symbol(module, name);
            let none = || Failure::new(Status::ERROR_NO_OBJECT, format!("there is no {name:?}"));
            found.map(pointer).ok_or_else(none)
        },
    )
}

/// See the header.
///
/// # Safety
/// `name` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_import_address(domain: *mut c_void, name: *const c_char) -> *mut c_void {
    border(
        |_| ptr::null_mut(),
        || {
            let object = objects::domain(domain)?;
            // SAFETY: the caller's promise.
            let name = unsafe { text(name, "name") }?;
            let found = object.domain.import_address(name).map_err(|e| match e {
                DomainError::NoExport { .. } => {
                    let message = format!("the domain was given no host function {name:?}");
                    Failure::new(Status::ERROR_NO_FUNCTION, message)
                }
                e => e.into(),
            })?;
            Ok(pointer(found.address()))
        },
    )
}

/// See the header.
///
/// # Safety
/// `name` is null or a string, `size` null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_domain_find_object(
    domain: *mut c_void,
    name: *const c_char,
    size: *mut usize,
) -> *mut c_void {
    border(
        |_| ptr::null_mut(),
        || {
            let object = objects::domain(domain)?;
            // SAFETY: the caller's promise.
            let name = unsafe { text(name, "name") }?;
            let exports = object.module.as_ref().map_or(&[][..], |m| m.exports());
            let export = exports
                .iter()
                .find(|e| e.name == name && e.kind == ExportKind::Object);
            let (Some(export), Some(address)) = (export, object.domain.symbol(None, name)) else {
                return Err(Failure::new(
                    Status::ERROR_NO_OBJECT,
                    format!("the module exports no object {name:?}"),
                ));
            };
            if !size.is_null() {
                // SAFETY: not null, so writable.
                unsafe { *size = export.size as usize };
            }
            Ok(pointer(address))
        },
    )
}
