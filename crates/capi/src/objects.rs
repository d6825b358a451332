//! What the handles of modules, domains and functions stand for.

use std::collections::BTreeSet;
use std::ffi::c_void;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use ringfence::dynamic::Function;
use ringfence::{Domain, Module};
use ringfence_functions::Func;

use crate::arguments::{Place, bad_handle, full, number, pointer};
use crate::handles::{LateHandle, Table, Used};
use crate::policy::InForce;
use crate::recipe::Made;
use crate::status::{Failure, Status};

static MODULES: Table<Module> = Table::new(0x5A1);
static DOMAINS: Table<Arc<DomainObject>> = Table::new(0x5A2);
static FUNCTIONS: Table<Arc<FunctionObject>> = Table::new(0x5A3);

/// A domain and what hangs on its handle.
pub(crate) struct DomainObject {
    pub(crate) domain: Domain,
    pub(crate) module: Option<Module>,
    /// What answers its system calls, if it was made with one.
    policy: Option<InForce>,
    /// Handles of its functions, to be closed with it. `None` once it is closed.
    functions: Mutex<Option<BTreeSet<u64>>>,
    late: LateHandle,
    /// The number of the pool that it was taken from.
    pub(crate) pool: Option<u64>,
}

impl DomainObject {
    /// The policy that it was made with; `what` needs one.
    pub(crate) fn policy(&self, what: &str) -> Result<&InForce, Failure> {
        self.policy.as_ref().ok_or_else(|| {
            let message = format!("{what}: the domain was made without a policy (rf_domain_options.policy)");
            Failure::new(Status::ERROR_ARGUMENT, message)
        })
    }
}

/// A function of a domain, behind its handle.
pub(crate) struct FunctionObject {
    pub(crate) function: Callee,
    domain: Weak<DomainObject>,
}

/// What a function's handle calls.
pub(crate) enum Callee {
    /// An export or an address, whose type the program claims.
    Entry(Function),
    /// A function of a runtime, whose type is known.
    Text(Func),
}

impl Callee {
    /// The function without its type.
    pub(crate) fn entry(&self) -> Result<Function, Failure> {
        match self {
            Callee::Entry(function) => Ok(function.clone()),
            Callee::Text(func) => Ok(func.target()?),
        }
    }
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

/// The domain on whose behalf something is asked for; `None`, for NULL, is the host itself.
pub(crate) fn actor(handle: *const c_void) -> Result<Option<Arc<DomainObject>>, Failure> {
    (!handle.is_null()).then(|| domain(handle)).transpose()
}

/// Gives a value a handle, in a table of `what`s.
pub(crate) fn hand_out<T: Clone>(
    table: &'static Table<T>,
    value: T,
    what: &str,
    to: &Place,
) -> Result<(), Failure> {
    to.give(pointer(table.insert(value).map_err(|_| full(what))?));
    Ok(())
}

/// Takes a value's handle back; NULL has none.
pub(crate) fn remove<T: Clone>(
    table: &'static Table<T>,
    handle: *const c_void,
    what: &str,
) -> Result<(), Failure> {
    if handle.is_null() {
        return Ok(());
    }
    let removed = table.remove(number(handle));
    removed.map(drop).map_err(|_| bad_handle(what, handle))
}

/// Gives a domain a handle.
pub(crate) fn publish(made: Made, pool: Option<u64>) -> Result<*mut c_void, Failure> {
    let (tag, late) = (made.domain.clone(), made.late.clone());
    let object = Arc::new(DomainObject {
        domain: made.domain,
        module: made.module,
        policy: made.policy,
        functions: Mutex::new(Some(BTreeSet::new())),
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

pub(crate) fn function(handle: *const c_void) -> Result<Used<Arc<FunctionObject>>, Failure> {
    FUNCTIONS
        .used(number(handle))
        .map_err(|_| bad_handle("function", handle))
}

pub(crate) fn add_function(domain: &Arc<DomainObject>, function: Callee) -> Result<*mut c_void, Failure> {
    let mut functions = domain.functions.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(functions) = functions.as_mut() else {
        return Err(Failure::new(
            Status::ERROR_HANDLE,
            "the domain was closed meanwhile",
        ));
    };
    let object = Arc::new(FunctionObject {
        function,
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
