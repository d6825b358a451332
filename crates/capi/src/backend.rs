//! What keeps domains from the host.

use std::ffi::{c_int, c_void};
use std::ptr;

use ringfence::{Backend, Feature};

use crate::arguments::not_null;
use crate::error::{fail, status};
use crate::objects;
use crate::status::{Failure, Status};

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_backend_offers(backend: c_int, feature: c_int) -> c_int {
    let at = |n: c_int| usize::try_from(n).unwrap_or(usize::MAX);
    match (Backend::ALL.get(at(backend)), Feature::ALL.get(at(feature))) {
        (Some(backend), Some(&feature)) => backend.offers(feature).into(),
        _ => {
            let message = format!("there is no back end {backend}, or no feature {feature}");
            fail(Failure::new(Status::ERROR_ARGUMENT, message));
            -1
        }
    }
}

/// `rf_confinement` of the header.
#[repr(C)]
pub struct ConfinementInfo {
    size: usize,
    system_calls: u32,
    namespaces: u32,
    landlock: u32,
    reserved: u32,
}

/// See the header.
///
/// # Safety
/// `confinement` is null or as long as its size says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_domain_confinement(
    domain: *mut c_void,
    confinement: *mut ConfinementInfo,
) -> Status {
    status(|| {
        not_null(confinement, "confinement")?;
        let object = objects::domain(domain)?;
        // SAFETY: not null; the size comes first in every version.
        let size = unsafe { (&raw const (*confinement).size).read() };
        if size < size_of::<usize>() || size > 4096 {
            let message = format!("rf_confinement.size is {size}; set it through RF_CONFINEMENT_INIT");
            return Err(Failure::new(Status::ERROR_ARGUMENT, message));
        }
        let held = object.domain.confinement()?;
        let all = ConfinementInfo {
            size,
            system_calls: held.system_calls.into(),
            namespaces: held.namespaces.into(),
            landlock: held.landlock.into(),
            reserved: 0,
        };
        let known = size.min(size_of::<ConfinementInfo>());
        // SAFETY: both have `known` bytes; the struct is plain numbers.
        unsafe { ptr::copy_nonoverlapping((&raw const all).cast::<u8>(), confinement.cast::<u8>(), known) };
        Ok(())
    })
}
