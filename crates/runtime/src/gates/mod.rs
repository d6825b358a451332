//! How control crosses the boundary, and what becomes of calls that fail.

pub mod fault;
pub(crate) mod frames;
pub(crate) mod gate;
pub(crate) mod jump;
