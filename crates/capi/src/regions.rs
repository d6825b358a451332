//! Memory shared between domains.

use std::ffi::{c_char, c_void};
use std::os::fd::FromRawFd;
use std::ptr;

use ringfence_runtime::supervisor::{self, Actor, Group, Recipient, Region};
use ringfence_runtime::{Domain, RegionError, Rights};

use crate::error::{Failure, Status, border, status};
use crate::handles::Table;
use crate::objects::{self, not_null, pointer};

static REGIONS: Table<Region> = Table::new(0x5A4);
static GROUPS: Table<Group> = Table::new(0x5A5);

impl From<RegionError> for Failure {
    fn from(e: RegionError) -> Self {
        let status = match &e {
            RegionError::Rights(_) => Status::ERROR_RIGHTS,
            RegionError::Size { .. } | RegionError::Short { .. } | RegionError::NotSealable(_) => {
                Status::ERROR_ARGUMENT
            }
            _ => Status::ERROR_LIMIT,
        };
        Self::new(status, e.to_string())
    }
}

fn bad(what: &str) -> Failure {
    Failure::new(Status::ERROR_HANDLE, format!("not an open {what} handle"))
}

fn region(handle: *const c_void) -> Result<Region, Failure> {
    REGIONS.get(handle as u64).map_err(|_| bad("region"))
}

fn group(handle: *const c_void) -> Result<Group, Failure> {
    GROUPS.get(handle as u64).map_err(|_| bad("group"))
}

fn rights(number: i32) -> Result<Rights, Failure> {
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

/// The domain on whose behalf something is asked for; NULL is the host itself.
fn on_behalf<T>(
    handle: *const c_void,
    f: impl FnOnce(Actor<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    if handle.is_null() {
        return f(Actor::Host);
    }
    let object = objects::domain(handle)?;
    f(Actor::Domain(&object.domain))
}

/// Stores a new handle.
///
/// # Safety
/// `to` is writable.
unsafe fn hand_out<T: Clone>(table: &Table<T>, value: T, to: *mut *mut c_void) -> Result<(), Failure> {
    let handle = table
        .insert(value)
        .map_err(|_| Failure::new(Status::ERROR_LIMIT, "too many open handles"))?;
    // SAFETY: the caller's promise.
    unsafe { *to = pointer(handle) };
    Ok(())
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
        not_null(region, "region")?;
        // SAFETY: not null, so writable.
        unsafe { *region = ptr::null_mut() };
        let made = on_behalf(owner, |actor| match actor {
            Actor::Host => Ok(Region::new(length)?),
            Actor::Domain(domain) => Ok(Region::owned_by(domain, length)?),
        })?;
        // SAFETY: not null, so writable.
        unsafe { hand_out(&REGIONS, made, region) }
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
        not_null(region, "region")?;
        // SAFETY: not null, so writable.
        unsafe { *region = ptr::null_mut() };
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
        // SAFETY: not null, so writable.
        unsafe { hand_out(&REGIONS, made, region) }
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_region_destroy(handle: *mut c_void) -> Status {
    status(|| {
        if handle.is_null() {
            return Ok(());
        }
        REGIONS.remove(handle as u64).map(drop).map_err(|_| bad("region"))
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_region_free(handle: *mut c_void, actor: *mut c_void) -> Status {
    status(|| {
        let region = region(handle)?;
        on_behalf(actor, |actor| Ok(region.free(actor)?))
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
        on_behalf(actor, |actor| {
            Ok(region.give(actor, Recipient::Domain(&to.domain), rights)?)
        })
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
        on_behalf(actor, |actor| {
            Ok(region.give(actor, Recipient::Group(&to), rights)?)
        })
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
            Ok(pointer(
                region(handle)?.address_in(objects::domain(domain)?.domain.as_ref()),
            ))
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
        not_null(group, "group")?;
        // SAFETY: not null, so writable.
        unsafe { *group = ptr::null_mut() };
        let made = on_behalf(owner, |actor| match actor {
            Actor::Host => Ok(Group::new(open != 0)),
            Actor::Domain(domain) => Ok(Group::owned_by(domain, open != 0)?),
        })?;
        // SAFETY: not null, so writable.
        unsafe { hand_out(&GROUPS, made, group) }
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_group_destroy(handle: *mut c_void) -> Status {
    status(|| {
        if handle.is_null() {
            return Ok(());
        }
        GROUPS.remove(handle as u64).map(drop).map_err(|_| bad("group"))
    })
}

fn member(
    handle: *mut c_void,
    actor: *mut c_void,
    domain: *mut c_void,
    f: impl FnOnce(&Group, Actor<'_>, &Domain) -> Result<(), RegionError>,
) -> Status {
    status(|| {
        let (group, domain) = (group(handle)?, objects::domain(domain)?);
        on_behalf(actor, |actor| Ok(f(&group, actor, &domain.domain)?))
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_group_admit(handle: *mut c_void, actor: *mut c_void, domain: *mut c_void) -> Status {
    member(handle, actor, domain, Group::admit)
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_group_expel(handle: *mut c_void, actor: *mut c_void, domain: *mut c_void) -> Status {
    member(handle, actor, domain, Group::expel)
}

/// See the header.
///
/// # Safety
/// `to` is null or has room for `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_overview_text(to: *mut c_char, capacity: usize) -> usize {
    // SAFETY: the caller's promise.
    unsafe { write_out(to, capacity, || supervisor::overview().to_string()) }
}

/// See the header.
///
/// # Safety
/// `to` is null or has room for `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_overview_json(to: *mut c_char, capacity: usize) -> usize {
    // SAFETY: the caller's promise.
    unsafe { write_out(to, capacity, || supervisor::overview().to_json()) }
}

/// Writes a text as far as there is room; its whole length.
///
/// # Safety
/// `to` is null or has room for `capacity` bytes.
unsafe fn write_out(to: *mut c_char, capacity: usize, text: impl FnOnce() -> String) -> usize {
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
