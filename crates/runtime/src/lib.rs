//! Windows, loader, gates, lanes and faults.
