//! For hosts that learn types while they run: bindings of other languages, and command lines.
//!
//! What passes a gate is bits in registers of two kinds. Here they are passed as such; [`Func`](crate::Func) and
//! [`Imports::func`](crate::Imports::func) do the same for types that the compiler knows.

mod function;
mod incoming;
mod types;
mod unwind;

pub use function::{Argument, Column, Element, Function, Results, take_error};
pub use incoming::{Incoming, current_tag};
pub use ringfence_runtime::domain::{last_call, restore_call, save_call};
pub use ringfence_runtime::{LastCall, Mark, StaleMark, mark};
pub use types::Type;
pub use unwind::{UnwindError, unwind};
