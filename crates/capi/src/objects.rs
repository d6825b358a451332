//! What the handles of the C interface stand for.

use std::collections::HashSet;
use std::ffi::{CStr, OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use ringfence_runtime::{Domain, Entry, LoadOptions, Module};

use crate::error::{Failure, Status};
use crate::handles::Table;
use crate::policy::InForce;
use crate::pools::PoolObject;
use crate::recipe::Made;

static MODULES: Table<Module> = Table::new(0x5A1);
static DOMAINS: Table<Arc<DomainObject>> = Table::new(0x5A2);
static FUNCTIONS: Table<Arc<FunctionObject>> = Table::new(0x5A3);

/// A domain and what hangs on its handle.
pub(crate) struct DomainObject {
    pub(crate) domain: Domain,
    pub(crate) module: Module,
    /// What answers its system calls, if it was made with one.
    pub(crate) policy: Option<InForce>,
    /// Handles of its functions, to be closed with it. `None` once it is closed.
    functions: Mutex<Option<HashSet<u64>>>,
    late: LateHandle,
    /// Where it was taken from.
    pool: Weak<PoolObject>,
}

impl DomainObject {
    pub(crate) fn is_from(&self, pool: &Arc<PoolObject>) -> bool {
        std::ptr::eq(self.pool.as_ptr(), Arc::as_ptr(pool))
    }
}

/// A function of a domain, behind its handle.
pub(crate) struct FunctionObject {
    pub(crate) entry: Entry,
    domain: Weak<DomainObject>,
}

/// The number of a domain's handle, for its imports: known once the domain is made.
pub(crate) type LateHandle = Arc<AtomicU64>;

pub(crate) fn bad_handle(what: &str, handle: *const c_void) -> Failure {
    let reason = if handle.is_null() {
        "NULL is"
    } else {
        "it was closed, or never was"
    };
    Failure::new(Status::ERROR_HANDLE, format!("{handle:?}: {reason} no {what}"))
}

pub(crate) fn full(what: &str) -> Failure {
    Failure::new(Status::ERROR_LIMIT, format!("too many open {what} handles"))
}

fn number(handle: *const c_void) -> u64 {
    handle as usize as u64
}

pub(crate) fn pointer(handle: u64) -> *mut c_void {
    handle as usize as *mut c_void
}

pub(crate) fn module(handle: *const c_void) -> Result<Module, Failure> {
    MODULES
        .get(number(handle))
        .map_err(|_| bad_handle("module", handle))
}

pub(crate) fn add_module(module: Module) -> Result<*mut c_void, Failure> {
    MODULES.insert(module).map(pointer).map_err(|_| full("module"))
}

pub(crate) fn remove_module(handle: *const c_void) -> Result<(), Failure> {
    MODULES
        .remove(number(handle))
        .map(drop)
        .map_err(|_| bad_handle("module", handle))
}

pub(crate) fn domain(handle: *const c_void) -> Result<Arc<DomainObject>, Failure> {
    DOMAINS
        .get(number(handle))
        .map_err(|_| bad_handle("domain", handle))
}

/// Gives a domain a handle.
pub(crate) fn publish(made: Made, pool: Weak<PoolObject>) -> Result<*mut c_void, Failure> {
    let (tag, late) = (made.domain.clone(), made.late.clone());
    let object = Arc::new(DomainObject {
        domain: made.domain,
        module: made.module,
        policy: made.policy,
        functions: Mutex::new(Some(HashSet::new())),
        late: made.late,
        pool,
    });
    let handle = DOMAINS.insert(object).map_err(|_| full("domain"))?;
    tag.set_tag(handle);
    late.store(handle, Ordering::Release);
    Ok(pointer(handle))
}

/// Ends a domain's handle and those of its functions, and gives what is behind it. `None` if another thread uses it at this
/// moment.
pub(crate) fn withdraw(handle: *const c_void) -> Result<Option<Made>, Failure> {
    let object = close_domain(handle)?;
    Ok(Arc::into_inner(object).map(|object| Made {
        domain: object.domain,
        module: object.module,
        policy: object.policy,
        late: object.late,
    }))
}

pub(crate) fn remove_domain(handle: *const c_void) -> Result<(), Failure> {
    close_domain(handle).map(drop)
}

fn close_domain(handle: *const c_void) -> Result<Arc<DomainObject>, Failure> {
    let object = DOMAINS
        .remove(number(handle))
        .map_err(|_| bad_handle("domain", handle))?;
    let functions = object
        .functions
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    for function in functions.into_iter().flatten() {
        let _ = FUNCTIONS.remove(function);
    }
    Ok(object)
}

pub(crate) fn function(handle: *const c_void) -> Result<Arc<FunctionObject>, Failure> {
    FUNCTIONS
        .get(number(handle))
        .map_err(|_| bad_handle("function", handle))
}

pub(crate) fn add_function(domain: &Arc<DomainObject>, entry: Entry) -> Result<*mut c_void, Failure> {
    let mut functions = domain.functions.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(functions) = functions.as_mut() else {
        return Err(Failure::new(
            Status::ERROR_HANDLE,
            "the domain was closed meanwhile",
        ));
    };
    let object = Arc::new(FunctionObject {
        entry,
        domain: Arc::downgrade(domain),
    });
    let handle = FUNCTIONS.insert(object).map_err(|_| full("function"))?;
    functions.insert(handle);
    Ok(pointer(handle))
}

pub(crate) fn remove_function(handle: *const c_void) -> Result<(), Failure> {
    let object = FUNCTIONS
        .remove(number(handle))
        .map_err(|_| bad_handle("function", handle))?;
    if let Some(domain) = object.domain.upgrade()
        && let Some(functions) = domain
            .functions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_mut()
    {
        functions.remove(&number(handle));
    }
    Ok(())
}

/// A C string argument. Messages name it as `what`.
///
/// # Safety
/// `text` is null or a NUL-terminated string that lives as long as the result.
pub(crate) unsafe fn text<'a>(text: *const c_char, what: &str) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(Failure::new(Status::ERROR_ARGUMENT, format!("{what} is NULL")));
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str()
        .map_err(|_| Failure::new(Status::ERROR_ARGUMENT, format!("{what} is not UTF-8")))
}

/// A path argument: any bytes but NUL.
///
/// # Safety
/// As [`text`].
pub(crate) unsafe fn path<'a>(path: *const c_char) -> Result<&'a Path, Failure> {
    if path.is_null() {
        return Err(Failure::new(Status::ERROR_ARGUMENT, "path is NULL"));
    }
    // SAFETY: the caller's promise.
    Ok(Path::new(OsStr::from_bytes(
        unsafe { CStr::from_ptr(path) }.to_bytes(),
    )))
}

/// Checks that an output argument is there.
pub(crate) fn not_null<T>(pointer: *const T, what: &str) -> Result<(), Failure> {
    if pointer.is_null() {
        return Err(Failure::new(Status::ERROR_ARGUMENT, format!("{what} is NULL")));
    }
    Ok(())
}

/// The load options that the flags stand for.
pub(crate) fn load_options(flags: i32) -> Result<LoadOptions, Failure> {
    const INTEGRITY: i32 = 1;
    if flags & !INTEGRITY != 0 {
        return Err(Failure::new(
            Status::ERROR_ARGUMENT,
            format!("unknown flags {:#x}", flags & !INTEGRITY),
        ));
    }
    let mut options = LoadOptions::default();
    options.allow_integrity = flags & INTEGRITY != 0;
    Ok(options)
}
