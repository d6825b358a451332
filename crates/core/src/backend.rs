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

/// What some back ends have and others have not. `docs/backends.md` has the same table as [`Backend::offers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Feature {
    /// Crashes, endless loops and failed host functions end the call, with a report, and not the process.
    Faults,
    /// Calls in progress are ended from outside: `interrupt`, [`DomainOptions::cancel`](crate::DomainOptions::cancel).
    Interrupt,
    /// Options other than the back end itself: limits, sizes of stacks.
    Limits,
    /// The host is told of limits: `Imports::on_limit`.
    OnLimit,
    /// A policy answers the domain's system calls.
    Policy,
    /// Plain C functions as imports.
    Plain,
    /// Functions of other domains: `Imports::export`, slots, `Domain::grant`.
    Grants,
    /// Memory that domains share, and groups.
    Regions,
    /// Machine code that comes to the living domain.
    Code,
    /// Modules that come to the living domain.
    Modules,
    /// A later state that resets return to.
    Checkpoints,
    /// New domains that start from a state.
    Snapshots,
}

impl Feature {
    /// All of them, in the order of the page.
    pub const ALL: [Feature; 12] = [
        Feature::Faults,
        Feature::Interrupt,
        Feature::Limits,
        Feature::OnLimit,
        Feature::Policy,
        Feature::Plain,
        Feature::Grants,
        Feature::Regions,
        Feature::Code,
        Feature::Modules,
        Feature::Checkpoints,
        Feature::Snapshots,
    ];

    /// What messages and the page call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Feature::Faults => "faults as error values",
            Feature::Interrupt => "ends of calls from outside (interrupt, cancel)",
            Feature::Limits => "limits and sizes (DomainOptions)",
            Feature::OnLimit => "functions that are told of limits (on_limit)",
            Feature::Policy => "policies for system calls",
            Feature::Plain => "plain C functions as imports",
            Feature::Grants => "functions of other domains (export, slot, grant)",
            Feature::Regions => "regions and groups",
            Feature::Code => "code that is added later (add_code)",
            Feature::Modules => "modules that are added later (add_module)",
            Feature::Checkpoints => "checkpoints",
            Feature::Snapshots => "snapshots",
        }
    }
}

impl Backend {
    /// Whether the back end has the feature.
    #[must_use]
    pub const fn offers(self, feature: Feature) -> bool {
        match self {
            Backend::Window => true,
            Backend::Process => false,
            Backend::None => matches!(feature, Feature::Plain),
        }
    }

    /// That it has the feature.
    ///
    /// # Errors
    /// [`Unsupported`] if it has not.
    pub const fn require(self, feature: Feature) -> Result<(), Unsupported> {
        if self.offers(feature) {
            return Ok(());
        }
        Err(Unsupported {
            feature,
            backend: self,
        })
    }
}

/// The domain's back end has no such thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// What was asked for.
    pub feature: Feature,
    /// Of which back end.
    pub backend: Backend,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unsupported { feature, backend } = self;
        write!(
            f,
            "the back end {backend} has no {}; make the domain with ",
            feature.name()
        )?;
        let others = Backend::ALL.into_iter().filter(|b| b.offers(*feature));
        for (i, other) in others.enumerate() {
            write!(f, "{}{other}", if i > 0 { " or " } else { "" })?;
        }
        f.write_str(" (DomainOptions::backend)")
    }
}

impl std::error::Error for Unsupported {}

/// How a back end that has no gates tells the calling thread of a failed call.
#[derive(Clone, Copy, Debug)]
pub struct Reporting {
    /// Where the thread's status is: an offset from `fs`. 0 there means that the last call succeeded.
    pub status: i64,
    /// Keeps why the thread's last call failed, and sets the status.
    pub fail: fn(CallError),
    /// Takes that away, and clears the status.
    pub take: fn() -> Option<CallError>,
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
    ///
    /// # Errors
    /// [`Unsupported`].
    fn interrupt(&self) -> Result<(), Unsupported>;

    /// Whether the domain refuses calls until it is reset.
    fn faulted(&self) -> bool;

    /// The time limit of calls that start from now on.
    ///
    /// # Errors
    /// [`Unsupported`].
    fn set_time_limit(&self, limit: Option<Duration>) -> Result<(), Unsupported>;

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

    /// Keeps a number of the host's with the domain.
    fn set_tag(&self, tag: u64);

    /// What the domain uses and has used.
    fn usage(&self) -> Usage;
}
