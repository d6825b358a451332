//! The C library of Ringfence. What each function does is in `include/ringfence/host/`.
//!
//! Every function checks its arguments, catches panics, and keeps what went wrong in the calling thread's
//! `rf_error`. Handles are numbers, not addresses (see `handles.rs`).

#![deny(missing_docs)]

mod calls;
mod domains;
mod error;
mod handles;
mod imports;
mod links;
mod memory;
mod objects;
mod policy;
mod pools;
mod process;
mod prototype;
mod recipe;
mod regions;

pub use calls::*;
pub use domains::*;
pub use error::{CFrame, Info, Status};
pub use imports::*;
pub use links::*;
pub use memory::*;
pub use policy::*;
pub use pools::*;
pub use process::*;
pub use recipe::Slot;
pub use regions::*;
