//! A domain's memory: every range is checked, every copy survives pages that are not there.

use std::ffi::{c_char, c_void};
use std::ptr;

use ringfence::Ptr;

use crate::arguments::{not_null, pointer};
use crate::error::{border, status};
use crate::objects;
use crate::status::{Failure, Status};

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_memory_alloc(domain: *mut c_void, size: usize) -> *mut c_void {
    border(
        |_| ptr::null_mut(),
        || {
            let object = objects::domain(domain)?;
            let made = object.domain.memory().alloc_array::<u8>(size.max(1))?;
            Ok(pointer(made.leak().address()))
        },
    )
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_memory_free(domain: *mut c_void, address: *mut c_void) -> Status {
    status(|| {
        let object = objects::domain(domain)?;
        if !address.is_null() {
            object
                .domain
                .memory()
                .free(Ptr::<u8>::from_address(address as u64))?;
        }
        Ok(())
    })
}

/// See the header.
///
/// # Safety
/// `to` is null or has room for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_memory_read(
    domain: *mut c_void,
    from: *const c_void,
    to: *mut c_void,
    length: usize,
) -> Status {
    status(|| {
        let object = objects::domain(domain)?;
        object.domain.memory().check_range(from as u64, length as u64)?;
        if length == 0 {
            return Ok(());
        }
        not_null(to, "to")?;
        // SAFETY: the caller's promise; the range is below 4 GiB by the check above.
        let to = unsafe { std::slice::from_raw_parts_mut(to.cast::<u8>(), length) };
        Ok(object
            .domain
            .memory()
            .read_slice(Ptr::<u8>::from_address(from as u64), to)?)
    })
}

/// See the header.
///
/// # Safety
/// `from` is null or has `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_memory_write(
    domain: *mut c_void,
    to: *mut c_void,
    from: *const c_void,
    length: usize,
) -> Status {
    status(|| {
        let object = objects::domain(domain)?;
        object.domain.memory().check_range(to as u64, length as u64)?;
        if length == 0 {
            return Ok(());
        }
        not_null(from, "from")?;
        // SAFETY: the caller's promise; the range is below 4 GiB by the check above.
        let from = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), length) };
        Ok(object
            .domain
            .memory()
            .write_slice(Ptr::<u8>::from_address(to as u64), from)?)
    })
}

/// See the header.
///
/// # Safety
/// `to` is null or has room for `capacity` bytes; `length` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_memory_read_string(
    domain: *mut c_void,
    from: *const c_void,
    to: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> Status {
    status(|| {
        not_null(to, "to")?;
        if capacity == 0 {
            return Err(Failure::new(
                Status::ERROR_ARGUMENT,
                "capacity is 0: there is no room even for the NUL",
            ));
        }
        // SAFETY: there is room for one byte.
        unsafe { *to = 0 };
        if !length.is_null() {
            // SAFETY: not null, so writable.
            unsafe { *length = 0 };
        }
        let object = objects::domain(domain)?;
        let bytes = object
            .domain
            .memory()
            .read_c_string(Ptr::<u8>::from_address(from as u64), capacity - 1)?
            .into_inner_unchecked();
        // SAFETY: there is room for `capacity` bytes, and the string and its NUL are not more.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast::<u8>(), bytes.len());
            *to.add(bytes.len()) = 0;
        }
        if !length.is_null() {
            // SAFETY: not null, so writable.
            unsafe { *length = bytes.len() };
        }
        Ok(())
    })
}

/// See the header.
///
/// # Safety
/// `string` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_memory_alloc_string(domain: *mut c_void, string: *const c_char) -> *mut c_void {
    border(
        |_| ptr::null_mut(),
        || {
            let object = objects::domain(domain)?;
            not_null(string, "text")?;
            // SAFETY: the caller's promise.
            let bytes = unsafe { std::ffi::CStr::from_ptr(string) }.to_bytes();
            Ok(pointer(
                object.domain.memory().put_c_string(bytes)?.leak().address(),
            ))
        },
    )
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_memory_contains(domain: *mut c_void, address: *const c_void, length: usize) -> i32 {
    match objects::domain(domain) {
        Ok(object) => {
            let range = object.domain.memory().check_range(address as u64, length as u64);
            i32::from(range.is_ok())
        }
        Err(_) => 0,
    }
}
