//! Functions: handles and checked calls.

use std::ffi::{c_char, c_void};
use std::ptr;

use ringfence::dynamic::{Argument, Column, Element, Function, Results};
use ringfence::{BatchError, Domain, Signature};
use ringfence_functions::{Func, Value as Typed};

use crate::arguments::{Place, not_null, pointer, text};
use crate::error::{border, status};
use crate::objects::{self, Callee};
use crate::prototype::{self, Named};
use crate::status::{Failure, Status};

/// `rf_value` of the header.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Value {
    kind: i32,
    bits: u64,
}

impl Value {
    /// The same, pointing elsewhere.
    pub(crate) fn point(&mut self, to: u64) {
        self.bits = to;
    }
}

const VOID: i32 = 0;
const I32: i32 = 1;
const U32: i32 = 2;
const I64: i32 = 3;
const U64: i32 = 4;
const PTR: i32 = 5;
const F32: i32 = 6;
const F64: i32 = 7;

impl Value {
    /// What it is as an argument; `None` if it can be none.
    fn argument(&self) -> Option<Argument> {
        Some(match self.kind {
            I32 => Argument::Int(self.bits as i32 as i64 as u64),
            U32 => Argument::Int(u64::from(self.bits as u32)),
            I64 | U64 | PTR => Argument::Int(self.bits),
            F32 => Argument::Float(u64::from(self.bits as u32)),
            F64 => Argument::Float(self.bits),
            _ => return None,
        })
    }

    /// What it is for a function whose type is known.
    fn typed(&self) -> Typed {
        match self.kind {
            I32 => Typed::Int(i64::from(self.bits as i32)),
            I64 => Typed::Int(self.bits as i64),
            U32 => Typed::Unsigned(u64::from(self.bits as u32)),
            PTR => Typed::Pointer(self.bits),
            F32 => Typed::Float(f64::from(f32::from_bits(self.bits as u32))),
            F64 => Typed::Float(f64::from_bits(self.bits)),
            _ => Typed::Unsigned(self.bits),
        }
    }
}

fn bad_type(kind: i32) -> Failure {
    Failure::new(
        Status::ERROR_ARGUMENT,
        format!("{kind} is no rf_type that a value can have here"),
    )
}

/// The arguments of a call, and the type that its result is to have, where zeroes are now.
///
/// # Safety
/// `arguments` is null or has `count` values, which nobody changes during the call; `result` is null or writable.
unsafe fn checked<'a>(
    arguments: *const Value,
    count: usize,
    result: *mut Value,
) -> Result<(&'a [Value], i32), Failure> {
    let kind = if result.is_null() {
        VOID
    } else {
        // SAFETY: not null, so readable and writable.
        unsafe {
            (*result).bits = 0;
            (*result).kind
        }
    };
    if !(VOID..=F64).contains(&kind) {
        return Err(bad_type(kind));
    }
    if arguments.is_null() && count > 0 {
        return Err(Failure::new(
            Status::ERROR_ARGUMENT,
            "arguments is NULL but count is not 0",
        ));
    }
    if count > Function::MOST_ARGUMENTS {
        let most = Function::MOST_ARGUMENTS;
        return Err(Failure::new(
            Status::ERROR_TOO_LONG,
            format!("{count} arguments; at most {most} pass"),
        ));
    }
    let list = if count == 0 {
        &[]
    } else {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts(arguments, count) }
    };
    if let Some(bad) = list.iter().find(|v| v.argument().is_none()) {
        return Err(bad_type(bad.kind));
    }
    Ok((list, kind))
}

/// The arguments as they are in integer registers; floating-point numbers are none.
///
/// # Safety
/// `arguments` is null or has `count` values.
pub(crate) unsafe fn integers(arguments: *const Value, count: usize) -> Result<Vec<u64>, Failure> {
    // SAFETY: the caller's promise.
    let (list, _) = unsafe { checked(arguments, count, ptr::null_mut()) }?;
    let integer = |v: &Value| match v.argument() {
        Some(Argument::Int(n)) => n,
        _ => 0,
    };
    Ok(list.iter().map(integer).collect())
}

/// Calls `function`.
///
/// # Safety
/// As for [`checked`].
pub(crate) unsafe fn call(
    function: &Function,
    arguments: *const Value,
    count: usize,
    result: *mut Value,
) -> Result<(), Failure> {
    // SAFETY: the caller's promise.
    let (list, kind) = unsafe { checked(arguments, count, result) }?;
    let Results { int, float } = function.call(list.iter().filter_map(Value::argument))?;
    if !result.is_null() {
        let bits = match kind {
            VOID => 0,
            I32 | U32 => u64::from(int as u32),
            F32 => u64::from(float as u32),
            F64 => float,
            _ => int,
        };
        // SAFETY: not null, so writable.
        unsafe { (*result).bits = bits };
    }
    Ok(())
}

/// Calls a function whose type is known: arguments are converted to it, and the result from it.
///
/// # Safety
/// As for [`checked`].
unsafe fn call_text(
    func: &Func,
    arguments: *const Value,
    count: usize,
    result: *mut Value,
) -> Result<(), Failure> {
    // SAFETY: the caller's promise.
    let (list, kind) = unsafe { checked(arguments, count, result) }?;
    let values: Vec<Typed> = list.iter().map(Value::typed).collect();
    let returned = func.call(&values)?;
    if result.is_null() {
        return Ok(());
    }
    let bits = match (kind, returned) {
        (VOID, _) => 0,
        (I32 | U32, Typed::Int(n)) => u64::from(n as u32),
        (I32 | U32, Typed::Unsigned(n)) => u64::from(n as u32),
        (I64 | U64 | PTR, Typed::Int(n)) => n as u64,
        (I64 | U64 | PTR, Typed::Unsigned(n) | Typed::Pointer(n)) => n,
        (F32, Typed::Float(x)) => u64::from((x as f32).to_bits()),
        (F64, Typed::Float(x)) => x.to_bits(),
        _ => {
            let message = format!(
                "{} is {}: result->type does not fit",
                func.name(),
                func.prototype()
            );
            return Err(Failure::new(Status::ERROR_TYPE, message));
        }
    };
    // SAFETY: not null, so writable.
    unsafe { (*result).bits = bits };
    Ok(())
}

/// `rf_column` of the header.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct BatchColumn {
    array: *const c_void,
    value: Value,
}

/// What an array's elements of this type are; `None` if there are none such.
fn element(kind: i32) -> Option<Element> {
    const I8: i32 = 8;
    const U8: i32 = 9;
    const I16: i32 = 10;
    const U16: i32 = 11;
    Some(match kind {
        I8 => Element::I8,
        U8 => Element::U8,
        I16 => Element::I16,
        U16 => Element::U16,
        I32 => Element::I32,
        U32 => Element::U32,
        I64 | U64 | PTR => Element::Word,
        F32 => Element::F32,
        F64 => Element::F64,
        _ => return None,
    })
}

impl BatchColumn {
    fn column(&self) -> Result<Column, Failure> {
        let kind = self.value.kind;
        let column = match (element(kind), self.array.is_null(), self.value.argument()) {
            (Some(element), false, _) => Column::Each(element, self.array as u64),
            (Some(element), true, Some(Argument::Int(bits) | Argument::Float(bits))) => {
                Column::Same(element, bits)
            }
            _ => return Err(bad_type(kind)),
        };
        Ok(column)
    }
}

/// See the header.
///
/// # Safety
/// `columns` is null or has `column_count` of them; `done` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_function_call_batch(
    function: *mut c_void,
    count: usize,
    columns: *const BatchColumn,
    column_count: usize,
    kind: i32,
    results: *mut c_void,
    done: *mut usize,
) -> Status {
    let tell = |n: usize| {
        if !done.is_null() {
            // SAFETY: not null, so writable.
            unsafe { *done = n };
        }
    };
    status(|| {
        tell(0);
        let object = objects::function(function)?;
        if column_count > 0 {
            not_null(columns, "columns")?;
        }
        if column_count > Function::MOST_ARGUMENTS {
            return Err(BatchError::Shape.into());
        }
        let list = match column_count {
            0 => &[],
            // SAFETY: the caller's promise.
            _ => unsafe { std::slice::from_raw_parts(columns, column_count) },
        };
        let list: Vec<Column> = list.iter().map(BatchColumn::column).collect::<Result<_, _>>()?;
        let to = match kind {
            VOID => None,
            _ => Some((element(kind).ok_or_else(|| bad_type(kind))?, results as u64)),
        };
        let called = object.function.entry()?.call_batch(count, &list, to);
        match &called {
            Ok(()) => tell(count),
            Err(BatchError::Call { element: Some(n), .. }) => tell(*n as usize),
            Err(_) => {}
        }
        Ok(called?)
    })
}

/// Puts the handle of the function that `find` finds by its name where `function` points; null there if there is none.
///
/// # Safety
/// `name` is null or a string, `function` null or writable.
pub(crate) unsafe fn find_function<E: Into<Failure>>(
    domain: *mut c_void,
    name: *const c_char,
    function: *mut *mut c_void,
    find: impl FnOnce(&Domain, &str) -> Result<Function, E>,
) -> Result<(), Failure> {
    // SAFETY: the caller's promise.
    let function = unsafe { Place::new(function, "function") }?;
    let object = objects::domain(domain)?;
    // SAFETY: the caller's promise.
    let name = unsafe { text(name, "name") }?;
    let entry = find(&object.domain, name).map_err(Into::into)?;
    let handle = objects::add_function(&object, Callee::Entry(entry))?;
    function.give(handle);
    Ok(())
}

/// See the header.
///
/// # Safety
/// `name` is null or a string, `function` null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_function_create(
    domain: *mut c_void,
    name: *const c_char,
    function: *mut *mut c_void,
) -> Status {
    // SAFETY: the caller's promise.
    status(|| unsafe { find_function(domain, name, function, Domain::function) })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_function_destroy(function: *mut c_void) -> Status {
    status(|| {
        if function.is_null() {
            Ok(())
        } else {
            objects::remove_function(function)
        }
    })
}

/// See the header.
///
/// # Safety
/// `arguments` is null or has `count` values; `result` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_function_call(
    function: *mut c_void,
    arguments: *const Value,
    count: usize,
    result: *mut Value,
) -> Status {
    status(|| {
        let object = objects::function(function)?;
        // SAFETY: the caller's promise.
        unsafe {
            match &object.function {
                Callee::Entry(function) => call(function, arguments, count, result),
                Callee::Text(func) => call_text(func, arguments, count, result),
            }
        }
    })
}

/// See the header.
///
/// # Safety
/// `module` and `name` are null or strings, `function` null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_function_create_in(
    domain: *mut c_void,
    module: *const c_char,
    name: *const c_char,
    function: *mut *mut c_void,
) -> Status {
    // SAFETY: the caller's promise.
    status(|| unsafe {
        not_null(function, "function")?;
        *function = ptr::null_mut();
        let module = text(module, "module")?;
        find_function(domain, name, function, |domain, name| {
            domain.function_in(module, name)
        })
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_function_address(function: *mut c_void) -> *mut c_void {
    border(
        |_| ptr::null_mut(),
        || {
            let object = objects::function(function)?;
            Ok(pointer(object.function.entry()?.address()))
        },
    )
}

/// See the header.
///
/// # Safety
/// `prototype` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_function_pointer(function: *mut c_void, prototype: *const c_char) -> *mut c_void {
    border(
        |_| ptr::null_mut(),
        || {
            let object = objects::function(function)?;
            // SAFETY: the caller's promise.
            let claimed = unsafe { text(prototype, "prototype") }?;
            let signature = typed(claimed)?;
            if let Callee::Text(func) = &object.function {
                let own = func.prototype().declaration(func.name());
                if func.prototype().has_records() || typed(&own)? != signature {
                    let message = format!("{claimed}: the text has {own}");
                    return Err(Failure::new(Status::ERROR_TYPE, message));
                }
            }
            Ok(object.function.entry()?.try_thunk(signature)?.cast_mut())
        },
    )
}

/// What a gate has to know of a function that is declared so.
fn typed(declaration: &str) -> Result<Signature, Failure> {
    match prototype::read(declaration)? {
        Named::Function(_, signature) => Ok(signature),
        Named::Untyped(name) | Named::Bare(name) => Err(prototype::no_type(
            name,
            &format!("write \"int {name}(int, int)\", with the types that it has"),
        )),
    }
}
