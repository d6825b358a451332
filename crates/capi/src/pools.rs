//! Links between domains, snapshots, images and pools.

use std::collections::HashMap;
use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use ringfence_runtime::{Domain, GrantError, Snapshot, SnapshotError};

use crate::domains::{Options, read_options};
use crate::error::{Failure, Status, status};
use crate::handles::Table;
use crate::objects::{self, not_null, pointer, text};
use crate::recipe::{Made, Recipe, Shared};

static IMAGES: Table<Arc<ImageObject>> = Table::new(0x5A7);
static POOLS: Table<Arc<PoolObject>> = Table::new(0x5A8);

/// An image, and how domains of it are made.
struct ImageObject {
    image: Snapshot,
    recipe: Shared,
}

/// Where a pool's domains come from.
enum Source {
    Recipe(Shared),
    Image(Arc<ImageObject>),
}

/// A pool.
pub(crate) struct PoolObject {
    source: Source,
    most: usize,
    idle: Mutex<Vec<Made>>,
}

impl From<GrantError> for Failure {
    fn from(e: GrantError) -> Self {
        let status = match &e {
            GrantError::NoSlot { .. } => Status::ERROR_IMPORT,
            GrantError::StackArguments { .. } => Status::ERROR_ARGUMENT,
            _ => Status::ERROR_LIMIT,
        };
        Failure::new(status, e.to_string())
    }
}

impl From<SnapshotError> for Failure {
    fn from(e: SnapshotError) -> Self {
        let status = match e {
            SnapshotError::Domain(e) => return e.into(),
            SnapshotError::Faulted => Status::ERROR_FAULTED,
            SnapshotError::Host(_) => Status::ERROR_LIMIT,
            SnapshotError::Imports { .. } => Status::ERROR_IMPORT,
            _ => Status::ERROR_SNAPSHOT,
        };
        Failure::new(status, e.to_string())
    }
}

fn image(handle: *const c_void) -> Result<Arc<ImageObject>, Failure> {
    IMAGES
        .get(handle as u64)
        .map_err(|_| objects::bad_handle("image", handle))
}

fn pool(handle: *const c_void) -> Result<Arc<PoolObject>, Failure> {
    POOLS
        .get(handle as u64)
        .map_err(|_| objects::bad_handle("pool", handle))
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
        domain.domain.grant(slot, &callee.domain.entry(function)?)?;
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
#[unsafe(no_mangle)]
pub extern "C" fn rf_domain_checkpoint(domain: *mut c_void) -> Status {
    status(|| Ok(objects::domain(domain)?.domain.checkpoint()?))
}

type Init = unsafe extern "C" fn(domain: *mut c_void, context: *mut c_void) -> i32;

/// See the header.
///
/// # Safety
/// `options` is null or valid as the header says, `image` null or writable; `init` obeys the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_snapshot_create(
    module: *mut c_void,
    options: *const Options,
    init: Option<Init>,
    context: *mut c_void,
    image: *mut *mut c_void,
) -> Status {
    status(|| {
        not_null(image, "image")?;
        // SAFETY: not null, so writable.
        unsafe { *image = ptr::null_mut() };
        let init = init.ok_or_else(|| Failure::new(Status::ERROR_ARGUMENT, "init is NULL"))?;
        // SAFETY: the caller's promise.
        let recipe = unsafe { Recipe::read(objects::module(module)?, &read_options(options)?) }?;
        let made = make_image(&recipe, |handle| {
            // SAFETY: the header says what it is.
            unsafe { init(handle, context) }
        })?;
        let object = Arc::new(ImageObject {
            image: made,
            recipe: Arc::new(recipe),
        });
        let handle = IMAGES.insert(object).map_err(|_| objects::full("image"))?;
        // SAFETY: not null, so writable.
        unsafe { *image = pointer(handle) };
        Ok(())
    })
}

fn make_image(recipe: &Recipe, init: impl Fn(*mut c_void) -> i32) -> Result<Snapshot, Failure> {
    // The two domains get handles while they are initialised; what keeps their callbacks going waits here meanwhile.
    let waiting: Mutex<HashMap<u64, Made>> = Mutex::default();
    let failed: Mutex<Option<Failure>> = Mutex::default();
    let keep = |failure: Failure| {
        let text = failure.to_string();
        *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
        text
    };
    let make = || {
        let made = recipe.make().map_err(|failure| {
            let message = keep(failure);
            ringfence_runtime::DomainError::Layout { reason: message }
        })?;
        let domain = made.domain.clone();
        waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(domain.as_ref().base(), made);
        Ok(domain)
    };
    let run = |domain: &Domain| -> Result<(), String> {
        let made = waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&domain.as_ref().base())
            .ok_or("a domain that was not made here")?;
        let handle = objects::publish(made, Weak::new()).map_err(keep)?;
        let code = init(handle);
        // The program may have destroyed it already.
        let _ = objects::remove_domain(handle);
        match code {
            0 => Ok(()),
            code => Err(format!("init returned {code}")),
        }
    };
    let made = Snapshot::new(make, run);
    let earlier = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    made.map_err(|e| earlier.unwrap_or_else(|| e.into()))
}

impl ImageObject {
    fn make(&self) -> Result<Made, Failure> {
        let (imports, policy, late) = self.recipe.imports()?;
        Ok(Made {
            domain: self.image.instantiate(imports)?,
            module: self.recipe.module.clone(),
            policy,
            late,
        })
    }
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
        not_null(domain, "domain")?;
        // SAFETY: not null, so writable.
        unsafe { *domain = ptr::null_mut() };
        let made = objects::publish(image(handle)?.make()?, Weak::new())?;
        // SAFETY: not null, so writable.
        unsafe { *domain = made };
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_snapshot_destroy(handle: *mut c_void) -> Status {
    status(|| {
        if handle.is_null() {
            return Ok(());
        }
        let removed = IMAGES.remove(handle as u64);
        removed
            .map(drop)
            .map_err(|_| objects::bad_handle("image", handle))
    })
}

/// Makes a pool and its handle.
///
/// # Safety
/// `to` is null or writable.
unsafe fn new_pool(
    most: usize,
    to: *mut *mut c_void,
    source: impl FnOnce() -> Result<Source, Failure>,
) -> Result<(), Failure> {
    not_null(to, "pool")?;
    // SAFETY: not null, so writable.
    unsafe { *to = ptr::null_mut() };
    let object = Arc::new(PoolObject {
        source: source()?,
        most,
        idle: Mutex::default(),
    });
    let handle = POOLS.insert(object).map_err(|_| objects::full("pool"))?;
    // SAFETY: not null, so writable.
    unsafe { *to = pointer(handle) };
    Ok(())
}

/// See the header.
///
/// # Safety
/// `options` is null or valid as the header says, `pool` null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_pool_create(
    module: *mut c_void,
    options: *const Options,
    most: usize,
    pool: *mut *mut c_void,
) -> Status {
    status(|| {
        let source = || {
            let module = objects::module(module)?;
            // SAFETY: the caller's promise.
            let recipe = unsafe { Recipe::read(module, &read_options(options)?) }?;
            Ok(Source::Recipe(Arc::new(recipe)))
        };
        // SAFETY: the caller's promise.
        unsafe { new_pool(most, pool, source) }
    })
}

/// See the header.
///
/// # Safety
/// `pool` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_pool_create_from_snapshot(
    handle: *mut c_void,
    most: usize,
    pool: *mut *mut c_void,
) -> Status {
    // SAFETY: the caller's promise.
    status(|| unsafe { new_pool(most, pool, || Ok(Source::Image(image(handle)?))) })
}

/// See the header.
///
/// # Safety
/// `domain` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_pool_take(handle: *mut c_void, domain: *mut *mut c_void) -> Status {
    status(|| {
        not_null(domain, "domain")?;
        // SAFETY: not null, so writable.
        unsafe { *domain = ptr::null_mut() };
        let pool = pool(handle)?;
        let waiting = pool.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let made = match (waiting, &pool.source) {
            (Some(made), _) => made,
            (None, Source::Recipe(recipe)) => recipe.make()?,
            (None, Source::Image(image)) => image.make()?,
        };
        let taken = objects::publish(made, Arc::downgrade(&pool))?;
        // SAFETY: not null, so writable.
        unsafe { *domain = taken };
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_pool_give(handle: *mut c_void, domain: *mut c_void) -> Status {
    status(|| {
        let pool = pool(handle)?;
        if !objects::domain(domain)?.is_from(&pool) {
            return Err(Failure::new(
                Status::ERROR_ARGUMENT,
                "the domain was not taken from this pool",
            ));
        }
        // Somebody who calls it at this moment keeps it: then it goes when that ends.
        let Some(made) = objects::withdraw(domain)? else {
            return Ok(());
        };
        if !made.domain.is_unique() || made.domain.recycle().is_err() {
            return Ok(());
        }
        if let Some(policy) = &made.policy {
            policy.forget();
        }
        let mut idle = pool.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < pool.most {
            idle.push(made);
        }
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_pool_destroy(handle: *mut c_void) -> Status {
    status(|| {
        if handle.is_null() {
            return Ok(());
        }
        let removed = POOLS.remove(handle as u64);
        removed.map(drop).map_err(|_| objects::bad_handle("pool", handle))
    })
}
