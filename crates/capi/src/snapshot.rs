//! Snapshots: the state that new domains start from.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

use ringfence::{Domain, Snapshot};

use crate::arguments::{Place, bad_handle, full, pointer};
use crate::error::status;
use crate::handles::Table;
use crate::objects;
use crate::options::{Options, read_options};
use crate::recipe::{Made, Recipe};
use crate::status::{Failure, Status};

static SNAPSHOTS: Table<Arc<SnapshotObject>> = Table::new(0x5A7);

/// A snapshot, and how domains of it are made.
pub(crate) struct SnapshotObject {
    snapshot: Snapshot,
    recipe: Recipe,
}

pub(crate) fn snapshot(handle: *const c_void) -> Result<Arc<SnapshotObject>, Failure> {
    SNAPSHOTS
        .get(handle as u64)
        .map_err(|_| bad_handle("snapshot", handle))
}

type Init = unsafe extern "C" fn(domain: *mut c_void, context: *mut c_void) -> i32;

/// See the header.
///
/// # Safety
/// `options` is null or valid as the header says, `snapshot` null or writable; `init` obeys the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_snapshot_create(
    module: *mut c_void,
    options: *const Options,
    init: Option<Init>,
    context: *mut c_void,
    snapshot: *mut *mut c_void,
) -> Status {
    status(|| {
        // SAFETY: the caller's promise.
        let snapshot = unsafe { Place::new(snapshot, "snapshot") }?;
        let init = init.ok_or_else(|| Failure::new(Status::ERROR_ARGUMENT, "init is NULL"))?;
        // SAFETY: the caller's promise.
        let recipe = unsafe { Recipe::read(objects::module(module)?, &read_options(options)?) }?;
        let made = take(&recipe, |handle| {
            // SAFETY: the header says what it is.
            unsafe { init(handle, context) }
        })?;
        let object = Arc::new(SnapshotObject {
            snapshot: made,
            recipe,
        });
        let handle = SNAPSHOTS.insert(object).map_err(|_| full("snapshot"))?;
        snapshot.give(pointer(handle));
        Ok(())
    })
}

fn take(recipe: &Recipe, init: impl Fn(*mut c_void) -> i32) -> Result<Snapshot, Failure> {
    // The two domains get handles while they are initialised; what keeps their callbacks going waits here meanwhile.
    let waiting: Mutex<BTreeMap<u64, Made>> = Mutex::default();
    let failed: Mutex<Option<Failure>> = Mutex::default();
    let keep = |failure: Failure| {
        let text = failure.to_string();
        *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
        text
    };
    let make = || {
        let made = recipe.make().map_err(|failure| {
            let message = keep(failure);
            ringfence::DomainError::Layout { reason: message }
        })?;
        let domain = made.domain.clone();
        waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(domain.memory().base(), made);
        Ok(domain)
    };
    let run = |domain: &Domain| -> Result<(), String> {
        let made = waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&domain.memory().base())
            .ok_or("a domain that was not made here")?;
        let handle = objects::publish(made, None).map_err(keep)?;
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

impl SnapshotObject {
    /// A new domain in its state.
    pub(crate) fn make(&self) -> Result<Made, Failure> {
        let (imports, policy, late) = self.recipe.imports()?;
        Ok(Made {
            domain: self.snapshot.instantiate(imports)?,
            module: Some(self.recipe.module.clone()),
            policy,
            late,
        })
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_snapshot_destroy(handle: *mut c_void) -> Status {
    status(|| objects::remove(&SNAPSHOTS, handle, "snapshot"))
}
