//! Windows, and what lies in one besides code and data of modules.

pub(crate) mod arena;
pub(crate) mod header;
pub(crate) mod memory;
pub(crate) mod room;
pub(crate) mod twin;
pub(crate) mod window;
