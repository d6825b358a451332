//! What cannot be rewritten, told so that the reader knows where and what to do.

use std::fmt;

use crate::check;

/// One place in the assembly that cannot be rewritten.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Error {
    /// Name of the assembly file, as given to [`crate::rewrite`].
    pub file: String,
    /// Line in the assembly, counted from 1.
    pub line: usize,
    /// Source file and line, when a `.loc` in front of the instruction tells.
    pub source_line: Option<SourceLine>,
    /// Function that the instruction belongs to.
    pub function: Option<String>,
    /// The instruction or directive as it stands in the input.
    pub instruction: String,
    /// Why it cannot be rewritten.
    pub reason: String,
    /// What to do about it.
    pub advice: String,
}

/// A place in the source from which the assembly was compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// The file.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source_line {
            Some(s) => write!(f, "{}:{}: ", s.file, s.line)?,
            None => write!(f, "{}:{}: ", self.file, self.line)?,
        }
        if let Some(function) = &self.function {
            write!(f, "in function {function}: ")?;
        }
        write!(f, "{}: {}", self.instruction.trim(), self.reason)?;
        if !self.advice.is_empty() {
            write!(f, " ({})", self.advice)?;
        }
        if self.source_line.is_some() {
            write!(f, " [line {} of the assembly]", self.line)?;
        }
        Ok(())
    }
}

/// Everything in one file that cannot be rewritten, in the order of the text. Never empty.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Errors(pub Vec<Error>);

impl Errors {
    /// A flag for the compiler with which the same source may be rewritten after all.
    #[must_use]
    pub fn remedy(&self) -> Option<&'static str> {
        let lost = self.0.iter().any(|e| e.reason == check::FLAGS_LOST);
        lost.then_some("-fno-crossjumping")
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, e) in self.0.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            write!(f, "{e}")?;
        }
        Ok(())
    }
}
