//! What callers are told: errors.

pub mod error;
