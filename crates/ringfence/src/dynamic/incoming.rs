//! Calls out of a domain to host functions that read their arguments one by one.

use std::fmt;

use ringfence_runtime::{self as runtime, EndCall, OutFrame};

use crate::{Caller, Imports};

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
            self.0.closure(name, move |frame| {
                function(&mut Incoming(frame)).map_err(EndCall::Fail)
            }),
            self.1,
        )
    }
}
