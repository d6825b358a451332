//! Turns gcc's assembly into two-stack, confined assembly.
