//! Memory that several domains share, and who may do what with it.

pub mod rights;
pub mod supervisor;
