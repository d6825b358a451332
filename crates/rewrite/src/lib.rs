//! Turns gcc's assembly into two-stack, confined assembly.
//!
//! Input is what gcc 12 or newer prints with `-S` and the flags of [`compile_flags`], or
//! hand-written assembly in AT&T syntax. Output goes through plain `as`. Nothing here is trusted:
//! the verifier judges the final bytes.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod bits;
mod cfi;
mod check;
mod debug;
mod dispatch;
mod emit;
mod error;
mod expand;
mod file;
mod flags;
mod func;
mod insn;
mod late;
mod leads;
mod out;
mod parse;
mod regs;
mod sections;
mod setjmp;
mod sink;
mod small_loops;
mod stack;
mod state;
mod step;
mod strings;
mod tables;
mod through;
mod unwind;
mod walk;
mod words;
mod words_access;
mod words_known;
mod words_size;
mod words_small;

pub use error::{Error, Errors, SourceLine};
pub use flags::{FlagKind, compile_flags};
pub use ringfence_isa::{Addressing, Isolation};

/// How to rewrite.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// What memory accesses are confined to.
    pub isolation: Isolation,
    /// By which forms of operands memory is reached.
    pub addressing: Addressing,
    /// Segment matching: an access whose address lies outside the window traps in front of the
    /// instruction that would make it, instead of being wrapped into the window.
    pub check: bool,
    /// The input was written by hand: it need not carry call-frame directives, `.type` and
    /// `.size` for each function, or gcc's pattern names.
    pub handwritten: bool,
    /// Names of data that another module of the domain gives: operands that name it go through the global offset table.
    /// What the file itself declares so (`RF_IMPORT_DATA`) need not be here.
    pub data_imports: Vec<String>,
    /// `rdtsc` and `rdtscp` read the host's clock, in nanoseconds, by a system call; else they are refused.
    pub clock: bool,
}

/// Rewrites one assembly file.
///
/// `file_name` is used in messages only.
///
/// # Errors
///
/// Everything in the file that cannot be rewritten, with line, instruction, reason and advice.
pub fn rewrite(input: &str, file_name: &str, options: &Options) -> Result<String, Errors> {
    file::rewrite(input, file_name, options)
}
