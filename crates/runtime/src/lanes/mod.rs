//! What one thread needs inside one domain, what all threads share, and what interrupts them.

pub(crate) mod credit;
pub(crate) mod lane;
pub(crate) mod signal;
pub(crate) mod thunk;
pub(crate) mod watchdog;
pub(crate) mod world;
