//! Why there is no domain, or no snapshot of one.

use super::load::{THROUGH_R14, not_for};
use super::{CallError, GrantError, HostError, MemoryError};
use crate::backend::{Backend, Unsupported};

/// Why a `Domain` was not made, not reset, or has no such entry.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DomainError {
    /// The module's file is none that the back end runs.
    #[error("{module}: {}", not_for(*.backend))]
    NotFor {
        /// The module.
        module: String,
        /// The back end that the domain was to have.
        backend: Backend,
    },
    /// The module goes through `r14`, and [`DomainOptions::addressing`](crate::DomainOptions::addressing) refuses that.
    #[error("{module}: {}", THROUGH_R14)]
    Addressing {
        /// The module.
        module: String,
    },
    /// A domain with an arena has modules of the words mode only, and those have a domain with an arena only.
    #[error("{module}: {reason}")]
    Isolation {
        /// The module.
        module: String,
        /// What does not go together.
        reason: &'static str,
    },
    /// The domain's process could not be started, or is of no use.
    #[error("the domain's process: {reason}")]
    Worker {
        /// Why, and what helps.
        reason: String,
    },
    /// The domain's process was asked, and did not answer.
    #[error("{source}")]
    Unanswered {
        /// As for a call that was not made.
        #[source]
        source: Box<CallError>,
    },
    /// The system's dynamic linker did not load the shared object.
    #[error("{module}: {reason}")]
    Dlopen {
        /// The shared object.
        module: String,
        /// What the linker said.
        reason: String,
    },
    /// The domain's back end cannot do that.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// No module was given, or more than fit.
    #[error("the modules do not fit into one window: {reason}")]
    Layout {
        /// What does not fit.
        reason: String,
    },
    /// A symbol that nobody defines.
    #[error(
        "{module} needs {symbol}, which nobody gives: name it among the imports, or add a module that exports it"
    )]
    Unresolved {
        /// The module that needs it.
        module: String,
        /// The symbol.
        symbol: String,
    },
    /// More imports than there are stubs.
    #[error("{count} host imports, {limit} fit into one window")]
    TooManyImports {
        /// How many there are.
        count: usize,
        /// How many fit.
        limit: usize,
    },
    /// An option has a value that cannot work.
    #[error("domain option {option}: {reason}")]
    Option {
        /// The option's name.
        option: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// No such export.
    #[error("no export {name:?}; 'ringfence inspect' lists what a module exports")]
    NoExport {
        /// What was asked for.
        name: String,
    },
    /// No module was added under that name.
    #[error("no module was added under the name {name:?}")]
    NoModule {
        /// What was asked for.
        name: String,
    },
    /// The export is not a function whose entry the verifier knows.
    #[error("export {name:?} is not a function that can be called")]
    NotFunction {
        /// What was asked for.
        name: String,
    },
    /// No function starts at the address.
    #[error("no function of the domain starts at {address:#x}")]
    NoEntry {
        /// What was given.
        address: u64,
    },
    /// A function of another domain could not be granted.
    #[error(transparent)]
    Grant(#[from] GrantError),
    /// The domain could not start from its snapshot.
    #[error(transparent)]
    Snapshot(Box<SnapshotError>),
    /// Something that the domain was made with was revoked or is gone.
    #[error(
        "{import:?}, with which the domain was made, was revoked or is gone: the domain cannot be like new"
    )]
    Spent {
        /// The import.
        import: String,
    },
    /// The domain has faulted as often as it may.
    #[error(
        "the domain has faulted {faults} times, {limit} are allowed; make a new one, or raise DomainOptions::fault_limit"
    )]
    Faults {
        /// How often it faulted.
        faults: u64,
        /// The limit.
        limit: u64,
    },
    /// Calls are in progress; a reset has to wait for them.
    #[error("{lanes} calls are in progress in the domain")]
    Busy {
        /// How many lanes have a call in progress.
        lanes: usize,
    },
    /// A static constructor of the module failed.
    #[error("initialising {module}: {source}")]
    Init {
        /// The module.
        module: String,
        /// What happened.
        source: Box<CallError>,
    },
    /// A destructor of the module failed. Those behind it have not run.
    #[error("{module}: a destructor failed: {source}")]
    Fini {
        /// The module.
        module: String,
        /// What happened.
        source: Box<CallError>,
    },
    /// Not enough memory under the domain's limit.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The process cannot host domains, or a system call failed.
    #[error(transparent)]
    Host(#[from] HostError),
}

/// Why there is no snapshot, or no domain of it. Nothing has changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The domain's back end cannot do that.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// Several threads have been in the domain: whose thread-local variables would a new domain have?
    #[error(
        "{count} threads have been in the domain; only what one thread initialised can become a snapshot"
    )]
    Lanes {
        /// How many.
        count: u32,
    },
    /// The domain has failed.
    #[error("the domain has faulted; reset it first")]
    Faulted,
    /// It has rights to regions, which belong to others too.
    #[error("the domain has rights to regions; take them back first")]
    Regions,
    /// The policy holds something for it that a snapshot cannot hold.
    #[error("the domain has {0}, which no snapshot can hold")]
    Held(String),
    /// The two runs of the initialisation differ.
    #[error(
        "two runs of the initialisation differ at offset {offset:#x} of the window{}: {first:#010x} and \
         {second:#010x}; it depends on time, on chance, or on its address in a way that cannot be moved",
        symbol.as_ref().map_or(String::new(), |s| format!(" (in {s})"))
    )]
    Differs {
        /// Where.
        offset: u32,
        /// The exported object that it is in, if it is in one.
        symbol: Option<String>,
        /// What the first run left there.
        first: u32,
        /// What the second run left.
        second: u32,
    },
    /// The two runs have not even the same memory.
    #[error("two runs of the initialisation differ in {what}")]
    Shape {
        /// In what.
        what: &'static str,
    },
    /// The snapshot was taken of one domain and fits into its window only.
    #[error(
        "a snapshot of a single domain serves that domain's resets; make one for new domains with Snapshot::new"
    )]
    Fixed,
    /// Other imports than the snapshot was made with.
    #[error("a snapshot was made with the imports {wanted:?}, and got {got:?}")]
    Imports {
        /// The names that it was made with, in the order of their stubs.
        wanted: Vec<String>,
        /// Those given now.
        got: Vec<String>,
    },
    /// The host's initialisation failed.
    #[error("the initialisation failed: {0}")]
    Init(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The domain could not be made, or is busy.
    #[error(transparent)]
    Domain(#[from] DomainError),
    /// A system call failed.
    #[error(transparent)]
    Host(#[from] HostError),
}
