//! Checks machine code against Ringfence's rules.
