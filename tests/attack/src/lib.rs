//! Attacks on Ringfence's boundary: see `docs/security/history.md` for what they established.

#![deny(missing_docs)]

#[cfg(feature = "holes")]
extern crate ringfence_mistakes as ringfence_verify;

pub mod caller;
pub mod calls;
pub mod child;
pub mod code;
pub mod corpus;
pub mod elf;
pub mod encodings;
pub mod files;
pub mod fuzz;
pub mod gates;
#[cfg(feature = "holes")]
pub mod holes;
pub mod host;
pub mod jail;
pub mod objects;
pub mod program;
pub mod races;
pub mod rng;
pub mod step;
