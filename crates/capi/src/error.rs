//! The calling thread's pending error: `rf_error` and what fills it; and what tells of statuses and versions.

use std::cell::{OnceCell, RefCell};
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use ringfence::{Fault, FaultKind, Frame, dynamic, local};

use crate::status::{Failure, Status};

/// `rf_frame` of the header.
#[repr(C)]
pub struct CFrame {
    address: u64,
    function: *const c_char,
    file: *const c_char,
    line: u32,
    reserved: u32,
}

/// `rf_error_info` of the header.
#[repr(C)]
pub struct Info {
    size: usize,
    status: Status,
    code: i32,
    message: *const c_char,
    address: u64,
    instruction: u64,
    function: *const c_char,
    file: *const c_char,
    line: u32,
    frame_count: u32,
    frames: *const CFrame,
    public_message: *const c_char,
}

/// What `Info` points into.
struct Stored {
    info: Info,
    _message: CString,
    _public: CString,
    _strings: Vec<CString>,
    _frames: Vec<CFrame>,
}

/// A failure, and what `rf_error` gives for it once somebody has asked.
struct Pending {
    failure: Failure,
    stored: OnceCell<Box<Stored>>,
}

local!(static PENDING: RefCell<Option<Pending>>);

/// A C string of what a person is to read; a NUL inside cannot be kept.
fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', "\u{FFFD}")).unwrap_or_default()
}

fn store(failure: &Failure) -> Box<Stored> {
    let message = c_string(&failure.told());
    let public = c_string(&failure.public());
    let fault = failure.fault();
    let mut strings = Vec::new();
    let mut keep = |text: &Option<String>| match text {
        Some(text) => {
            strings.push(c_string(text));
            strings[strings.len() - 1].as_ptr()
        }
        None => ptr::null(),
    };
    let frames: Vec<CFrame> = fault.map_or_else(Vec::new, |fault| {
        let frame = |f: &Frame| CFrame {
            address: f.address,
            function: keep(&f.function),
            file: keep(&f.file),
            line: f.line.unwrap_or(0),
            reserved: 0,
        };
        fault.backtrace().iter().map(frame).collect()
    });
    let first = frames.first();
    let info = Info {
        size: size_of::<Info>(),
        status: failure.status,
        code: failure.code,
        message: message.as_ptr(),
        address: match fault.map(|f| &f.kind) {
            Some(
                FaultKind::BadAccess { address, .. }
                | FaultKind::OutsideWindow { address }
                | FaultKind::Denied { address, .. },
            ) => *address,
            _ => 0,
        },
        instruction: fault.map_or(0, Fault::instruction),
        function: first.map_or(ptr::null(), |f| f.function),
        file: first.map_or(ptr::null(), |f| f.file),
        line: first.map_or(0, |f| f.line),
        frame_count: frames.len() as u32,
        frames: if frames.is_empty() {
            ptr::null()
        } else {
            frames.as_ptr()
        },
        public_message: public.as_ptr(),
    };
    Box::new(Stored {
        info,
        _message: message,
        _public: public,
        _strings: strings,
        _frames: frames,
    })
}

/// Makes `failure` the thread's pending error; returns its status.
pub(crate) fn fail(failure: Failure) -> Status {
    let status = failure.status;
    let pending = Pending {
        failure,
        stored: OnceCell::new(),
    };
    // A thread that is ending has nobody left to ask.
    PENDING.with(|p| p.replace(Some(pending)));
    status
}

/// The pending error, including one that a call through a plain function pointer left in the runtime.
pub(crate) fn pending() -> *const Info {
    if let Some(error) = dynamic::take_error() {
        fail(error.into());
    }
    PENDING
        .look(|p| {
            p.borrow().as_ref().map_or(ptr::null(), |p| {
                &raw const p.stored.get_or_init(|| store(&p.failure)).info
            })
        })
        .unwrap_or(ptr::null())
}

/// Forgets the pending error.
pub(crate) fn clear() {
    let _ = dynamic::take_error();
    PENDING.look(|p| p.replace(None));
}

/// Runs the body of a C function: errors become the pending error, and a panic, which would be a defect of ours, does
/// not reach C code.
pub(crate) fn border<T>(on_error: impl FnOnce(Status) -> T, body: impl FnOnce() -> Result<T, Failure>) -> T {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => value,
        Ok(Err(failure)) => on_error(fail(failure)),
        Err(_) => on_error(fail(Failure::new(
            Status::ERROR_INTERNAL,
            "a defect in Ringfence: it panicked; please report it",
        ))),
    }
}

/// [`border`] for functions that return a status.
pub(crate) fn status(body: impl FnOnce() -> Result<(), Failure>) -> Status {
    border(|s| s, || body().map(|()| Status::OK))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_error() -> *const Info {
    border(|_| ptr::null(), || Ok(pending()))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_error_clear() {
    clear();
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_status_name(status: Status) -> *const c_char {
    status.name().as_ptr().cast()
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error() {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        assert_eq!(status(|| panic!("x")), Status::ERROR_INTERNAL);
        std::panic::set_hook(hook);
        // SAFETY: `pending` gives null or a pointer to this thread's error.
        let info = unsafe { pending().as_ref() }.expect("pending");
        assert_eq!(info.status, Status::ERROR_INTERNAL);
        assert_eq!(info.size, size_of::<Info>());
        clear();
        assert!(pending().is_null());
    }
}
