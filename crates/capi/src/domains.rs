//! Modules and domains: making, ending, resetting, limits; and the trio that feels like the dynamic linker.

use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::Weak;
use std::time::Duration;

use ringfence_runtime::{DomainError, DomainOptions, LimitHit, Module, OnLimit, Signature};

use crate::error::{Failure, Info, Status, border, clear, pending, status};
use crate::imports::Import;
use crate::objects::{self, load_options, not_null, text};
use crate::prototype::{self, Named};
use crate::recipe::{Recipe, Slot};

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

/// Most bytes of stack arguments that a pointer of `rf_dlsym` passes.
pub(crate) const STACK_ARGS_MAX: usize = 128;

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_error() -> *const Info {
    border(|_| ptr::null(), || Ok(pending()))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_error_clear() {
    clear();
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_status_name(status: Status) -> *const c_char {
    status.name().as_ptr().cast()
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

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
            let (path, options) = unsafe { (objects::path(path)?, read_options(options)?) };
            let module = Module::open(path, &load_options(flags)?)?;
            // SAFETY: the caller's promise.
            let mut recipe = unsafe { Recipe::read(module, &options) }?;
            recipe.provided = true;
            objects::publish(recipe.make()?, Weak::new())
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
            match (object.domain.entry(name), signature) {
                (Ok(entry), Some(signature)) => Ok(entry.thunk(signature).cast_mut()),
                (Ok(_), None) => Err(prototype::no_type(
                    name,
                    &format!(
                        "write RF_DLSYM(handle, int, {name}, (int, int)) or rf_dlsym(handle, \"int {name}(int, int)\"), \
                         with the types that it has"
                    ),
                )),
                (Err(DomainError::NotFunction { .. }), None) if object.domain.symbol(name).is_some() => {
                    Ok(objects::pointer(object.domain.symbol(name).unwrap_or(0)))
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
        let path = unsafe { objects::path(path) }?;
        let opened = objects::add_module(Module::open(path, &load_options(flags)?)?)?;
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
        not_null(domain, "domain")?;
        // SAFETY: not null, so writable.
        unsafe { *domain = ptr::null_mut() };
        let module = objects::module(module)?;
        // SAFETY: the caller's promise.
        let options = unsafe { read_options(options) }?;
        // SAFETY: the caller's promise.
        let recipe = unsafe { Recipe::read(module, &options) }?;
        let made = objects::publish(recipe.make()?, Weak::new())?;
        // SAFETY: not null, so writable.
        unsafe { *domain = made };
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
    status(|| {
        objects::domain(domain)?.domain.interrupt();
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_domain_set_time_limit(domain: *mut c_void, nanoseconds: u64) -> Status {
    status(|| {
        objects::domain(domain)?
            .domain
            .set_time_limit(time_limit(nanoseconds));
        Ok(())
    })
}
