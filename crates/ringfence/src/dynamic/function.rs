//! Calls into a domain of functions whose types are known at run time only.

use std::ffi::c_void;
use std::fmt;

pub use ringfence_runtime::domain::batch::{Column, Element};
use ringfence_runtime::{self as runtime, Call};

use crate::backend::Target;
use crate::error::with_cause;
use crate::value::{Arguments, Return};
use crate::{BatchError, CallError, CodeError, DomainError, Feature, Func, Signature, Unsupported};

/// A function of a domain whose type is known at run time only. From [`Domain::function`](crate::Domain::function).
#[derive(Clone)]
pub struct Function(Target);

/// An argument: its bits, and the kind of register that it travels in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// An integer or a pointer, extended to 64 bits.
    Int(u64),
    /// A floating-point number: an `f64`, or an `f32` in the lower half.
    Float(u64),
}

/// What a call left in the result registers; which of them means something, the caller knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Results {
    /// The integer result.
    pub int: u64,
    /// The floating-point result's bits; an `f32` is the lower half.
    pub float: u64,
}

impl Function {
    /// How many arguments pass at most, in registers and on the stack together.
    pub const MOST_ARGUMENTS: usize = 14 + runtime::domain::MAX_STACK_WORDS;

    pub(crate) fn new(entry: Target) -> Self {
        Self(entry)
    }

    /// Calls it. Arguments that find no register go onto the domain's stack.
    ///
    /// # Errors
    /// [`CallError`]; [`CallError::Arguments`] if there are more than [`MOST_ARGUMENTS`](Self::MOST_ARGUMENTS).
    ///
    /// # Examples
    /// ```no_run
    /// # use ringfence::{Imports, Module, dynamic::Argument};
    /// # let domain = Module::open("x.rf")?.instantiate(Imports::new())?;
    /// let add = domain.function("add")?;
    /// assert_eq!(add.call([Argument::Int(2), Argument::Int(3)])?.int as i32, 5);
    /// # Ok::<(), ringfence::Error>(())
    /// ```
    pub fn call(&self, arguments: impl IntoIterator<Item = Argument>) -> Result<Results, CallError> {
        // Filled in its place: what is copied right after it was written is waited for.
        let mut call = Call::default();
        let (mut used_ints, mut used_floats) = (0, 0);
        let mut stack = Vec::new(); // no allocation unless something is pushed
        for argument in arguments {
            let bits = match argument {
                Argument::Int(bits) if used_ints < call.ints.len() => {
                    call.ints[used_ints] = bits;
                    used_ints += 1;
                    continue;
                }
                Argument::Float(bits) if used_floats < call.floats.len() => {
                    call.floats[used_floats] = f64::from_bits(bits);
                    used_floats += 1;
                    continue;
                }
                Argument::Int(bits) | Argument::Float(bits) => bits,
            };
            stack.push(bits);
        }
        call.stack = &stack;
        let returned = self.0.call(&mut call).map_err(with_cause)?;
        Ok(Results {
            int: returned.rax,
            float: returned.xmm0.to_bits(),
        })
    }

    /// Calls it `count` times in one crossing, as [`Func::call_batch`] does: `results` is the type of what it returns, and the address of
    /// the array where that goes.
    ///
    /// # Errors
    /// [`BatchError`]. The [back end](crate::Domain::backend) has to take code that comes later.
    pub fn call_batch(
        &self,
        count: usize,
        columns: &[Column],
        results: Option<(Element, u64)>,
    ) -> Result<(), BatchError> {
        let entry = match &self.0 {
            Target::Window(entry) => entry,
            Target::Other(instance, _) => {
                let backend = instance.backend();
                return Err(CodeError::Unsupported(Unsupported {
                    feature: Feature::Code,
                    backend,
                })
                .into());
            }
        };
        let done = entry.call_batch(count as u64, columns, results);
        done.map_err(|error| match error {
            BatchError::Call { element, source } => BatchError::Call {
                element,
                source: with_cause(source),
            },
            other => other,
        })
    }

    /// A function pointer of the C convention for this signature. Valid for ever: once the domain is gone, calls fail. A call
    /// that fails returns 0, and [`take_error`] tells why.
    ///
    /// # Panics
    /// If the system has no memory for another one: see [`try_thunk`](Self::try_thunk).
    #[must_use]
    pub fn thunk(&self, signature: Signature) -> *const c_void {
        self.try_thunk(signature).expect("memory for a function pointer")
    }

    /// As [`thunk`](Self::thunk).
    ///
    /// # Errors
    /// [`DomainError::Host`] if the system has no memory for another one.
    pub fn try_thunk(&self, signature: Signature) -> Result<*const c_void, DomainError> {
        self.0.thunk(signature)
    }

    /// The function's address, to hand to the domain as a callback.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.0.address()
    }

    /// The same with a type.
    ///
    /// # Panics
    /// If the system has no memory for another function pointer.
    #[must_use]
    pub fn typed<A: Arguments, R: Return>(&self) -> Func<A, R> {
        self.try_typed().expect("memory for a function pointer")
    }

    /// As [`typed`](Self::typed).
    ///
    /// # Errors
    /// [`DomainError::Host`] if the system has no memory for another function pointer.
    pub fn try_typed<A: Arguments, R: Return>(&self) -> Result<Func<A, R>, DomainError> {
        Func::new(self.0.clone())
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Function({:#x})", self.address())
    }
}

/// Why the last failed call through a [thunk](Function::thunk) on this thread failed; `None` from then on, until the next fails.
#[must_use]
pub fn take_error() -> Option<CallError> {
    runtime::domain::take_error().map(with_cause)
}
