//! What one thread needs inside one domain, what all threads share, and what interrupts them.

pub(crate) mod all;
pub(crate) mod answer;
pub(crate) mod credit;
pub(crate) mod first;
pub(crate) mod fresh;
pub(crate) mod gate;
pub(crate) mod init;
pub(crate) mod lane;
pub(crate) mod last_error;
pub(crate) mod learn;
pub(crate) mod note;
pub(crate) mod own_stack;
pub(crate) mod pause;
pub(crate) mod raw_fault;
pub(crate) mod set;
pub(crate) mod settle;
pub(crate) mod signal;
pub(crate) mod tested;
pub(crate) mod thunk;
pub(crate) mod tick;
pub(crate) mod touch;
pub(crate) mod unwind;
pub(crate) mod watchdog;
pub(crate) mod world;
