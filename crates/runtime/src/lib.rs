//! Windows, loader, gates, lanes and faults.

pub mod guarded;
