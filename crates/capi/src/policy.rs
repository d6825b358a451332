//! Policies: what a domain may ask of the operating system.

use std::ffi::{CString, c_char, c_void};
use std::net::SocketAddr;
use std::path::Path;
use std::ptr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use ringfence::Rights;
use ringfence::policy::{Captured, Decision, Monitor, Policy, PolicyError, Request, Stream};

use crate::arguments::{Place, bad_handle, full, not_null, path, pointer, text};
use crate::caller::Context;
use crate::error::status;
use crate::handles::{LateHandle, Table};
use crate::status::{Failure, Status};

/// `rf_syscall` of the header.
#[repr(C)]
pub struct Syscall {
    size: usize,
    number: u64,
    name: *const c_char,
    args: [u64; 6],
    domain: *mut c_void,
    result: i64,
}

type Decide = unsafe extern "C" fn(call: *mut Syscall, context: *mut c_void) -> i32;
type Print = unsafe extern "C" fn(line: *const c_char, context: *mut c_void);

const BY_POLICY: i32 = 0;
const DENY: i32 = 1;
const DONE: i32 = 2;

const CLOSED: i32 = 0;
const NULL: i32 = 1;
const INHERIT: i32 = 2;
const CAPTURE: i32 = 3;
const POSITIONED: i32 = 4;

/// A policy behind its handle.
#[derive(Default, Clone)]
struct PolicyObject {
    policy: Policy,
    /// Which streams each domain captures for itself.
    captured: [bool; 3],
    args: Vec<String>,
    callback: Option<(Decide, usize)>,
}

static POLICIES: Table<Arc<Mutex<PolicyObject>>> = Table::new(0x5A6);

/// A policy in force for one domain.
pub(crate) struct InForce {
    pub(crate) monitor: Arc<Monitor>,
    captured: [Option<Captured>; 3],
}

fn policy(handle: *const c_void) -> Result<Arc<Mutex<PolicyObject>>, Failure> {
    POLICIES
        .get(handle as usize as u64)
        .map_err(|_| bad_handle("policy", handle))
}

impl InForce {
    /// What was captured of a stream.
    pub(crate) fn captured(&self, number: i32) -> Result<&Captured, Failure> {
        self.captured[standard(number)?].as_ref().ok_or_else(|| {
            let message = format!("the policy does not capture stream {number}");
            Failure::new(Status::ERROR_ARGUMENT, message)
        })
    }

    /// Drops what was captured so far.
    pub(crate) fn forget(&self) {
        for captured in self.captured.iter().flatten() {
            drop(captured.take());
        }
    }
}

/// What `rf_dlopen` puts into force where nothing else is asked for.
static PROVIDED: Mutex<Option<PolicyObject>> = Mutex::new(None);

/// Sets that; a null handle: nothing.
pub(crate) fn provide(handle: *const c_void) -> Result<(), Failure> {
    let provided = if handle.is_null() {
        None
    } else {
        Some(copy(handle)?)
    };
    *PROVIDED.lock().unwrap_or_else(PoisonError::into_inner) = provided;
    Ok(())
}

fn copy(handle: *const c_void) -> Result<PolicyObject, Failure> {
    let object = policy(handle)?;
    let object = object.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(object.clone())
}

/// Puts the policy of this handle into force for a domain whose own handle comes `late`. A null handle: none.
pub(crate) fn start(handle: *const c_void, late: &LateHandle) -> Result<Option<InForce>, Failure> {
    if handle.is_null() {
        return Ok(None);
    }
    in_force_for(copy(handle)?, late).map(Some)
}

/// Puts into force what the program provided for all modules of `rf_dlopen`, if it did.
pub(crate) fn start_provided(late: &LateHandle) -> Result<Option<InForce>, Failure> {
    let provided = PROVIDED.lock().unwrap_or_else(PoisonError::into_inner).clone();
    provided.map(|object| in_force_for(object, late)).transpose()
}

fn in_force_for(object: PolicyObject, late: &LateHandle) -> Result<InForce, Failure> {
    let mut policy = object.policy.args(object.args);
    let mut captured = [None, None, None];
    for (number, slot) in captured.iter_mut().enumerate() {
        if object.captured[number] {
            let buffer = slot.insert(Captured::default()).clone();
            policy = set_stream(policy, number, Stream::Capture(buffer));
        }
    }
    if let Some((decide, context)) = object.callback {
        let (late, context) = (late.clone(), Context(context as *mut c_void));
        policy = policy.callback(move |request| ask(decide, &context, &late, request));
    }
    Ok(InForce {
        monitor: policy.start()?,
        captured,
    })
}

fn ask(decide: Decide, context: &Context, late: &LateHandle, request: &Request<'_>) -> Decision {
    let name = request.name.and_then(|n| CString::new(n).ok());
    let mut call = Syscall {
        size: size_of::<Syscall>(),
        number: request.number,
        name: name.as_ref().map_or(ptr::null(), |n| n.as_ptr()),
        args: request.args,
        domain: pointer(late.load(Ordering::Acquire)),
        result: 0,
    };
    // SAFETY: the header says what a callback is; the struct lives until it returns.
    match unsafe { decide(&raw mut call, context.0) } {
        BY_POLICY => Decision::Policy,
        DONE => Decision::Return(call.result),
        DENY => Decision::Deny(i32::try_from(call.result).unwrap_or(libc::EPERM)),
        // What nobody defined is no permission.
        _ => Decision::Deny(libc::EPERM),
    }
}

fn set_stream(policy: Policy, number: usize, stream: Stream) -> Policy {
    match number {
        0 => policy.stdin(stream),
        1 => policy.stdout(stream),
        _ => policy.stderr(stream),
    }
}

/// Changes the policy behind a handle.
fn change(handle: *const c_void, f: impl FnOnce(&mut PolicyObject) -> Result<(), Failure>) -> Status {
    status(|| {
        let object = policy(handle)?;
        f(&mut object.lock().unwrap_or_else(PoisonError::into_inner))
    })
}

/// Passes the policy through one of its builder's functions.
fn build(object: &mut PolicyObject, f: impl FnOnce(Policy) -> Policy) {
    object.policy = f(std::mem::take(&mut object.policy));
}

/// See the header.
///
/// # Safety
/// `made` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_policy_create(made: *mut *mut c_void) -> Status {
    status(|| {
        // SAFETY: the caller's promise.
        let made = unsafe { Place::new(made, "policy") }?;
        let handle = POLICIES.insert(Arc::default()).map_err(|_| full("policy"))?;
        made.give(pointer(handle));
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_policy_destroy(handle: *mut c_void) -> Status {
    status(|| {
        if handle.is_null() {
            return Ok(());
        }
        POLICIES
            .remove(handle as usize as u64)
            .map(drop)
            .map_err(|_| bad_handle("policy", handle))
    })
}

/// See the header.
///
/// # Safety
/// `host` and `guest` are null or strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_policy_dir(
    handle: *mut c_void,
    host: *const c_char,
    guest: *const c_char,
    rights: i32,
) -> Status {
    change(handle, |object| {
        // SAFETY: the caller's promise.
        let (host, guest): (&Path, _) = unsafe { (path(host)?, text(guest, "guest")?) };
        let rights = match rights {
            1 => Rights::Read,
            2 => Rights::Write,
            other => {
                let message =
                    format!("{other} is no right to a directory: RF_RIGHTS_READ or RF_RIGHTS_WRITE");
                return Err(Failure::new(Status::ERROR_ARGUMENT, message));
            }
        };
        absolute(guest)?;
        build(object, |p| p.dir(host, guest, rights));
        Ok(())
    })
}

/// A guest name begins with a `/`.
fn absolute(guest: &str) -> Result<(), Failure> {
    if guest.starts_with('/') {
        return Ok(());
    }
    let name = guest.to_owned();
    Err(PolicyError::GuestName { name }.into())
}

/// See the header.
///
/// # Safety
/// `guest` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_policy_cwd(handle: *mut c_void, guest: *const c_char) -> Status {
    change(handle, |object| {
        // SAFETY: the caller's promise.
        let guest = unsafe { text(guest, "guest") }?;
        absolute(guest)?;
        build(object, |p| p.cwd(guest));
        Ok(())
    })
}

fn standard(number: i32) -> Result<usize, Failure> {
    usize::try_from(number).ok().filter(|n| *n < 3).ok_or_else(|| {
        let message = format!("{number} is no standard stream: 0, 1 or 2");
        Failure::new(Status::ERROR_ARGUMENT, message)
    })
}

fn stream(handle: *mut c_void, number: usize, stream: i32) -> Status {
    change(handle, |object| {
        let (kind, captured) = match stream {
            CLOSED => (Stream::Closed, false),
            NULL => (Stream::Null, false),
            INHERIT => (Stream::Inherit, false),
            POSITIONED => (Stream::Positioned, false),
            // The buffer is made for each domain.
            CAPTURE if number > 0 => (Stream::Closed, true),
            other => {
                let message = format!("{other} is no rf_stream that stream {number} can have");
                return Err(Failure::new(Status::ERROR_ARGUMENT, message));
            }
        };
        object.captured[number] = captured;
        build(object, |p| set_stream(p, number, kind));
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_policy_stdin(handle: *mut c_void, kind: i32) -> Status {
    stream(handle, 0, kind)
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_policy_stdout(handle: *mut c_void, kind: i32) -> Status {
    stream(handle, 1, kind)
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_policy_stderr(handle: *mut c_void, kind: i32) -> Status {
    stream(handle, 2, kind)
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_policy_broken_pipes_end(handle: *mut c_void, end: i32) -> Status {
    change(handle, |object| {
        build(object, |p| p.broken_pipes_end(end != 0));
        Ok(())
    })
}

/// See the header.
///
/// # Safety
/// `bytes` is null or has `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_policy_stdin_bytes(
    handle: *mut c_void,
    bytes: *const c_void,
    length: usize,
) -> Status {
    change(handle, |object| {
        let bytes = if length == 0 {
            Vec::new()
        } else {
            not_null(bytes, "bytes")?;
            // SAFETY: the caller's promise.
            unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), length) }.to_vec()
        };
        build(object, |p| p.stdin(Stream::Bytes(bytes)));
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_policy_capture_limit(handle: *mut c_void, bytes: usize) -> Status {
    change(handle, |object| {
        build(object, |p| p.capture_limit(bytes));
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_policy_disk_limit(handle: *mut c_void, bytes: u64) -> Status {
    change(handle, |object| {
        build(object, |p| p.disk_limit(bytes));
        Ok(())
    })
}

/// A copy of a string that a domain is to see.
///
/// # Safety
/// As [`text`].
unsafe fn owned(string: *const c_char, what: &str) -> Result<String, Failure> {
    // SAFETY: the caller's promise.
    unsafe { text(string, what) }.map(str::to_owned)
}

/// See the header.
///
/// # Safety
/// `args` is null or has `count` strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_policy_args(
    handle: *mut c_void,
    args: *const *const c_char,
    count: usize,
) -> Status {
    change(handle, |object| {
        if count > 0 {
            not_null(args, "args")?;
        }
        let one = |i| {
            // SAFETY: the caller's promise.
            unsafe { owned(*args.add(i), "an argument") }
        };
        object.args = (0..count).map(one).collect::<Result<_, _>>()?;
        Ok(())
    })
}

/// See the header.
///
/// # Safety
/// `name` and `value` are null or strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_policy_env(
    handle: *mut c_void,
    name: *const c_char,
    value: *const c_char,
) -> Status {
    change(handle, |object| {
        // SAFETY: the caller's promise.
        let (name, value) = unsafe { (owned(name, "name")?, owned(value, "value")?) };
        if name.is_empty() || name.contains('=') {
            let message = format!("{name:?} cannot be the name of an environment variable");
            return Err(Failure::new(Status::ERROR_ARGUMENT, message));
        }
        build(object, |p| p.env(&name, &value));
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_policy_clocks(handle: *mut c_void, granted: i32) -> Status {
    change(handle, |object| {
        build(object, |p| p.clocks(granted != 0));
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_policy_randomness(handle: *mut c_void, granted: i32) -> Status {
    change(handle, |object| {
        build(object, |p| p.randomness(granted != 0));
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_policy_descriptors(handle: *mut c_void, limit: u32) -> Status {
    change(handle, |object| {
        if !(3..=1 << 16).contains(&limit) {
            let message = format!("{limit} descriptors: the limit must be 3 to 65536");
            return Err(Failure::new(Status::ERROR_ARGUMENT, message));
        }
        build(object, |p| p.descriptors(limit as usize));
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_policy_threads(handle: *mut c_void, limit: u32) -> Status {
    change(handle, |object| {
        build(object, |p| p.threads(limit as usize));
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_policy_processes(handle: *mut c_void, limit: u32) -> Status {
    change(handle, |object| {
        build(object, |p| p.processes(limit as usize));
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_policy_symlinks(handle: *mut c_void, granted: i32) -> Status {
    change(handle, |object| {
        build(object, |p| p.symlinks(granted != 0));
        Ok(())
    })
}

/// Grants an address, by `to`.
///
/// # Safety
/// `address` is null or a string.
unsafe fn grant_address(
    handle: *mut c_void,
    address: *const c_char,
    to: impl FnOnce(Policy, SocketAddr) -> Policy,
) -> Status {
    change(handle, |object| {
        // SAFETY: the caller's promise.
        let address = unsafe { text(address, "address") }?;
        let parsed = address.parse().map_err(|_| {
            let message = format!("{address:?} is no address: write 127.0.0.1:80 or [::1]:80");
            Failure::new(Status::ERROR_ARGUMENT, message)
        })?;
        build(object, |p| to(p, parsed));
        Ok(())
    })
}

/// See the header.
///
/// # Safety
/// `address` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_policy_connect(handle: *mut c_void, address: *const c_char) -> Status {
    // SAFETY: the caller's promise.
    unsafe { grant_address(handle, address, Policy::connect) }
}

/// See the header.
///
/// # Safety
/// `address` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_policy_listen(handle: *mut c_void, address: *const c_char) -> Status {
    // SAFETY: the caller's promise.
    unsafe { grant_address(handle, address, Policy::listen) }
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_policy_callback(
    handle: *mut c_void,
    decide: Option<Decide>,
    context: *mut c_void,
) -> Status {
    change(handle, |object| {
        object.callback = decide.map(|d| (d, context as usize));
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_policy_trace(handle: *mut c_void, print: Option<Print>, context: *mut c_void) -> Status {
    change(handle, |object| {
        let Some(print) = print else {
            return Err(Failure::new(Status::ERROR_ARGUMENT, "print is NULL"));
        };
        let context = Context(context);
        build(object, |p| {
            p.trace(move |line| {
                let context: &Context = &context;
                let line = CString::new(line.replace('\0', "\u{FFFD}")).unwrap_or_default();
                // SAFETY: the header says what such a function is; the line lives until it returns.
                unsafe { print(line.as_ptr(), context.0) };
            })
        });
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_have_the_numbers_of_the_header() {
        let header = include_str!("../../../include/ringfence/host/policy.h");
        for (name, number) in [
            ("RF_DECISION_POLICY", BY_POLICY),
            ("RF_DECISION_DENY", DENY),
            ("RF_DECISION_RETURN", DONE),
            ("RF_STREAM_CLOSED", CLOSED),
            ("RF_STREAM_NULL", NULL),
            ("RF_STREAM_INHERIT", INHERIT),
            ("RF_STREAM_CAPTURE", CAPTURE),
            ("RF_STREAM_POSITIONED", POSITIONED),
        ] {
            assert!(header.contains(&format!(" {name} = {number}")), "{name}");
        }
    }
}
