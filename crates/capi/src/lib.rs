//! The C library of Ringfence.
