//! The back end `process`: the same module in the same kind of window, in a process of its own that can do nothing but compute.
//!
//! The program `ringfence-worker` is the window back end with a seccomp filter around it. Faults, limits, resets and backtraces are its
//! own; what the domain wants of the host, calls of host functions and system calls, travels back. Messages go through
//! [channels](channel) in shared memory, one for each thread of the host that uses the domain, with a thread of the worker's at the other end. The
//! window is shared too: one file, mapped at the same addresses on both sides, so the host reads and writes it where it is and
//! pointers are the same numbers. The host's mapping has all rights; what the domain may do with its pages stands in the file.
//!
//! What a worker sends is checked like anything that a domain says: it is on the other side of the fence.

mod ask;
mod channel;
mod child;
mod domain;
mod link;
mod lock;
mod setup;
mod shared;
mod space;
mod threads;
mod wire;
mod worker;

pub use child::confinement;
pub use domain::Domain;
pub use worker::worker;
