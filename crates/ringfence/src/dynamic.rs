//! For hosts that learn types while they run: bindings of other languages, and command lines.
//!
//! What passes a gate is bits in registers of two kinds. Here they are passed as such; [`Func`] and
//! [`Imports::func`] do the same for types that the compiler knows.

use std::ffi::c_void;
use std::fmt;

use ringfence_runtime::{self as runtime, Call, Entry, OutFrame, Verdict};

use crate::error::with_cause;
use crate::value::{Arguments, Return};
use crate::{CallError, Caller, Func, Imports, Signature};

/// A function of a domain whose type is known at run time only. From [`Domain::function`](crate::Domain::function).
#[derive(Clone)]
pub struct Function(Entry);

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

    pub(crate) fn new(entry: Entry) -> Self {
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
        let (mut ints, mut floats) = ([0; 6], [0.0; 8]);
        let (mut used_ints, mut used_floats) = (0, 0);
        let mut stack = Vec::new(); // no allocation unless something is pushed
        for argument in arguments {
            let bits = match argument {
                Argument::Int(bits) if used_ints < ints.len() => {
                    ints[used_ints] = bits;
                    used_ints += 1;
                    continue;
                }
                Argument::Float(bits) if used_floats < floats.len() => {
                    floats[used_floats] = f64::from_bits(bits);
                    used_floats += 1;
                    continue;
                }
                Argument::Int(bits) | Argument::Float(bits) => bits,
            };
            stack.push(bits);
        }
        let returned = self
            .0
            .call(&mut Call {
                ints,
                floats,
                stack: &stack,
            })
            .map_err(with_cause)?;
        Ok(Results {
            int: returned.rax,
            float: returned.xmm0.to_bits(),
        })
    }

    /// A function pointer of the C convention for this signature. Valid for ever: once the domain is gone, calls fail. A call
    /// that fails returns 0, and [`take_error`] tells why.
    #[must_use]
    pub fn thunk(&self, signature: Signature) -> *const c_void {
        self.0.thunk(signature)
    }

    /// The function's address, to hand to the domain as a callback.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.0.address()
    }

    /// The same with a type.
    #[must_use]
    pub fn typed<A: Arguments, R: Return>(&self) -> Func<A, R> {
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

/// The [tag](crate::Domain::set_tag) of the innermost domain that has called out on this thread; 0 if none has.
#[must_use]
pub fn current_tag() -> u64 {
    runtime::domain::current_tag()
}

/// A call out of a domain, for a host function that reads its arguments one by one.
pub struct Incoming<'a>(&'a mut OutFrame);

impl Incoming<'_> {
    /// The calling domain.
    #[must_use]
    pub fn caller(&self) -> Caller<'_> {
        Caller::new(self.0.domain())
    }

    /// The n-th integer or pointer argument, from 0, of those in registers: up to 6.
    #[must_use]
    pub fn int(&self, n: usize) -> Option<u64> {
        self.0.ints.get(n).copied()
    }

    /// The bits of the n-th floating-point argument, from 0, of those in registers: up to 8.
    #[must_use]
    pub fn float(&self, n: usize) -> Option<u64> {
        self.0.vectors.get(n).map(|v| v[0])
    }

    /// The n-th word of arguments on the stack; `None` if the domain has nothing there.
    #[must_use]
    pub fn stacked(&self, n: usize) -> Option<u64> {
        self.0.stack_argument(n)
    }

    /// Sets the integer result; 0 unless set.
    pub fn return_int(&mut self, bits: u64) {
        self.0.result[0] = bits;
    }

    /// Sets the floating-point result's bits; 0 unless set.
    pub fn return_float(&mut self, bits: u64) {
        self.0.vector_result[0] = [bits, 0];
    }
}

impl fmt::Debug for Incoming<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Imports {
    /// Gives `function` under `name`: it reads its arguments and sets its results by itself. An `Err`, or a panic, ends the
    /// domain's call, with a fault that has this text.
    #[must_use]
    pub fn dynamic(
        self,
        name: &str,
        function: impl Fn(&mut Incoming<'_>) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self(
            self.0
                .closure(name, move |frame| match function(&mut Incoming(frame)) {
                    Ok(()) => Verdict::Return,
                    Err(why) => Verdict::Fail(why),
                }),
        )
    }
}
