//! Errors, a file for each thing that can fail.

mod added;
mod call;
mod domain;
mod grant;
mod host;
mod load;
mod memory;
mod words;

pub use added::{CodeError, InUse, ModuleError};
pub use call::{CallError, HostFailure};
pub use domain::{DomainError, SnapshotError};
pub use grant::GrantError;
pub use host::HostError;
pub use load::LoadError;
pub use memory::MemoryError;
pub use words::WordsError;
