//! Functions that arrive as text: compiled in microseconds, verified, run behind the fence, replaced and deleted while others
//! run.
//!
//! A [`Runtime`] is a domain without any module, to which functions come one by one. They call each other directly, share its
//! heap, and keep their static data from call to call. `docs/functions.md` tells more.
//!
//! ```
//! use ringfence::DomainOptions;
//! use ringfence_functions::{BuiltIns, Runtime};
//!
//! let runtime = Runtime::new(BuiltIns::new(), &DomainOptions::default())?;
//! let twice = runtime.create("twice", "long twice(long n) { return 2 * n; }")?;
//! let twice = twice.typed::<(i64,), i64>()?;
//! assert_eq!(twice.call(21)?, 42);
//!
//! runtime.replace("twice", "long twice(long n) { return n << 1; }")?;
//! assert_eq!(twice.call(4)?, 8, "the handle stays");
//!
//! runtime.delete("twice")?;
//! assert!(twice.call(4).is_err());
//! # Ok::<(), ringfence_functions::FunctionError>(())
//! ```

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod built_in;
mod error;
mod func;
mod places;
mod runtime;
mod trampolines;
mod unit;
mod value;

pub use built_in::BuiltIns;
pub use error::FunctionError;
pub use func::{Func, TypedFunc};
pub use places::FILE as TEXT_FILE;
pub use ringfence_text::{Compiled, Errors, Export, Kind, NoObject, compile};
pub use runtime::Runtime;
pub use value::{Prototype, Value};
