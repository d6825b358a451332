//! Rights on single words of memory that many domains can name: who owns them, who was given what, for how long, and what a function
//! may touch according to its policy. Nothing here maps memory or knows a back end; `docs/words.md` has the whole.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod bits;
mod error;
mod layer;
mod members;
mod object;
mod objects;
mod overview;
pub mod policy;
mod report;
mod sink;
mod supervisor;
mod tell;

pub use error::Error;
pub use object::{Object, TypeId};
pub use overview::{ListedGroup, Listing, Overview};
pub use report::{Denied, Types};
pub use ringfence_core::{DomainId, Grantee, GroupId, Party, Rights};
pub use sink::{Listed, NoRoom, Sink};
pub use supervisor::{Call, MOST_WORDS, Supervisor, WORD};
