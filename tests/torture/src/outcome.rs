//! What becomes of a program.

use std::fmt;

/// What became of a program.
pub enum Outcome {
    /// It returned 0 or called `exit(0)`.
    Pass,
    /// It could not be built; the first line of what the compiler said.
    Build(String),
    /// It ran and failed.
    Run(String),
    /// It fails natively too.
    Unsuitable(String),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Pass => f.write_str("passed"),
            Outcome::Build(why) => write!(f, "does not build: {why}"),
            Outcome::Run(why) => write!(f, "fails: {why}"),
            Outcome::Unsuitable(why) => write!(f, "native {why}"),
        }
    }
}
