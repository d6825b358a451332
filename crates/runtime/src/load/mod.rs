//! From a file to a verified module, and names for its addresses.

pub(crate) mod elf;
pub(crate) mod labels;
pub mod module;
pub(crate) mod names;
pub(crate) mod options;
mod steps;
pub(crate) mod stubs;
pub(crate) mod symbolize;
pub mod symbols;
pub(crate) mod trace;
