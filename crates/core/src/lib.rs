//! What all back ends of Ringfence share: signatures, outcomes, faults, limits, rights, system calls and their answers, and
//! three traits.
//!
//! * [`Instance`]: what runs a domain. Implemented by each back end.
//! * [`Space`]: what policies and host functions may do with a domain's memory. Implemented by each back end.
//! * [`SyscallHandler`]: what answers a domain's system calls. Implemented by hosts and by the crate `ringfence-policy`, which knows no
//!   back end.
//!
//! Nothing here maps memory, only `thread` starts anything, and only `kept` holds descriptors.

#![deny(missing_docs)]

mod backend;
pub mod calling;
mod cancel;
mod confinement;
mod end;
pub mod error;
mod fault;
mod file_map;
mod frame;
mod given;
mod host_cause;
mod instance;
mod kept;
mod limits;
#[doc(hidden)]
pub mod local;
mod options;
pub mod policy;
mod rights;
mod signature;
mod space;
mod symbol;
mod text;
#[doc(hidden)]
pub mod thread;
pub mod transfer;
mod usage;
pub mod work;

pub use backend::{Backend, Feature, Unsupported};
pub use cancel::Cancel;
pub use confinement::Confinement;
pub use end::EndCall;
pub use error::{
    CallError, CodeError, DomainError, GrantError, HostError, HostFailure, InUse, LoadError, MemoryError,
    ModuleError, SnapshotError, WordsError,
};
pub use fault::{Access, Fault, FaultKind, Frame, FramesError, MOST_TEXT, Registers, Trace};
pub use file_map::FileMap;
pub use frame::OutFrame;
pub use given::{Closure, Given, HostFunction, LimitHook};
pub use host_cause::{HostCause, Panic};
pub use instance::{Instance, Reporting};
pub use kept::KeptFile;
pub use limits::{LimitHit, OnLimit};
pub use options::{DomainOptions, OptionRow, OptionUnit};
pub use policy::{NoPolicy, Syscall, SyscallHandler};
pub use rights::{DomainId, Grantee, GroupId, Party, Rights};
pub use ringfence_isa::Addressing;
pub use signature::{Call, Narrow, Returned, Signature, Width};
pub use space::{DomainRef, Elsewhere, Ended, Space, SpawnError};
pub use symbol::{Export, ExportKind, Import};
pub use text::Text;
pub use transfer::{Span, Transfer};
pub use usage::Usage;
pub use work::{Bound, Budget, Exceeded};
