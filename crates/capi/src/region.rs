//! Memory shared between domains: regions, groups, and who may do what.

use std::ffi::{c_char, c_void};
use std::os::fd::FromRawFd;
use std::ptr;

use ringfence::{Group, Region, Rights, overview};

use crate::arguments::{Place, bad_handle, number, pointer};
use crate::error::{border, status};
use crate::handles::Table;
use crate::objects;
use crate::status::{Failure, Status};

static REGIONS: Table<Region> = Table::new(0x5A4);
static GROUPS: Table<Group> = Table::new(0x5A5);

fn region(handle: *const c_void) -> Result<Region, Failure> {
    REGIONS
        .get(number(handle))
        .map_err(|_| bad_handle("region", handle))
}

fn group(handle: *const c_void) -> Result<Group, Failure> {
    GROUPS
        .get(number(handle))
        .map_err(|_| bad_handle("group", handle))
}

/// The rights that a number stands for.
pub(crate) fn rights(number: i32) -> Result<Rights, Failure> {
    match number {
        0 => Ok(Rights::None),
        1 => Ok(Rights::Read),
        2 => Ok(Rights::Write),
        _ => Err(Failure::new(
            Status::ERROR_ARGUMENT,
            format!("{number} is no rf_rights"),
        )),
    }
}

/// See the header.
///
/// # Safety
/// `region` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_region_create(
    length: u64,
    owner: *mut c_void,
    region: *mut *mut c_void,
) -> Status {
    status(|| {
        // SAFETY: the caller's promise.
        let region = unsafe { Place::new(region, "region") }?;
        let made = match objects::actor(owner)? {
            None => Region::new(length)?,
            Some(owner) => Region::owned_by(&owner.domain, length)?,
        };
        objects::hand_out(&REGIONS, made, "region", &region)
    })
}

/// See the header.
///
/// # Safety
/// `region` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_region_create_from_fd(
    fd: i32,
    length: u64,
    most: i32,
    region: *mut *mut c_void,
) -> Status {
    status(|| {
        // SAFETY: the caller's promise.
        let region = unsafe { Place::new(region, "region") }?;
        let most = rights(most)?;
        // A copy: the program keeps its descriptor.
        // SAFETY: a number that is no descriptor makes the call fail.
        let copy = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 0) };
        if copy < 0 {
            return Err(Failure::new(
                Status::ERROR_ARGUMENT,
                format!("{fd} is no open descriptor"),
            ));
        }
        // SAFETY: a fresh descriptor that nobody else owns.
        let file = unsafe { std::os::fd::OwnedFd::from_raw_fd(copy) };
        let made = Region::from_file(file, length, most)?;
        objects::hand_out(&REGIONS, made, "region", &region)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_region_destroy(handle: *mut c_void) -> Status {
    status(|| objects::remove(&REGIONS, handle, "region"))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_region_free(handle: *mut c_void, actor: *mut c_void) -> Status {
    status(|| {
        let region = region(handle)?;
        Ok(match objects::actor(actor)? {
            None => region.free(),
            Some(actor) => region.free_as(&actor.domain),
        }?)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_region_give(
    handle: *mut c_void,
    actor: *mut c_void,
    to: *mut c_void,
    number: i32,
) -> Status {
    status(|| {
        let (region, rights, to) = (region(handle)?, rights(number)?, objects::domain(to)?);
        Ok(match objects::actor(actor)? {
            None => region.give(&to.domain, rights),
            Some(actor) => region.give_as(&actor.domain, &to.domain, rights),
        }?)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_region_give_group(
    handle: *mut c_void,
    actor: *mut c_void,
    to: *mut c_void,
    number: i32,
) -> Status {
    status(|| {
        let (region, rights, to) = (region(handle)?, rights(number)?, group(to)?);
        Ok(match objects::actor(actor)? {
            None => region.give_group(&to, rights),
            Some(actor) => region.give_group_as(&actor.domain, &to, rights),
        }?)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_region_rights(handle: *mut c_void, domain: *mut c_void) -> i32 {
    border(
        |_| -1,
        || Ok(region(handle)?.rights_of(&objects::domain(domain)?.domain) as i32),
    )
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_region_address(handle: *mut c_void, domain: *mut c_void) -> *mut c_void {
    border(
        |_| ptr::null_mut(),
        || {
            let domain = objects::domain(domain)?;
            Ok(pointer(region(handle)?.ptr_in::<u8>(&domain.domain).address()))
        },
    )
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_region_host_address(handle: *mut c_void) -> *mut c_void {
    border(|_| ptr::null_mut(), || Ok(region(handle)?.host_address().cast()))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_region_length(handle: *mut c_void) -> u64 {
    border(|_| 0, || Ok(region(handle)?.len()))
}

/// See the header.
///
/// # Safety
/// `group` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_group_create(owner: *mut c_void, open: i32, group: *mut *mut c_void) -> Status {
    status(|| {
        // SAFETY: the caller's promise.
        let group = unsafe { Place::new(group, "group") }?;
        let made = match objects::actor(owner)? {
            None => Group::new(open != 0),
            Some(owner) => Group::owned_by(&owner.domain, open != 0)?,
        };
        objects::hand_out(&GROUPS, made, "group", &group)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_group_destroy(handle: *mut c_void) -> Status {
    status(|| objects::remove(&GROUPS, handle, "group"))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_group_admit(handle: *mut c_void, actor: *mut c_void, domain: *mut c_void) -> Status {
    status(|| {
        let (group, domain) = (group(handle)?, objects::domain(domain)?);
        Ok(match objects::actor(actor)? {
            None => group.admit(&domain.domain),
            Some(actor) => group.admit_as(&actor.domain, &domain.domain),
        }?)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_group_expel(handle: *mut c_void, actor: *mut c_void, domain: *mut c_void) -> Status {
    status(|| {
        let (group, domain) = (group(handle)?, objects::domain(domain)?);
        Ok(match objects::actor(actor)? {
            None => group.expel(&domain.domain),
            Some(actor) => group.expel_as(&actor.domain, &domain.domain),
        }?)
    })
}

/// See the header.
///
/// # Safety
/// `to` is null or has room for `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_overview_text(to: *mut c_char, capacity: usize) -> usize {
    // SAFETY: the caller's promise.
    unsafe { write_out(to, capacity, || overview().to_string()) }
}

/// See the header.
///
/// # Safety
/// `to` is null or has room for `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_overview_json(to: *mut c_char, capacity: usize) -> usize {
    // SAFETY: the caller's promise.
    unsafe { write_out(to, capacity, || overview().to_json()) }
}

/// Writes a text as far as there is room; its whole length.
///
/// # Safety
/// `to` is null or has room for `capacity` bytes.
pub(crate) unsafe fn write_out(to: *mut c_char, capacity: usize, text: impl FnOnce() -> String) -> usize {
    border(
        |_| 0,
        || {
            let text = text();
            if !to.is_null() && capacity > 0 {
                let n = text.len().min(capacity - 1);
                // SAFETY: there is room for `capacity` bytes, and `n` is less.
                unsafe {
                    ptr::copy_nonoverlapping(text.as_ptr(), to.cast::<u8>(), n);
                    *to.add(n) = 0;
                }
            }
            Ok(text.len())
        },
    )
}
