//! What a module's file tells about its code besides the code: names for addresses, types of functions, readable C++ names.
//!
//! The file's author may have made it of anything. Nothing here recurses without a fixed depth, nothing is kept but what is asked
//! for, and each entry, range, row and symbol is a step of a [`Budget`](ringfence_core::work::Budget), however often it is
//! reached. The runtime's reports and the tools read by this one reader; `docs/security/reports.md` has the bounds.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod asked;
mod bytes;
pub mod cxx;
mod lines;
mod lookup;
pub mod prototype;
mod sections;
pub mod structure;
mod unit;

pub use lookup::{MOST, Name, look_up};
