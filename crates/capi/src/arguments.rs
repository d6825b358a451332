//! Arguments of C functions: what is checked of them, and what handles look like.

use std::ffi::{CStr, OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::status::{Failure, Status};

pub(crate) fn bad_handle(what: &str, handle: *const c_void) -> Failure {
    let reason = if handle.is_null() {
        ""
    } else {
        "; it was closed, or never was one"
    };
    Failure::new(Status::ERROR_HANDLE, format!("{handle:?} is no {what}{reason}"))
}

pub(crate) fn full(what: &str) -> Failure {
    Failure::new(Status::ERROR_LIMIT, format!("too many open {what} handles"))
}

pub(crate) fn number(handle: *const c_void) -> u64 {
    handle as usize as u64
}

pub(crate) fn pointer(handle: u64) -> *mut c_void {
    handle as usize as *mut c_void
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

/// Where the program wants a handle.
pub(crate) struct Place(*mut *mut c_void);

impl Place {
    /// NULL is there until [`give`](Self::give), so that nobody uses what was not made.
    ///
    /// # Safety
    /// `place` is null or writable as long as the result is used.
    pub(crate) unsafe fn new(place: *mut *mut c_void, what: &str) -> Result<Place, Failure> {
        not_null(place, what)?;
        let place = Place(place);
        place.give(std::ptr::null_mut());
        Ok(place)
    }

    pub(crate) fn give(&self, handle: *mut c_void) {
        // SAFETY: not null, so writable, as `new` was promised.
        unsafe { *self.0 = handle };
    }
}

/// Checks that an output argument is there.
pub(crate) fn not_null<T>(pointer: *const T, what: &str) -> Result<(), Failure> {
    if pointer.is_null() {
        return Err(Failure::new(Status::ERROR_ARGUMENT, format!("{what} is NULL")));
    }
    Ok(())
}
