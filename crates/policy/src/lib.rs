//! What a domain may ask of the operating system.
//!
//! A [`Policy`] lists what is granted; everything else is denied with the errno that portable programs expect.
//! [`Policy::start`] opens the granted directories and makes a [`Monitor`], which answers the system calls of one domain:
//! give it to the domain's imports. [`program::run`] starts a program's `main`.
//!
//! Files are reached through `openat2` below a granted directory, so that no symbolic link, `..` or rename leads out.
//! Descriptors are the domain's own numbers. Pointers are rebased into the window before anything is done with them;
//! what has to be checked (paths, addresses, times, vectors) is copied once first.

#![deny(missing_docs)]

mod calls;
mod captured;
mod device;
mod disk;
mod grant;
mod memory;
mod monitor;
mod names;
mod place;
mod processes;
pub mod program;
mod slices;
mod span;
mod stage;
mod state;
mod sys;
mod table;
mod text;
mod threads;
pub mod trace;
mod tree;

pub use captured::Captured;
pub use grant::{Decision, Policy, PolicyError, Request, Stream};
pub use monitor::Monitor;
pub use ringfence_core::Rights;
