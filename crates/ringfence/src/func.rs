//! Typed functions of a domain.

use std::fmt;
use std::marker::PhantomData;

use ringfence_runtime as runtime;

use crate::backend::Target;
use crate::dynamic::Function;
use crate::error::with_cause;
use crate::value::{Arguments, Return, Value, for_each_arity};
use crate::{BatchError, CallError, DomainError, HostError, Ptr, Signature, Untrusted};

/// An exported function with the type that the host claims it has.
///
/// Found once with [`Domain::func`](crate::Domain::func), called as often as you like: a call takes a few
/// nanoseconds and neither allocates, locks nor looks anything up. The claim about the type is not checked, because
/// machine code has no types; if it is wrong, the module gets and gives wrong numbers and nothing worse happens.
///
/// # Examples
/// ```no_run
/// # use ringfence::{Imports, Module, Ptr};
/// # let domain = Module::open("x.rf")?.instantiate(Imports::new())?;
/// let checksum = domain.func::<(u32, Ptr<u8>, usize), u32>("adler32")?;
/// let text = domain.memory().put_slice(b"some bytes")?;
/// let sum = checksum.call(1, text.ptr(), text.len())?;
/// println!("{:08x}", sum.into_inner_unchecked());
/// # Ok::<(), ringfence::Error>(())
/// ```
pub struct Func<A, R> {
    entry: Target,
    /// Made for exactly this signature; good for ever, an error once the domain is gone.
    thunk: unsafe extern "C" fn(),
    types: PhantomData<fn(A) -> R>,
}

impl<A: Arguments, R: Return> Func<A, R> {
    pub(crate) fn new(entry: Target) -> Result<Self, DomainError> {
        let thunk = entry.thunk(Self::SIGNATURE)?;
        Ok(Self::with(entry, thunk))
    }

    /// The same for a window's.
    pub(crate) fn of(entry: runtime::Entry) -> Result<Self, HostError> {
        let thunk = entry.try_thunk(Self::SIGNATURE)?;
        Ok(Self::with(Target::Window(entry), thunk))
    }

    fn with(entry: Target, thunk: *const std::ffi::c_void) -> Self {
        // SAFETY: a thunk is the address of code with the C calling convention.
        let thunk = unsafe { std::mem::transmute::<*const std::ffi::c_void, unsafe extern "C" fn()>(thunk) };
        Self {
            entry,
            thunk,
            types: PhantomData,
        }
    }

    /// What the gate passes; all other registers it clears.
    const SIGNATURE: Signature = Signature {
        ints: A::INTS as u8,
        floats: A::FLOATS as u8,
        stack: A::STACKED as u8,
        int_results: R::INTS,
        float_results: R::FLOATS,
        x87_results: 0,
        ..Signature::NOTHING
    };

    /// The same without its type.
    #[must_use]
    pub fn untyped(&self) -> Function {
        Function::new(self.entry.clone())
    }

    /// The function's address, to hand to the domain as a callback.
    #[must_use]
    pub fn ptr(&self) -> Ptr<()> {
        Ptr::from_address(self.entry.address())
    }
}

/// An argument of all calls of a [batch](Func::call_batch).
#[derive(Clone, Copy, Debug)]
pub enum Column<T> {
    /// An element of the array there for each call.
    Each(Ptr<T>),
    /// The same for all.
    Same(T),
}

impl<T: Value> Column<T> {
    fn untyped(self) -> runtime::domain::batch::Column {
        match self {
            Column::Each(array) => runtime::domain::batch::Column::Each(T::ELEMENT, array.address()),
            Column::Same(value) => runtime::domain::batch::Column::Same(T::ELEMENT, value.to_bits()),
        }
    }
}

impl<T> From<Ptr<T>> for Column<T> {
    fn from(array: Ptr<T>) -> Self {
        Column::Each(array)
    }
}

impl<A, R> Clone for Func<A, R> {
    fn clone(&self) -> Self {
        Self {
            entry: self.entry.clone(),
            thunk: self.thunk,
            types: PhantomData,
        }
    }
}

impl<A, R> fmt::Debug for Func<A, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Func({:#x}: {} -> {})",
            self.entry.address(),
            std::any::type_name::<A>(),
            std::any::type_name::<R>()
        )
    }
}

#[cold]
#[inline(never)]
fn failed() -> CallError {
    runtime::domain::take_error().map_or(CallError::Gone, with_cause)
}

macro_rules! call {
    ($($t:ident)*) => {
        impl<R: Return, $($t: Value),*> Func<($($t,)*), R> {
            /// Calls the function.
            ///
            /// # Errors
            /// [`CallError`]: the module's code failed, a host function that it called did, or the domain takes no calls.
            #[inline]
            #[allow(non_snake_case, clippy::too_many_arguments)]
            pub fn call(&self, $($t: $t),*) -> Result<Untrusted<R>, CallError> {
                type Thunk<R, $($t),*> = unsafe extern "C" fn($(<$t as Value>::Raw),*) -> <R as Return>::Raw;
                // SAFETY: both are function pointers of the C convention; the thunk was made for the registers and
                // stack words that these raw types occupy.
                let thunk = unsafe { std::mem::transmute::<unsafe extern "C" fn(), Thunk<R, $($t),*>>(self.thunk) };
                // SAFETY: a thunk is sound for all values; the domain is alive as long as `self.entry`. Raw results
                // are u64 and f64, for which every bit pattern is a value.
                let raw = unsafe { thunk($($t.to_raw()),*) };
                if runtime::domain::last_status() == 0 {
                    Ok(Untrusted::new(R::from_raw(raw)))
                } else {
                    Err(failed())
                }
            }

            /// Calls the function `count` times in one crossing, each time with the next element of the arrays among `columns`, and
            /// stores the results in the array `results` (which means nothing if the function returns nothing). The arrays lie in
            /// the domain's memory; the loop over them runs in the domain, and takes some nanoseconds for an element. Limits
            /// hold for the batch as for one call.
            ///
            /// The loop is code that the first batch of these types [adds](crate::Domain::add_code) to the domain.
            ///
            /// # Errors
            /// [`BatchError`]; [`BatchError::Call`] tells at which element the call ended.
            ///
            /// # Examples
            /// ```no_run
            /// # use ringfence::{Column, Imports, Module};
            /// # let domain = Module::open("x.rf")?.instantiate(Imports::new())?;
            /// let power = domain.func::<(f64, i32), f64>("power")?;
            /// let bases = domain.memory().put_slice(&[1.0, 2.0, 3.0])?;
            /// let results = domain.memory().alloc_array::<f64>(3)?;
            /// power.call_batch(3, (Column::Each(bases.ptr()), Column::Same(2)), results.ptr())?;
            /// assert_eq!(results.to_vec()?.into_inner_unchecked(), [1.0, 4.0, 9.0]);
            /// # Ok::<(), ringfence::Error>(())
            /// ```
            #[allow(non_snake_case)]
            pub fn call_batch(
                &self,
                count: usize,
                columns: ($(Column<$t>,)*),
                results: Ptr<R>,
            ) -> Result<(), BatchError> {
                let ($($t,)*) = columns;
                self.untyped().call_batch(
                    count,
                    &[$($t.untyped()),*],
                    R::STORED.map(|element| (element, results.address())),
                )
            }
        }
    };
}
for_each_arity!(call);
