//! Attacks on Ringfence's boundary: see `docs/security.md` for what they established.

#![deny(missing_docs)]

pub mod caller;
pub mod child;
pub mod code;
pub mod elf;
pub mod encodings;
pub mod files;
pub mod fuzz;
pub mod gates;
pub mod host;
pub mod program;
pub mod rng;
pub mod step;
