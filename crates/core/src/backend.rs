//! What runs a domain.

use crate::error::{CallError, DomainError, HostError};
use crate::signature::{Call, Returned, Signature};
use crate::space::DomainRef;
use crate::usage::Usage;
use std::ffi::c_void;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The ways in which a domain can be kept from the host. `docs/backends.md` has a table of what each can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Backend {
    /// In a window of the host's own address space, fenced by the verifier. A call takes nanoseconds.
    #[default]
    Window,
    /// The same window at the same address in a process of its own, without system calls: two fences. A call takes a fraction of
    /// a microsecond while both sides spin, microseconds otherwise.
    Process,
    /// Not at all: an ordinary shared object, loaded with `dlopen`. For debugging and as a baseline, **not a fence**.
    None,
}

impl Backend {
    /// All of them.
    pub const ALL: [Backend; 3] = [Backend::Window, Backend::Process, Backend::None];

    /// The name that the command line and messages use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Backend::Window => "window",
            Backend::Process => "process",
            Backend::None => "none",
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Backend {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Backend::ALL
            .into_iter()
            .find(|b| b.name() == name)
            .ok_or_else(|| format!("no back end {name:?}; there are window, process and none"))
    }
}

/// A domain, as its back end runs it. Everything may be called from any thread.
///
/// What only some back ends can do is not here.
pub trait Instance: Send + Sync {
    /// Which back end it is.
    fn backend(&self) -> Backend;

    /// The domain's memory.
    fn space(&self) -> DomainRef<'_>;

    /// Address of an exported function.
    ///
    /// # Errors
    /// [`DomainError::NoExport`], [`DomainError::NotFunction`].
    fn function(&self, name: &str) -> Result<u64, DomainError>;

    /// Whether a function of the domain starts at `address`.
    ///
    /// # Errors
    /// [`DomainError::NoEntry`].
    fn function_at(&self, address: u64) -> Result<u64, DomainError>;

    /// Calls the function at an address that [`function`](Self::function) or [`function_at`](Self::function_at) gave. Results
    /// are as wide as their registers.
    ///
    /// # Errors
    /// [`CallError`].
    fn call(&self, function: u64, call: &mut Call<'_>) -> Result<Returned, CallError>;

    /// A plain C function pointer that calls the function at such an address. When the call fails, the result is 0 and the
    /// calling thread's status tells why. Good while the domain lives.
    ///
    /// # Errors
    /// [`DomainError`] if no function is there (any more), or there is no memory for one.
    fn thunk(&self, function: u64, signature: &Signature) -> Result<*const c_void, DomainError>;

    /// Ends all calls in progress.
    fn interrupt(&self);

    /// Whether the domain refuses calls until it is reset.
    fn faulted(&self) -> bool;

    /// The time limit of calls that start from now on.
    fn set_time_limit(&self, limit: Option<Duration>);

    /// Puts the domain back to its initial state.
    ///
    /// # Errors
    /// [`DomainError`].
    fn reset(&self) -> Result<(), DomainError>;

    /// As [`reset`](Self::reset), for a pool's next user.
    ///
    /// # Errors
    /// [`DomainError`].
    fn recycle(&self) -> Result<(), DomainError>;

    /// Runs the destructors of the domain's modules.
    ///
    /// # Errors
    /// [`DomainError`].
    fn run_destructors(&self) -> Result<(), DomainError>;

    /// Gives back the stacks of threads that have no call in progress. Of how many threads.
    ///
    /// # Errors
    /// [`HostError`].
    fn trim(&self) -> Result<usize, HostError>;

    /// What the domain uses and has used.
    fn usage(&self) -> Usage;
}
