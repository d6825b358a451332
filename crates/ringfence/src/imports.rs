//! What the host gives to a domain: closures with typed arguments.

use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};

use ringfence_runtime::domain::DomainRef;
use ringfence_runtime::domain::batch::Element;
use ringfence_runtime::{self as runtime, EndCall, Feature, HostCause, OutFrame, Panic, Unsupported};

use crate::backend::Kind;
use crate::error::leave_failure;
use crate::value::{Class, Return, Value, for_each_arity};
use crate::{Domain, Memory, OnFailure, Signature};

/// The functions that a domain may call in the host, by name. A domain can call nothing else.
///
/// Arguments are whatever the domain put into registers: the closure's types say how to read the bits, not what
/// they are. Take [`Untrusted<T>`](crate::Untrusted) arguments to be made to check them, or plain types where
/// any value is fine.
///
/// A closure may return a value, `()`, or a `Result` of these; an `Err`, or a panic, ends the domain's call with
/// [`CallError::Host`](crate::CallError::Host). Closures run on the thread that called the domain, on the host's
/// own stack, and may call into domains again.
///
/// # Examples
/// ```
/// use ringfence::{Caller, Imports, Ptr, Untrusted};
///
/// let log = std::sync::Mutex::new(Vec::new());
/// let imports = Imports::new()
///     .func("host_add", |a: i32, b: i32| a.wrapping_add(b))
///     .func("host_log", move |caller: &Caller, text: Ptr<u8>, length: Untrusted<u32>| {
///         let length = length.within(0..=4096)?;
///         let bytes = caller.memory().read_vec(text, length as usize)?.into_inner_unchecked();
///         log.lock().unwrap().push(String::from_utf8_lossy(&bytes).into_owned());
///         Ok::<(), ringfence::Error>(())
///     });
/// assert_eq!(imports.names().count(), 2);
/// ```
#[derive(Default)]
pub struct Imports(
    pub(crate) runtime::Imports,
    /// A function of a domain that cannot give any was among them.
    pub(crate) Option<Unsupported>,
);

impl Imports {
    /// No functions.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives `function` under `name`. The last one given under a name counts.
    ///
    /// `function` is a closure of up to 12 [`Value`]s, optionally after a [`&Caller`](Caller).
    #[must_use]
    pub fn func<M>(self, name: &str, function: impl HostFunction<M>) -> Self {
        let import = name.to_owned();
        Self(
            self.0.closure(name, move |frame| {
                // The closure's own state may be half-changed after a panic; it is the host's business, as it is with
                // every `Fn` that is called again after a panic.
                let outcome = catch_unwind(AssertUnwindSafe(|| {
                    function.invoke(&mut Frame {
                        frame,
                        ints: 0,
                        floats: 0,
                        stacked: 0,
                    })
                }));
                let cause = match outcome {
                    Ok(Ok(())) => return Ok(()),
                    Ok(Err(error)) => HostCause::Error(error),
                    Err(payload) => HostCause::Panic(Panic::new(payload)),
                };
                Err(EndCall::Fail(leave_failure(&import, cause)))
            }),
            self.1,
        )
    }

    /// Gives the export `export` of another domain under `name`. Only arguments in registers pass. The other domain
    /// lives as long as this one; the function can be [taken away](Domain::revoke) at any time.
    ///
    /// If a call fails, it returns 0 in the calling domain, and `__rf_call_status` tells why; see [`OnFailure`].
    #[must_use]
    pub fn export(self, name: &str, domain: &Domain, export: &str, signature: Signature) -> Self {
        self.export_or(name, domain, export, signature, OnFailure::default())
    }

    /// As [`export`](Imports::export), and says what becomes of the calling domain if a call fails.
    #[must_use]
    pub fn export_or(
        self,
        name: &str,
        domain: &Domain,
        export: &str,
        signature: Signature,
        on_failure: OnFailure,
    ) -> Self {
        match domain.0.window(Feature::Grants) {
            Ok(domain) => Self(
                self.0.domain_or(name, domain, export, signature, on_failure),
                self.1,
            ),
            // Whoever makes a domain with these is told.
            Err(e) => Self(self.0, Some(e)),
        }
    }

    /// Names an import that takes functions of other domains: given with [`Domain::grant`], taken away with
    /// [`Domain::revoke`], while both domains run. Until it is given one, calls fail.
    #[must_use]
    pub fn slot(self, name: &str, signature: Signature, on_failure: OnFailure) -> Self {
        Self(self.0.slot(name, signature, on_failure), self.1)
    }

    /// Sets what is called when a call of another domain has failed, on the thread that made it, before the calling domain
    /// goes on. An `Err`, or a panic, ends the calling domain's call.
    ///
    /// # Examples
    /// ```no_run
    /// # use ringfence::{Imports, OnFailure, Signature};
    /// let signature = Signature { ints: 2, int_results: 1, ..Signature::NOTHING };
    /// let imports = Imports::new()
    ///     .slot("decode", signature, OnFailure::Return(u64::MAX))
    ///     .on_callee_failure(|import, callee, error| {
    ///         eprintln!("{import}: {error}");
    ///         // A fresh start: the next call finds the decoder as it was at first.
    ///         callee.map_or(Ok(()), |decoder| decoder.reset())
    ///     });
    /// ```
    #[must_use]
    pub fn on_callee_failure<E: std::fmt::Display>(
        self,
        hook: impl Fn(&str, Option<Domain>, &runtime::CallError) -> Result<(), E> + Send + Sync + 'static,
    ) -> Self {
        Self(
            self.0.on_callee_failure(move |failure| {
                hook(
                    failure.import,
                    failure.callee.clone().map(|d| Domain(Kind::Window(d))),
                    failure.error,
                )
                .map_err(|e| EndCall::Fail(format!("after a failed call of {}: {e}", failure.import)))
            }),
            self.1,
        )
    }

    /// Sets what is called when the domain has reached a limit, besides the error that somebody gets for it. It runs on the thread that
    /// reached the limit, on several at once if several do. Some limits it may raise: see [`LimitHit`](crate::LimitHit).
    ///
    /// It may use the domain's memory and call other domains, though not when a call has run out of time. Limits that are reached by
    /// what it does itself are not told. A panic in it leaves the limit as it is.
    ///
    /// # Examples
    /// ```no_run
    /// use ringfence::{Imports, LimitHit, OnLimit};
    ///
    /// let imports = Imports::new().on_limit(|_, hit| match *hit {
    ///     // Half as much again, up to a gigabyte.
    ///     LimitHit::Memory { wanted, used, limit } if limit < 1 << 30 => {
    ///         OnLimit::Raise((used + wanted).max(limit + limit / 2))
    ///     }
    ///     _ => {
    ///         eprintln!("{hit:?}");
    ///         OnLimit::Keep
    ///     }
    /// });
    /// ```
    #[must_use]
    pub fn on_limit(
        self,
        hook: impl Fn(&Caller<'_>, &runtime::LimitHit) -> runtime::OnLimit + Send + Sync + 'static,
    ) -> Self {
        Self(
            self.0
                .on_limit(move |domain, hit| hook(&Caller { domain: *domain }, hit)),
            self.1,
        )
    }

    /// Gives a plain C function under `name`, called with the registers as the domain left them: the fastest form.
    ///
    /// # Safety
    /// `function` is a C function of that signature without stack arguments, sound for *every* value of its arguments,
    /// callable from any thread for as long as the domain lives, and it leaves by returning only.
    #[must_use]
    pub unsafe fn plain(self, name: &str, function: *const std::ffi::c_void, signature: Signature) -> Self {
        // SAFETY: the caller's promise is the one that is asked for.
        Self(unsafe { self.0.plain(name, function, signature) }, self.1)
    }

    /// Sets who answers the domain's system calls.
    #[must_use]
    pub fn policy(self, policy: std::sync::Arc<dyn crate::SyscallHandler>) -> Self {
        Self(self.0.policy(policy), self.1)
    }

    /// The names given so far.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.names()
    }
}

impl fmt::Debug for Imports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

/// A call out of a domain, as the host function sees it.
pub struct Caller<'a> {
    domain: DomainRef<'a>,
}

impl<'a> Caller<'a> {
    pub(crate) fn new(domain: DomainRef<'a>) -> Self {
        Self { domain }
    }

    /// The calling domain's memory.
    #[inline]
    #[must_use]
    pub fn memory(&self) -> Memory<'a> {
        Memory::new(self.domain)
    }

    /// Address of a function or variable that a module of the calling domain exports: the one [added](crate::Domain::add_module)
    /// under the name `module`, or any. For host functions that let a domain look symbols up at run time.
    ///
    /// # Examples
    /// ```no_run
    /// use ringfence::{Caller, Imports, Ptr};
    ///
    /// let imports = Imports::new().func("find", |caller: &Caller, name: Ptr<u8>| {
    ///     // Any text will do for a look into a table.
    ///     let name = caller.memory().read_string(name, 256)?.into_inner_unchecked();
    ///     Ok::<u64, ringfence::Error>(caller.symbol(None, &name).unwrap_or(0))
    /// });
    /// ```
    #[must_use]
    pub fn symbol(&self, module: Option<&str>, name: &str) -> Option<u64> {
        self.domain.find(module, name)
    }

    /// Runs `f`, which waits for somebody else, a slow client for instance: its time does not count against the time limit of the domain's
    /// call. The domain's own code is always counted: if `f` calls a function of the domain, the time counts from there on. The limit that all
    /// constructors have together goes on. On back ends without [`Feature::Pauses`](crate::Feature::Pauses) the time counts.
    ///
    /// # Examples
    /// ```no_run
    /// # use ringfence::{Caller, Imports};
    /// # fn next_byte_of_client() -> i32 { 0 }
    /// let imports = Imports::new().func("read_byte", |caller: &Caller| caller.wait(next_byte_of_client));
    /// ```
    pub fn wait<T>(&self, f: impl FnOnce() -> T) -> T {
        struct Paused<'a>(DomainRef<'a>);
        impl Drop for Paused<'_> {
            fn drop(&mut self) {
                self.0.space().resume_time();
            }
        }
        self.domain.space().pause_time();
        let _paused = Paused(self.domain);
        f()
    }
}

impl fmt::Debug for Caller<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller")
            .field("window", &format_args!("{:#x}", self.domain.base()))
            .finish()
    }
}

/// Error that a host function ends the domain's call with.
type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Arguments on their way in, results on their way out.
#[doc(hidden)]
pub struct Frame<'a> {
    frame: &'a mut OutFrame,
    ints: usize,
    floats: usize,
    stacked: usize,
}

impl Frame<'_> {
    /// The next argument.
    #[inline(always)]
    fn value<V: Value>(&mut self) -> Result<V, BoxError> {
        let bits = match V::CLASS {
            Class::Int if self.ints < self.frame.ints.len() => {
                self.ints += 1;
                self.frame.ints[self.ints - 1]
            }
            Class::Float if self.floats < self.frame.vectors.len() => {
                self.floats += 1;
                self.frame.vectors[self.floats - 1][0]
            }
            _ => {
                self.stacked += 1;
                self.frame
                    .stack_argument(self.stacked - 1)
                    .ok_or("stack arguments cannot be read")?
            }
        };
        Ok(V::from_bits(bits))
    }

    #[inline(always)]
    fn result(&mut self, result: impl Return) {
        match result.to_register() {
            None => {}
            Some((Class::Int, bits)) => self.frame.result[0] = bits,
            Some((Class::Float, bits)) => self.frame.vector_result[0] = [bits, 0],
        }
    }
}

/// What a host function may return: a [`Value`], `()`, or a `Result` of one of them.
pub trait HostResult {
    /// What the domain gets.
    type Value: Return;
    /// As a result.
    ///
    /// # Errors
    /// Whatever the host function failed with.
    #[doc(hidden)]
    fn into_result(self) -> Result<Self::Value, BoxError>;
}

impl<R: Return> HostResult for R {
    type Value = R;
    #[inline(always)]
    fn into_result(self) -> Result<R, BoxError> {
        Ok(self)
    }
}

impl<R: Return, E: Into<BoxError>> HostResult for Result<R, E> {
    type Value = R;
    #[inline(always)]
    fn into_result(self) -> Result<R, BoxError> {
        self.map_err(Into::into)
    }
}

/// A closure that can be an import. `M` tells the forms apart and is always inferred.
pub trait HostFunction<M>: Send + Sync + 'static {
    /// What its arguments are in memory.
    #[doc(hidden)]
    const ARGUMENTS: &'static [Element];
    /// What its result is in memory.
    #[doc(hidden)]
    const RESULT: Option<Element>;
    /// Reads the arguments, calls the closure, writes the result.
    ///
    /// # Errors
    /// What the closure failed with.
    #[doc(hidden)]
    fn invoke(&self, frame: &mut Frame<'_>) -> Result<(), BoxError>;
}

/// Marks closures whose first argument is a [`Caller`].
#[doc(hidden)]
pub struct WithCaller<A>(PhantomData<A>);

macro_rules! host_function {
    ($($t:ident)*) => {
        impl<F, R, $($t: Value),*> HostFunction<fn($($t),*)> for F
        where
            F: Fn($($t),*) -> R + Send + Sync + 'static,
            R: HostResult,
        {
            const ARGUMENTS: &'static [Element] = &[$($t::ELEMENT),*];
            const RESULT: Option<Element> = <R::Value as Return>::STORED;

            #[inline]
            #[allow(non_snake_case)]
            fn invoke(&self, frame: &mut Frame<'_>) -> Result<(), BoxError> {
                $(let $t = frame.value::<$t>()?;)*
                let result = self($($t),*).into_result()?;
                frame.result(result);
                Ok(())
            }
        }

        impl<F, R, $($t: Value),*> HostFunction<WithCaller<fn($($t),*)>> for F
        where
            F: Fn(&Caller<'_>, $($t),*) -> R + Send + Sync + 'static,
            R: HostResult,
        {
            const ARGUMENTS: &'static [Element] = &[$($t::ELEMENT),*];
            const RESULT: Option<Element> = <R::Value as Return>::STORED;

            #[inline]
            #[allow(non_snake_case)]
            fn invoke(&self, frame: &mut Frame<'_>) -> Result<(), BoxError> {
                $(let $t = frame.value::<$t>()?;)*
                let caller = Caller { domain: frame.frame.domain() };
                let result = self(&caller, $($t),*).into_result()?;
                frame.result(result);
                Ok(())
            }
        }
    };
}
for_each_arity!(host_function);
