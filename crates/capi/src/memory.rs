//! A domain's memory: every range is checked, every copy survives pages that are not there.

use std::ffi::{c_char, c_void};
use std::ptr;

use ringfence_runtime::{ExportKind, MemoryError};

use crate::error::{Failure, Status, border, status};
use crate::objects::{self, DomainObject, not_null, pointer, text};

const ALIGN: u64 = 16;

fn in_window(object: &DomainObject, address: u64, len: u64) -> Result<(), MemoryError> {
    let offset = address.wrapping_sub(object.domain.as_ref().base());
    if offset < ringfence_isa::window::SIZE && len <= ringfence_isa::window::SIZE - offset {
        Ok(())
    } else {
        Err(MemoryError::Outside { address, len })
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_memory_alloc(domain: *mut c_void, size: usize) -> *mut c_void {
    border(
        |_| ptr::null_mut(),
        || {
            let object = objects::domain(domain)?;
            Ok(pointer(object.domain.as_ref().alloc(size.max(1) as u64, ALIGN)?))
        },
    )
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_memory_free(domain: *mut c_void, address: *mut c_void) -> Status {
    status(|| {
        let object = objects::domain(domain)?;
        if !address.is_null() {
            object.domain.as_ref().free(address as u64)?;
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
        in_window(&object, from as u64, length as u64)?;
        if length == 0 {
            return Ok(());
        }
        not_null(to, "to")?;
        // SAFETY: the caller's promise; the range is below 4 GiB by the check above.
        let to = unsafe { std::slice::from_raw_parts_mut(to.cast::<u8>(), length) };
        Ok(object.domain.as_ref().read(from as u64, to)?)
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
        in_window(&object, to as u64, length as u64)?;
        if length == 0 {
            return Ok(());
        }
        not_null(from, "from")?;
        // SAFETY: the caller's promise; the range is below 4 GiB by the check above.
        let from = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), length) };
        Ok(object.domain.as_ref().write(to as u64, from)?)
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
        let domain = object.domain.as_ref();
        let (start, page) = (from as u64, ringfence_isa::PAGE);
        let mut piece = [0u8; 256];
        let mut done = 0;
        while done < capacity {
            let address = start.wrapping_add(done as u64);
            // Not across a page's end: the string may be the last thing that is mapped.
            let n = piece
                .len()
                .min((page - address % page) as usize)
                .min(capacity - done);
            in_window(&object, address, n as u64)?;
            if let Err(e) = domain.read(address, &mut piece[..n]) {
                // SAFETY: there is room for one byte.
                unsafe { *to = 0 };
                return Err(e.into());
            }
            let end = piece[..n].iter().position(|&b| b == 0);
            let text = &piece[..end.map_or(n, |e| e + 1)];
            // SAFETY: `done + text.len()` is at most `capacity`.
            unsafe { ptr::copy_nonoverlapping(text.as_ptr(), to.cast::<u8>().add(done), text.len()) };
            if let Some(end) = end {
                if !length.is_null() {
                    // SAFETY: not null, so writable.
                    unsafe { *length = done + end };
                }
                return Ok(());
            }
            done += n;
        }
        // SAFETY: there is room for one byte.
        unsafe { *to = 0 };
        Err(Failure::new(
            Status::ERROR_TOO_LONG,
            format!("the string at {from:?} does not fit into {capacity} bytes"),
        ))
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
            let bytes = unsafe { std::ffi::CStr::from_ptr(string) }.to_bytes_with_nul();
            let domain = object.domain.as_ref();
            let address = domain.alloc(bytes.len() as u64, ALIGN)?;
            domain.write(address, bytes)?;
            Ok(pointer(address))
        },
    )
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_memory_contains(domain: *mut c_void, address: *const c_void, length: usize) -> i32 {
    match objects::domain(domain) {
        Ok(object) => i32::from(in_window(&object, address as u64, length as u64).is_ok()),
        Err(_) => 0,
    }
}

/// See the header.
///
/// # Safety
/// `name` is null or a string, `size` null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_domain_find_object(
    domain: *mut c_void,
    name: *const c_char,
    size: *mut usize,
) -> *mut c_void {
    border(
        |_| ptr::null_mut(),
        || {
            let object = objects::domain(domain)?;
            // SAFETY: the caller's promise.
            let name = unsafe { text(name, "name") }?;
            let export = object
                .module
                .exports()
                .iter()
                .find(|e| e.name == name && e.kind == ExportKind::Object);
            let (Some(export), Some(address)) = (export, object.domain.symbol(name)) else {
                return Err(Failure::new(
                    Status::ERROR_NO_OBJECT,
                    format!("the module exports no object {name:?}"),
                ));
            };
            if !size.is_null() {
                // SAFETY: not null, so writable.
                unsafe { *size = export.size as usize };
            }
            Ok(pointer(address))
        },
    )
}
