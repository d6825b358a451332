//! The C library of Ringfence. What each function does is in `include/ringfence/host/`.
//!
//! It stands on the Rust interface, the crate `ringfence`. Every function checks its arguments, catches panics, and keeps what went
//! wrong in the calling thread's `rf_error`. Handles are numbers, not addresses (see `handles.rs`).
//!
//! Files import one way: `status`, `handles`; `arguments`, `error`, `prototype`; `caller`, `policy`; `options`, `recipe`; `objects`; then one
//! for each header.

#![deny(missing_docs)]

/// Whoever embeds the library has no say in what Rust does when there is no memory, so it must not end the process.
#[global_allocator]
static MEMORY: ringfence::Reserve = ringfence::Reserve::system();

mod arena;
mod arenas;
mod arguments;
mod backend;
mod call;
mod caller;
mod code;
mod dl;
mod domain;
mod error;
mod function;
mod handles;
mod memory;
mod module;
mod objects;
mod options;
mod policy;
mod pool;
mod process;
mod prototype;
mod recipe;
mod region;
mod runtime;
mod snapshot;
mod status;

pub use arena::*;
pub use backend::*;
pub use call::*;
pub use caller::*;
pub use code::*;
pub use dl::*;
pub use domain::*;
pub use error::*;
pub use function::*;
pub use memory::*;
pub use module::*;
pub use options::{Hit, Options, Slot};
pub use policy::*;
pub use pool::*;
pub use process::*;
pub use region::*;
pub use runtime::*;
pub use snapshot::*;
pub use status::Status;
