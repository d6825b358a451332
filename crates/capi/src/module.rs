//! Modules: opening and ending.

use std::ffi::{c_char, c_int, c_void};

use ringfence::{Backend, ExportKind, LoadOptions, Module};

use crate::arguments::{self, Place, not_null, text};
use crate::error::status;
use crate::objects;
use crate::status::{Failure, Status};

/// The load options that the flags stand for.
pub(crate) fn load_options(flags: i32) -> Result<LoadOptions, Failure> {
    const INTEGRITY: i32 = 1;
    const UNFENCED: i32 = 2;
    const WORDS: i32 = 4;
    let unknown = flags & !(INTEGRITY | UNFENCED | WORDS);
    if unknown != 0 {
        return Err(Failure::new(
            Status::ERROR_ARGUMENT,
            format!("unknown flags {unknown:#x}"),
        ));
    }
    let mut options = LoadOptions::default();
    options.allow_integrity = flags & INTEGRITY != 0;
    options.allow_words = flags & WORDS != 0;
    if flags & UNFENCED != 0 {
        options.backend = Backend::None;
    }
    Ok(options)
}

/// See the header.
///
/// # Safety
/// `path` is null or a string, `module` null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_module_create(
    path: *const c_char,
    flags: i32,
    module: *mut *mut c_void,
) -> Status {
    status(|| {
        // SAFETY: the caller's promise.
        let module = unsafe { Place::new(module, "module") }?;
        // SAFETY: the caller's promise.
        let path = unsafe { arguments::path(path) }?;
        let opened = objects::add_module(Module::open_with(path, &load_options(flags)?)?)?;
        module.give(opened);
        Ok(())
    })
}

/// See the header.
///
/// # Safety
/// `bytes` is null or has `length` bytes, `name` is null or a string, `module` null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_module_create_from_bytes(
    bytes: *const c_void,
    length: usize,
    name: *const c_char,
    flags: i32,
    module: *mut *mut c_void,
) -> Status {
    status(|| {
        // SAFETY: the caller's promise.
        let module = unsafe { Place::new(module, "module") }?;
        not_null(bytes, "bytes")?;
        let name = if name.is_null() {
            "(memory)"
        } else {
            // SAFETY: the caller's promise.
            unsafe { text(name, "name") }?
        };
        // A copy: what is verified must be what is loaded, whatever the program does to its buffer.
        // SAFETY: the caller's promise.
        let bytes = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), length) }.to_vec();
        let opened = objects::add_module(Module::from_bytes(name, &bytes, &load_options(flags)?)?)?;
        module.give(opened);
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_module_destroy(module: *mut c_void) -> Status {
    status(|| {
        if module.is_null() {
            Ok(())
        } else {
            objects::remove_module(module)
        }
    })
}

/// `rf_symbol`.
#[repr(C)]
pub struct Symbol {
    name: *const c_char,
    kind: i32,
    imported: c_int,
    weak: c_int,
    size: u64,
}

const KIND_FUNCTION: i32 = 0;
const KIND_OBJECT: i32 = 1;
const KIND_THREAD_LOCAL: i32 = 2;

/// See the header.
///
/// # Safety
/// `visit` is null or a function that takes `context`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_module_visit(
    module: *const c_void,
    visit: Option<unsafe extern "C" fn(*mut c_void, *const Symbol) -> c_int>,
    context: *mut c_void,
) -> Status {
    status(|| {
        let module = objects::module(module)?;
        let visit = visit.ok_or_else(|| Failure::new(Status::ERROR_ARGUMENT, "visit is NULL"))?;
        let exports = module.exports().iter().map(|export| {
            let kind = match export.kind {
                ExportKind::Function => KIND_FUNCTION,
                ExportKind::Object => KIND_OBJECT,
                ExportKind::ThreadLocal => KIND_THREAD_LOCAL,
            };
            (&export.name, kind, None, export.size)
        });
        let imports = module.imports().iter().map(|import| {
            let kind = if import.function {
                KIND_FUNCTION
            } else {
                KIND_OBJECT
            };
            (&import.name, kind, Some(import.weak), 0)
        });
        let mut name = Vec::new();
        for (text, kind, imported, size) in exports.chain(imports) {
            name.clear();
            name.try_reserve(text.len() + 1)
                .map_err(|_| Failure::new(Status::ERROR_LIMIT, "out of memory"))?;
            name.extend_from_slice(text.as_bytes());
            name.push(0);
            let symbol = Symbol {
                name: name.as_ptr().cast(),
                kind,
                imported: c_int::from(imported.is_some()),
                weak: c_int::from(imported.unwrap_or(false)),
                size,
            };
            // SAFETY: the caller's promise; the symbol and its name live until the visitor has returned.
            if unsafe { visit(context, &raw const symbol) } != 0 {
                break;
            }
        }
        Ok(())
    })
}
