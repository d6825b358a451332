//! Windows, loader, gates, lanes and faults: what runs verified modules inside a host process.
//!
//! Read in this order: [`module`] (a file becomes a verified image), [`domain`] (an image becomes a
//! running instance), `gate` (how control crosses the boundary), `signal` and [`fault`] (what a crash
//! becomes). This crate is internal: programs use the crate `ringfence` or the C library.
//!
//! ```no_run
//! use ringfence_runtime::{Call, Domain, DomainOptions, Imports, LoadOptions, Module};
//! let module = Module::open("add.rf", &LoadOptions::default())?;
//! let domain = Domain::new(&[module], Imports::new(), &DomainOptions::default())?;
//! let add = domain.entry("add")?;
//! let sum = add.call(&mut Call::ints(&[2, 3]))?.rax;
//! assert_eq!(sum, 5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![deny(missing_docs)]

// For tests/attack: everything below uses the verifier with mistakes.
#[cfg(feature = "mistakes")]
extern crate ringfence_mistakes as ringfence_verify;
#[cfg(all(feature = "mistakes", not(debug_assertions)))]
compile_error!("the feature `mistakes` makes the verifier unsound on purpose: it is for test builds only");

pub mod domain;
mod gates;
mod lanes;
mod load;
mod os;
mod place;
mod share;
mod words;

pub use domain::{grant, imports, snapshot};
pub use gates::fault;
pub use load::module;
pub use load::names::plain;
pub use os::backed;
pub use os::guarded;
pub use os::reserve::Reserve;
pub use place::twin::Twin;
pub use share::{rights, supervisor};

pub use domain::slot::{CalleeFailure, OnFailure};
pub use domain::{Code, Domain, Entry};
pub use grant::Grant;
pub use imports::Imports;
pub use lanes::init::{InitOptions, init};
pub use lanes::last_error::LastCall;
pub use lanes::unwind::{Mark, StaleMark, mark, unwind};
pub use module::{Export, ExportKind, Import, LoadOptions, Module, Note, Segment};
pub use ringfence_core::{
    Access, Backend, Bound, Budget, Call, CallError, Cancel, CodeError, Confinement, DomainError, DomainId,
    DomainOptions, EndCall, Exceeded, Fault, FaultKind, Feature, Frame, FramesError, GrantError, Grantee,
    GroupId, HostCause, HostError, HostFailure, InUse, KeptFile, LimitHit, LoadError, MOST_TEXT, MemoryError,
    ModuleError, Narrow, NoPolicy, OnLimit, OptionRow, OptionUnit, OutFrame, Panic, Party, Registers,
    Returned, Rights, Signature, SnapshotError, Syscall, SyscallHandler, Text, Unsupported, Usage, Width,
    WordsError, error, policy, work,
};
pub use ringfence_isa::{Addressing, Isolation};
pub use snapshot::Snapshot;
pub use supervisor::{Actor, Group, Recipient, Region, RegionError};
pub use words::{Arena, ArenaRow, Held, Learner, WordsGroupRow, WordsOf};
