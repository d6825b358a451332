//! `dlopen`, but fenced: load native modules that nobody has to trust, and call them for a few nanoseconds.
//!
//! A *module* is a file that `ringfence cc` made of ordinary C or C++. [`Module::open`] verifies its machine code.
//! A [`Domain`] is a running instance in its own *window* of 4 GiB: its code can neither read, nor write, nor run
//! anything outside, and a crash or an endless loop in it is an [error value](CallError) in the host.
//!
//! ```no_run
//! use ringfence::{Imports, Module, Ptr, Untrusted};
//!
//! let module = Module::open("codec.rf")?;
//! let domain = module.instantiate(
//!     Imports::new().func("host_log", |level: Untrusted<u32>| {
//!         let level = level.within(0..=3)?;
//!         println!("the module logs at level {level}");
//!         Ok::<(), ringfence::Error>(())
//!     }),
//! )?;
//!
//! // The type is a claim. If it is wrong the numbers are wrong; the host is safe all the same.
//! let decode = domain.func::<(Ptr<u8>, usize, Ptr<u8>, usize), i32>("decode")?;
//!
//! let input = domain.memory().put_slice(b"...")?;
//! let output = domain.memory().alloc_array::<u8>(4096)?;
//! let written = decode.call(input.ptr(), input.len(), output.ptr(), output.len())?;
//!
//! // What comes out is untrusted until somebody says what is acceptable.
//! let written = written.within(0..=4096)? as usize;
//! let pixels = domain.memory().read_vec(output.ptr(), written)?;
//! # let _ = pixels;
//! # Ok::<(), ringfence::Error>(())
//! ```
//!
//! # What a host can rely on
//!
//! * **No undefined behaviour through the safe functions of this crate**, whatever the module does and whatever signature the host
//!   claims. Arguments and results are bits; pointers are numbers until the memory functions check them.
//! * **Values from a domain are marked**: [`Untrusted<T>`] gives its value up only to code that says what it checked.
//! * **Every failure is a value.** A fault names its kind, address, function, file and line. The domain then refuses calls
//!   until [`Domain::reset`].
//! * **Panics in host functions** do not unwind through a domain: they end the domain's call, which returns
//!   [`CallError::Host`]; [`CallError::resume_panic`] lets them go on from there.
//!
//! # Threads
//!
//! Everything is `Send` and `Sync`. A thread that calls a domain for the first time gets a *lane* in it: its own stacks
//! and thread-local block. A domain has room for 63.
//!
//! # Where to look
//!
//! | to | see |
//! |---|---|
//! | load and check a file | [`Module`] |
//! | make an instance, reset it, limit its time | [`Domain`], [`DomainOptions`] |
//! | give each request a clean one | [`Pool`] |
//! | start from an initialised state | [`Snapshot`], [`Domain::checkpoint`] |
//! | call it | [`Func`]; [`dynamic`] for types that are known at run time |
//! | give it host functions | [`Imports`], [`Caller`] |
//! | pass it data and read it back | [`Memory`], [`Ptr`], [`Owned`] |
//! | check what it says | [`Untrusted`] |
//! | load plug-ins into it while it runs | [`Domain::add_module`], [`Domain::add_code`] |
//! | call one function for each element of arrays | [`Func::call_batch`] |
//! | learn of limits that it reaches, and raise them | [`Imports::on_limit`] |
//! | let domains call each other | [`Imports::export`], [`Domain::grant`], [`OnFailure`] |
//! | let a domain work on the host's own objects | [`Arena`], [`Domain::give_words`], [`Domain::func_by`] |
//! | share memory between domains | [`Region`], [`Group`]; [`overview`] tells who may do what |
//! | understand what went wrong | [`CallError`], [`Fault`] |

#![deny(missing_docs)]

mod backend;
mod domain;
pub mod dynamic;
mod error;
mod func;
mod imports;
mod memory;
mod module;
mod pool;
mod ptr;
mod region;
mod snapshot;
mod untrusted;
mod value;
mod words;

pub use backend::process_confinement;
pub use bytemuck;
pub use domain::Domain;
pub use error::{CallError, DomainError, Error, HostError, LoadError, MemoryError, TextError};
pub use func::{Column, Func};
pub use imports::{Caller, HostFunction, HostResult, Imports};
pub use memory::{Memory, Owned};
pub use module::Module;
pub use pool::{Member, Pool, Pooled};
pub use ptr::Ptr;
pub use region::{Group, Region};
pub use ringfence_core::Trace;
/// What a domain may ask of the operating system: directories, streams, clocks, connections. Deny by default.
#[doc(hidden)]
pub use ringfence_core::local;
pub use ringfence_policy as policy;
pub use ringfence_runtime::domain::batch::BatchError;
pub use ringfence_runtime::rights::RightsError;
pub use ringfence_runtime::supervisor::{GroupRow, Overview, Row, matrix, overview};
pub use ringfence_runtime::{
    Access, Addressing, Backend, Bound, Cancel, Code, CodeError, Confinement, DomainOptions, Exceeded,
    Export, ExportKind, Fault, FaultKind, Feature, Frame, FramesError, Grant, GrantError, HostCause,
    HostFailure, Import, InUse, InitOptions, Isolation, LimitHit, LoadOptions, ModuleError, Narrow,
    OnFailure, OnLimit, OptionRow, OptionUnit, Panic, RegionError, Registers, Reserve, Rights, Signature,
    SnapshotError, Syscall, SyscallHandler, Unsupported, Usage, Width, WordsError, init, plain,
};
pub use ringfence_runtime::{ArenaRow, WordsGroupRow, WordsOf};
pub use ringfence_runtime::{EndCall, policy::NoPolicy};
pub use snapshot::Snapshot;
pub use untrusted::{CheckError, Untrusted};
pub use value::{Arguments, Return, Value};
pub use words::{
    Arena, CopiedWords, FuncBy, HeldWords, InArena, Lent, Recipient, WordsGroup, WordsLearner, WordsPolicy,
};
