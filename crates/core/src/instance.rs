//! What runs a domain.

use crate::backend::{Backend, Feature, Unsupported};
use crate::confinement::Confinement;
use crate::error::{CallError, DomainError, HostError, SnapshotError};
use crate::signature::{Call, Returned, Signature};
use crate::space::DomainRef;
use crate::usage::Usage;
use std::ffi::c_void;
use std::time::Duration;

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

impl Reporting {
    /// The calling thread's last call succeeded.
    #[inline]
    pub fn succeed(&self) {
        // SAFETY: the thread's own word, as whoever made this says.
        unsafe {
            std::arch::asm!("mov qword ptr fs:[{0}], 0", in(reg) self.status, options(nostack, preserves_flags))
        };
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

    /// Makes the present state the one that [`reset`](Self::reset) returns to.
    ///
    /// # Errors
    /// [`SnapshotError`]; [`SnapshotError::Unsupported`] if the back end cannot.
    fn checkpoint(&self) -> Result<(), SnapshotError> {
        self.backend().require(Feature::Checkpoints)?;
        Ok(())
    }

    /// What holds the process that runs the domain.
    ///
    /// # Errors
    /// [`Unsupported`] if it has none of its own.
    fn confinement(&self) -> Result<Confinement, Unsupported> {
        Err(Unsupported {
            feature: Feature::Confinement,
            backend: self.backend(),
        })
    }

    /// Keeps a number of the host's with the domain.
    fn set_tag(&self, tag: u64);

    /// What the domain uses and has used.
    fn usage(&self) -> Usage;
}
