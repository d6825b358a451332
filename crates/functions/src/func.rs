//! Handles of functions.

use std::fmt;
use std::sync::Arc;

use ringfence::dynamic::{Argument, Type};
use ringfence::{CallError, HostCause, Untrusted, Value as Scalar};

use crate::FunctionError;
use crate::trampolines::{CalledDeleted, Trampoline};
use crate::value::{self, Prototype, Value};

/// A function of a [`Runtime`](crate::Runtime). Cheap to clone, usable from any thread; it stays what it is when the function is
/// replaced or the runtime is reset. Once the function is deleted, calls fail with [`FunctionError::Deleted`], also when
/// another one gets its name.
///
/// The runtime's memory lives as long as its last handle.
#[derive(Clone)]
pub struct Func {
    pub(crate) trampoline: Arc<Trampoline>,
}

impl Func {
    /// The function's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.trampoline.name
    }

    /// Its type.
    #[must_use]
    pub fn prototype(&self) -> &Prototype {
        &self.trampoline.prototype
    }

    /// The address by which other code of the runtime calls it, to hand to a function as a pointer.
    ///
    /// # Errors
    /// [`FunctionError::Deleted`].
    pub fn address(&self) -> Result<u64, FunctionError> {
        Ok(self.target()?.address())
    }

    /// What Ringfence calls it by, without its type: for batches. Good until the runtime is reset. It goes through the function's
    /// trampoline, so that a replacement counts at once; its own errors know nothing of deleted functions.
    ///
    /// # Errors
    /// [`FunctionError::Deleted`].
    pub fn target(&self) -> Result<ringfence::dynamic::Function, FunctionError> {
        self.trampoline.state()?;
        Ok(self.trampoline.entry())
    }

    /// Calls it with values that are converted to the types of its parameters.
    ///
    /// # Errors
    /// [`FunctionError::Deleted`], also if it calls a deleted function; [`FunctionError::Count`], [`FunctionError::Argument`],
    /// [`FunctionError::Call`]; [`FunctionError::Type`] if it takes or returns structures or `long double`.
    pub fn call(&self, arguments: &[Value]) -> Result<Value, FunctionError> {
        self.trampoline.state()?;
        let bits = self.passed(arguments)?;
        let results = self.trampoline.entry().call(bits).map_err(|e| self.failed(e))?;
        Ok(value::result(self.trampoline.prototype.result, results))
    }

    /// Whether a [`call`](Self::call) would take these arguments.
    ///
    /// # Errors
    /// [`FunctionError::Count`], [`FunctionError::Argument`], [`FunctionError::Type`], as of a call.
    pub fn check(&self, arguments: &[Value]) -> Result<(), FunctionError> {
        self.passed(arguments).map(drop)
    }

    /// Arguments as they are passed.
    fn passed(&self, arguments: &[Value]) -> Result<Vec<Argument>, FunctionError> {
        let prototype = &self.trampoline.prototype;
        if prototype.has_records() || prototype.has_long_doubles() {
            let wanted = "one without structures and long double, which only functions pass to each other";
            return Err(self.other_type(wanted.to_owned()));
        }
        if prototype.params.len() != arguments.len() {
            return Err(FunctionError::Count {
                name: self.name().to_owned(),
                wanted: prototype.params.len(),
                given: arguments.len(),
            });
        }
        prototype
            .params
            .iter()
            .zip(arguments)
            .enumerate()
            .map(|(i, (&kind, &given))| {
                value::argument(kind, given).ok_or_else(|| FunctionError::Argument {
                    name: self.name().to_owned(),
                    number: i + 1,
                    wanted: value::range(kind),
                })
            })
            .collect()
    }

    /// The same with its Rust type, for calls that take nanoseconds.
    ///
    /// # Errors
    /// [`FunctionError::Type`] if that is not its type, [`FunctionError::Deleted`].
    pub fn typed<A: ringfence::Arguments, R: ringfence::Return>(
        &self,
    ) -> Result<TypedFunc<A, R>, FunctionError> {
        let claimed = Prototype::of_host(&Type::of::<A, R>());
        if !claimed.serves(&self.trampoline.prototype) {
            return Err(self.other_type(claimed.to_string()));
        }
        let state = self.trampoline.state()?;
        let target = self.trampoline.entry().try_typed()?;
        Ok(TypedFunc {
            func: self.clone(),
            state,
            target,
        })
    }

    fn other_type(&self, wanted: String) -> FunctionError {
        FunctionError::Type {
            name: self.name().to_owned(),
            has: self.trampoline.prototype.to_string(),
            wanted,
        }
    }

    /// What a failed call means here.
    #[cold]
    fn failed(&self, error: CallError) -> FunctionError {
        if let CallError::Host(failure) = &error
            && let HostCause::Error(cause) = &failure.cause
            && let Some(CalledDeleted(name)) = cause.downcast_ref()
        {
            return FunctionError::Deleted { name: name.clone() };
        }
        match (error, self.trampoline.state()) {
            // Between the look and the call.
            (CallError::Removed, Err(deleted)) => deleted,
            (CallError::Fault(fault), _) => {
                FunctionError::Call(CallError::Fault(self.trampoline.places.named(&fault).into()))
            }
            (error, _) => FunctionError::Call(error),
        }
    }
}

impl fmt::Debug for Func {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Func({}: {})", self.trampoline.name, self.trampoline.prototype)
    }
}

/// A function with its Rust type. From [`Func::typed`].
pub struct TypedFunc<A, R> {
    func: Func,
    /// In which life of the runtime it was looked up.
    state: u64,
    target: ringfence::Func<A, R>,
}

impl<A: ringfence::Arguments, R: ringfence::Return> TypedFunc<A, R> {
    /// The function, without its type.
    #[must_use]
    pub fn untyped(&self) -> &Func {
        &self.func
    }

    /// What Ringfence calls it by: for batches ([`ringfence::Func::call_batch`]). Good until the runtime is reset. It is called
    /// through its trampoline, so that a replacement counts at once.
    ///
    /// # Errors
    /// [`FunctionError::Deleted`]; [`FunctionError::Domain`] if there is no memory for another function pointer.
    pub fn target(&self) -> Result<ringfence::Func<A, R>, FunctionError> {
        match self.func.trampoline.state()? == self.state {
            true => Ok(self.target.clone()),
            false => Ok(self.func.trampoline.entry().try_typed()?),
        }
    }
}

impl<A, R> Clone for TypedFunc<A, R> {
    fn clone(&self) -> Self {
        TypedFunc {
            func: self.func.clone(),
            state: self.state,
            target: self.target.clone(),
        }
    }
}

impl<A, R> fmt::Debug for TypedFunc<A, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.func.fmt(f)
    }
}

macro_rules! call {
    ($($t:ident)*) => {
        impl<R: ringfence::Return, $($t: Scalar),*> TypedFunc<($($t,)*), R> {
            /// Calls the function. After a reset of the runtime each call looks the function up; get the handle anew then.
            ///
            /// # Errors
            /// [`FunctionError::Deleted`], also if it calls a deleted function; [`FunctionError::Call`].
            #[inline]
            #[allow(non_snake_case, clippy::too_many_arguments)]
            pub fn call(&self, $($t: $t),*) -> Result<Untrusted<R>, FunctionError> {
                if self.func.trampoline.state()? == self.state {
                    return self.target.call($($t),*).map_err(|e| self.func.failed(e));
                }
                self.target()?.call($($t),*).map_err(|e| self.func.failed(e))
            }
        }
    };
}
call!();
call!(A1);
call!(A1 A2);
call!(A1 A2 A3);
call!(A1 A2 A3 A4);
call!(A1 A2 A3 A4 A5);
call!(A1 A2 A3 A4 A5 A6);
call!(A1 A2 A3 A4 A5 A6 A7);
call!(A1 A2 A3 A4 A5 A6 A7 A8);
