//! Why nothing was added to a living domain, or removed from it: code, modules.

use super::load::THROUGH_R14;
use super::{CallError, DomainError, HostError, MemoryError};
use crate::backend::Unsupported;

/// Why what is to go cannot go yet: a call may be in it, or return into it.
#[derive(Debug, thiserror::Error)]
pub enum InUse {
    /// Something on the stack of the calling thread returns into it.
    #[error("{name} is on the stack of the calling thread; let it return first")]
    OnStack {
        /// The name.
        name: String,
    },
    /// Other threads are inside the domain and did not leave it in time, so nobody knows whether they are in it.
    #[error("{name}: {lanes} other threads are inside the domain; try again, or interrupt their calls")]
    Busy {
        /// The name.
        name: String,
        /// How many.
        lanes: usize,
    },
}

/// Why code was not added to a living domain, not found, or not removed. Nothing has changed then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CodeError {
    /// The domain's back end cannot do that.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// The domain already has something of that name: an export of its modules, or added code.
    #[error("the domain already has a {name:?}; remove it first, or choose another name")]
    Exists {
        /// The name.
        name: String,
    },
    /// Nothing was added under that name.
    #[error("nothing was added under the name {name:?}")]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// The verifier refused the code.
    #[error("{name}: {reason}")]
    Rejected {
        /// The name.
        name: String,
        /// Every rejection, one a line.
        reason: String,
    },
    /// There is no code.
    #[error("{name}: there is no code")]
    Empty {
        /// The name.
        name: String,
    },
    /// The code uses registers that the domain's gates do not look after.
    #[error("{name}: uses {what} registers, and the domain was made without them; {remedy}")]
    Registers {
        /// The name.
        name: String,
        /// `vector` or `x87`.
        what: &'static str,
        /// How to make a domain that takes such code.
        remedy: &'static str,
    },
    /// The code needs extensions that this processor lacks.
    #[error("{name}: needs processor features that this machine lacks (bits {missing:#x})")]
    Features {
        /// The name.
        name: String,
        /// The missing [`ringfence_isa::window::feature`] bits.
        missing: u32,
    },
    /// No room for so much code under the domain's limit.
    #[error(
        "{wanted} bytes of code do not fit: the domain's limit is {limit}, {used} are in use; raise DomainOptions::code_limit, or remove something"
    )]
    Full {
        /// Bytes that the code takes.
        wanted: u32,
        /// Bytes in use, those included that wait for a call in progress to end.
        used: u32,
        /// The limit.
        limit: u32,
    },
    /// A call may be in the code.
    #[error(transparent)]
    InUse(#[from] InUse),
    /// Called from a signal handler that interrupted the runtime.
    #[error("code cannot be added or removed from a signal handler that interrupted the runtime")]
    Handler,
    /// A system call failed, or the process is out of mappings.
    #[error(transparent)]
    Host(#[from] HostError),
}

/// Why a module was not added to a living domain, or not removed. Nothing has changed then, unless the variant says so.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModuleError {
    /// The domain's back end cannot do that.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// The name is taken by a module that was added.
    #[error("the domain already has a module {name:?}; remove it first, or choose another name")]
    Exists {
        /// The name.
        name: String,
    },
    /// Nothing was added under that name.
    #[error("no module was added under the name {name:?}")]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// The domain has this very module: two copies would have the same label identifiers.
    #[error("{name}: the domain has this module already; load its file once more for a second one")]
    Twice {
        /// The name.
        name: String,
    },
    /// The code uses registers that the domain's gates do not look after.
    #[error("{name}: uses {what} registers, and the domain was made without them; {remedy}")]
    Registers {
        /// The name.
        name: String,
        /// `vector` or `x87`.
        what: &'static str,
        /// How to make a domain that takes such code.
        remedy: &'static str,
    },
    /// A domain with an arena has modules of the words mode only, and those have a domain with an arena only.
    #[error("{name}: domains with an arena and modules of --isolation=words are for each other only")]
    Isolation {
        /// The name.
        name: String,
    },
    /// The code goes through `r14`, and [`DomainOptions::addressing`](crate::DomainOptions::addressing) refuses that.
    #[error("{name}: {}", THROUGH_R14)]
    Addressing {
        /// The name.
        name: String,
    },
    /// No room for so large an image under the domain's limit, or in its window.
    #[error(
        "{name}: an image of {wanted} bytes does not fit: the domain's limit is {limit}, {used} are in use; raise DomainOptions::module_limit, or remove a module"
    )]
    Full {
        /// The name.
        name: String,
        /// Bytes that the image takes.
        wanted: u64,
        /// Bytes in use, those included that wait for a call in progress to end.
        used: u64,
        /// The limit.
        limit: u64,
    },
    /// Not enough room in the lanes for its thread-local variables.
    #[error(
        "{name}: {wanted} bytes of thread-local variables, aligned to {align}, do not fit into what lanes keep for modules that are added; set DomainOptions::extensible, or raise thread_local_reserve"
    )]
    ThreadLocal {
        /// The name.
        name: String,
        /// How many bytes.
        wanted: u32,
        /// Their alignment.
        align: u32,
    },
    /// A symbol that nobody gives. Host functions are those that the domain was made with: the ones that its modules need,
    /// or all if [`DomainOptions::extensible`](crate::DomainOptions::extensible) is set.
    #[error("{name}: {source}")]
    Link {
        /// The name.
        name: String,
        /// What is missing.
        source: Box<DomainError>,
    },
    /// Another module was resolved against this one.
    #[error("{name} is needed by {by}; remove that first")]
    Needed {
        /// The name.
        name: String,
        /// The name of the other one.
        by: String,
    },
    /// A call may be in the module. If other threads came while its destructors ran, these do not run again at the next try.
    #[error(transparent)]
    InUse(#[from] InUse),
    /// Its constructors or destructors are running.
    #[error("{name} is being added or removed at this moment")]
    Changing {
        /// The name.
        name: String,
    },
    /// A constructor failed. The module is gone again; if the error is a fault, the domain has faulted.
    #[error("initialising {name}: {source}")]
    Init {
        /// The name.
        name: String,
        /// What happened.
        source: Box<CallError>,
    },
    /// A destructor failed. The module is still there, and its destructors that have run do not run again; if the error is a
    /// fault, the domain has faulted, and its reset will take the module away.
    #[error("{name}: a destructor failed: {source}")]
    Fini {
        /// The name.
        name: String,
        /// What happened.
        source: Box<CallError>,
    },
    /// The domain has faulted. A reset removes all that was added.
    #[error("the domain has faulted; reset it first, which removes all modules that were added")]
    Faulted,
    /// Called from a signal handler that interrupted the runtime.
    #[error("modules cannot be added or removed from a signal handler that interrupted the runtime")]
    Handler,
    /// Its data does not fit under the domain's memory limit.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// A system call failed, or the process is out of mappings.
    #[error(transparent)]
    Host(#[from] HostError),
}
