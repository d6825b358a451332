//! Pools: clean domains, handed out and taken back.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ringfence::Pool;

use crate::arguments::{Place, bad_handle, full, pointer};
use crate::error::status;
use crate::handles::Table;
use crate::objects;
use crate::options::{Options, read_options};
use crate::recipe::{Made, Recipe};
use crate::snapshot::snapshot;
use crate::status::{Failure, Status};

static POOLS: Table<Arc<PoolObject>> = Table::new(0x5A8);

/// A pool, and the number by which its domains know it.
struct PoolObject {
    pool: Pool<Made, Failure>,
    number: u64,
}

fn pool(handle: *const c_void) -> Result<Arc<PoolObject>, Failure> {
    POOLS.get(handle as u64).map_err(|_| bad_handle("pool", handle))
}

/// Makes a pool and its handle.
///
/// # Safety
/// `to` is null or writable.
unsafe fn new_pool<F>(
    most: usize,
    to: *mut *mut c_void,
    source: impl FnOnce() -> Result<F, Failure>,
) -> Result<(), Failure>
where
    F: Fn() -> Result<Made, Failure> + Send + Sync + 'static,
{
    static NEXT: AtomicU64 = AtomicU64::new(0);
    // SAFETY: the caller's promise.
    let to = unsafe { Place::new(to, "pool") }?;
    let object = Arc::new(PoolObject {
        pool: Pool::new(most, source()?),
        number: NEXT.fetch_add(1, Ordering::Relaxed),
    });
    let handle = POOLS.insert(object).map_err(|_| full("pool"))?;
    to.give(pointer(handle));
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
            Ok(move || recipe.make())
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
    status(|| {
        let source = || {
            let snapshot = snapshot(handle)?;
            Ok(move || snapshot.make())
        };
        // SAFETY: the caller's promise.
        unsafe { new_pool(most, pool, source) }
    })
}

/// See the header.
///
/// # Safety
/// `domain` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_pool_take(handle: *mut c_void, domain: *mut *mut c_void) -> Status {
    status(|| {
        // SAFETY: the caller's promise.
        let domain = unsafe { Place::new(domain, "domain") }?;
        let object = pool(handle)?;
        let taken = objects::publish(object.pool.take_out()?, Some(object.number))?;
        domain.give(taken);
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_pool_give(handle: *mut c_void, domain: *mut c_void) -> Status {
    status(|| {
        let object = pool(handle)?;
        if objects::domain(domain)?.pool != Some(object.number) {
            return Err(Failure::new(
                Status::ERROR_ARGUMENT,
                "the domain was not taken from this pool",
            ));
        }
        // Somebody who calls it at this moment keeps it: then it goes when that ends.
        if let Some(made) = objects::withdraw(domain)? {
            object.pool.give(made);
        }
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_pool_destroy(handle: *mut c_void) -> Status {
    status(|| objects::remove(&POOLS, handle, "pool"))
}
