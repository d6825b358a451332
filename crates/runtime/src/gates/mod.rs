//! How control crosses the boundary, and what becomes of calls that fail.

mod assembly;
mod denied;
mod dispatch;
pub mod fault;
pub(crate) mod frames;
mod prepare;
