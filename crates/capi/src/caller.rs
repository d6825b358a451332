//! Host functions for domains: plain C functions and callbacks with a context.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, OnceLock, PoisonError};

use ringfence::dynamic::{self, Incoming};
use ringfence::{Imports, Signature};

use crate::arguments::{pointer, text};
use crate::error::{border, fail};
use crate::handles::LateHandle;
use crate::prototype::{self, Named};
use crate::status::{Failure, Status};

/// `rf_import` of the header.
#[repr(C)]
pub struct Import {
    name: *const c_char,
    function: *const c_void,
    callback: Option<Callback>,
    context: *mut c_void,
}

impl Import {
    pub(crate) fn name(&self) -> *const c_char {
        self.name
    }

    /// The same under a copy of its name.
    pub(crate) fn named(&self, name: *const c_char) -> Import {
        Import { name, ..*self }
    }
}

pub(crate) type Callback = unsafe extern "C" fn(caller: *mut Caller, context: *mut c_void);

/// `rf_caller` of the header: one call out of a domain.
pub struct Caller {
    frame: *mut Incoming<'static>,
    domain: u64,
    failure: Option<String>,
    /// The call out that was in progress on this thread before.
    outer: *const Caller,
}

thread_local! {
    /// The innermost call out on this thread. What C code passes as `rf_caller` is looked for in this list, and
    /// followed only if it is there.
    static INNERMOST: Cell<*const Caller> = const { Cell::new(ptr::null()) };
}

/// The innermost call out of a callback on this thread.
pub(crate) fn innermost() -> *const Caller {
    INNERMOST.get()
}

/// The callbacks that were begun since `caller` was the innermost are left.
pub(crate) fn leave_to(caller: *const Caller) {
    INNERMOST.set(caller);
}

/// What the host lets every `rf_dlopen` use.
static PROVIDED: OnceLock<Mutex<BTreeMap<String, (usize, Signature)>>> = OnceLock::new();

/// `context` of a callback: the C program's, and its business.
pub(crate) struct Context(pub(crate) *mut c_void);
// SAFETY: never followed by us; the header says that callbacks run on any thread.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

/// Adds an array of `rf_import` to `imports`, in place of what has the same names.
///
/// # Safety
/// `list` is null or points to `count` imports whose names are null or strings, and whose functions obey the header.
pub(crate) unsafe fn read_imports(
    mut imports: Imports,
    list: *const Import,
    count: usize,
    late: &LateHandle,
) -> Result<Imports, Failure> {
    if list.is_null() && count > 0 {
        return Err(Failure::new(
            Status::ERROR_ARGUMENT,
            "imports is NULL but import_count is not 0",
        ));
    }
    for i in 0..count {
        // SAFETY: the caller's promise.
        let import = unsafe { &*list.add(i) };
        // SAFETY: the caller's promise.
        let name = unsafe { text(import.name, "the name of an import") }?;
        imports = match (import.function.is_null(), import.callback) {
            (false, None) => {
                let (name, signature) = plain(name)?;
                // SAFETY: the header demands of a plain function what is demanded here.
                unsafe { imports.plain(name, import.function, signature) }
            }
            (true, Some(callback)) => {
                let name = callback_name(name)?;
                let (late, context) = (late.clone(), Context(import.context));
                imports.dynamic(name, move |frame| call_back(callback, &context, &late, frame))
            }
            _ => {
                let message = format!("import {name}: set exactly one of function and callback");
                return Err(Failure::new(Status::ERROR_ARGUMENT, message));
            }
        };
    }
    Ok(imports)
}

/// The imports of a domain that `rf_dlopen` makes.
pub(crate) fn provided() -> Imports {
    let provided = PROVIDED
        .get_or_init(Mutex::default)
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    provided
        .iter()
        .fold(Imports::new(), |imports, (name, &(function, signature))| {
            // SAFETY: the header demands of the function what is demanded here.
            unsafe { imports.plain(name, function as *const c_void, signature) }
        })
}

/// The name and the type of a host function that is given as it is.
fn plain(text: &str) -> Result<(&str, Signature), Failure> {
    match prototype::read(text)? {
        Named::Function(name, signature) if signature.stack == 0 => Ok((name, signature)),
        Named::Function(name, signature) => Err(Failure::new(
            Status::ERROR_TYPE,
            format!(
                "{name}: {} words of its arguments travel on the stack, which do not reach a host function as they are: give \
                 a callback (rf_caller_arg_stack)",
                signature.stack
            ),
        )),
        Named::Untyped(name) => Ok((name, Signature::UNKNOWN)),
        Named::Bare(name) => Err(prototype::no_type(
            name,
            &format!(
                "write RF_IMPORT_INIT(int, {name}, (int, int), function) or \"int {name}(int, int)\" for its name, with \
                 the types that it has"
            ),
        )),
    }
}

/// Callbacks take their arguments one by one, by their types: a prototype would be ignored.
fn callback_name(text: &str) -> Result<&str, Failure> {
    match prototype::read(text)? {
        Named::Bare(name) => Ok(name),
        Named::Function(name, _) | Named::Untyped(name) => Err(Failure::new(
            Status::ERROR_TYPE,
            format!("import {text}: a callback is given under its name only, {name}"),
        )),
    }
}

/// Runs a callback for a call out.
pub(crate) fn call_back(
    callback: Callback,
    context: &Context,
    late: &LateHandle,
    frame: &mut Incoming<'_>,
) -> Result<(), String> {
    let outer = INNERMOST.get();
    let domain = late.load(Ordering::Acquire);
    let mut caller = Caller {
        frame: ptr::from_mut(frame).cast(),
        domain,
        failure: None,
        outer,
    };
    INNERMOST.set(&raw const caller);
    // SAFETY: the header says what a callback is; it gets a pointer that is good until it returns.
    unsafe { callback(&raw mut caller, context.0) };
    INNERMOST.set(outer);
    caller.failure.map_or(Ok(()), Err)
}

/// Runs `f` on a call out that is in progress on this thread; anything else is an error.
#[inline]
fn with_caller<T>(caller: *const Caller, otherwise: T, f: impl FnOnce(&mut Caller) -> T) -> T {
    if !caller.is_null() && caller == INNERMOST.get() {
        // SAFETY: it is on this thread's stack until its callback returns; nobody else uses it while C code runs.
        return f(unsafe { &mut *caller.cast_mut() });
    }
    with_outer_caller(caller, otherwise, f)
}

#[cold]
fn with_outer_caller<T>(caller: *const Caller, otherwise: T, f: impl FnOnce(&mut Caller) -> T) -> T {
    border(
        |_| otherwise,
        || {
            let mut known = INNERMOST.get();
            while known != caller {
                if known.is_null() {
                    return Err(Failure::new(
                        Status::ERROR_HANDLE,
                        format!("{caller:?} is no call in progress on this thread"),
                    ));
                }
                // SAFETY: a member of the list is on this thread's stack until its callback returns.
                known = unsafe { (*known).outer };
            }
            if caller.is_null() {
                return Err(Failure::new(Status::ERROR_HANDLE, "NULL is no rf_caller"));
            }
            // SAFETY: it is in the list; nobody else uses it while C code of this thread runs.
            Ok(f(unsafe { &mut *caller.cast_mut() }))
        },
    )
}

fn frame(caller: &mut Caller) -> &mut Incoming<'static> {
    // SAFETY: the frame outlives the callback, and the callback outlives every use of `caller`.
    unsafe { &mut *caller.frame }
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_caller_arg_int(caller: *const Caller, n: u32) -> u64 {
    with_caller(caller, 0, |c| frame(c).int(n as usize).unwrap_or(0))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_caller_arg_f64(caller: *const Caller, n: u32) -> f64 {
    with_caller(caller, 0.0, |c| {
        frame(c).float(n as usize).map_or(0.0, f64::from_bits)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_caller_arg_f32(caller: *const Caller, n: u32) -> f32 {
    with_caller(caller, 0.0, |c| {
        frame(c)
            .float(n as usize)
            .map_or(0.0, |bits| f32::from_bits(bits as u32))
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_caller_arg_stack(caller: *const Caller, n: u32) -> u64 {
    with_caller(caller, 0, |c| frame(c).stacked(n as usize).unwrap_or(0))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_caller_return_int(caller: *mut Caller, value: u64) {
    with_caller(caller, (), |c| frame(c).return_int(value));
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_caller_return_f64(caller: *mut Caller, value: f64) {
    with_caller(caller, (), |c| frame(c).return_float(value.to_bits()));
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_caller_return_f32(caller: *mut Caller, value: f32) {
    with_caller(caller, (), |c| frame(c).return_float(value.to_bits().into()));
}

/// See the header.
///
/// # Safety
/// `message` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_caller_fail(caller: *mut Caller, message: *const c_char) {
    // SAFETY: the caller's promise.
    let message = unsafe { text(message, "message") }.unwrap_or("a host callback failed");
    with_caller(caller, (), |c| c.failure = Some(message.to_owned()));
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_caller_domain(caller: *const Caller) -> *mut c_void {
    let handle = if caller.is_null() {
        // A plain function asks: the runtime knows which domain called out.
        dynamic::current_tag()
    } else {
        with_caller(caller, 0, |c| c.domain)
    };
    if handle == 0 {
        fail(Failure::new(
            Status::ERROR_HANDLE,
            "no domain with a handle calls out on this thread",
        ));
    }
    pointer(handle)
}

/// Lets every `rf_dlopen` use a function, or no longer if it is null.
pub(crate) fn provide(name: &str, function: *const c_void) -> Result<(), Failure> {
    let (name, signature) = match prototype::read(name)? {
        Named::Bare(name) if function.is_null() => (name, Signature::NOTHING),
        _ => plain(name)?,
    };
    let mut provided = PROVIDED
        .get_or_init(Mutex::default)
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    if function.is_null() {
        provided.remove(name);
    } else {
        provided.insert(name.to_owned(), (function as usize, signature));
    }
    Ok(())
}
