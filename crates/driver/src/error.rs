//! What can go wrong between a source file and a module.

use std::fmt;
use std::io;

use crate::image::ImageError;

/// An error of a build. The text says what happened and, where that is known, what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An option that needs an argument came last.
    #[error("{0} needs an argument")]
    MissingArgument(String),
    /// An option of Ringfence with a value that it does not know.
    #[error("{option} cannot be '{value}'; use one of: {choices}")]
    BadValue {
        /// The option.
        option: &'static str,
        /// What was given.
        value: String,
        /// What it takes.
        choices: &'static str,
    },
    /// `-x` with a language that gcc would compile but the rewriter was not made for.
    #[error("-x {0} is not supported; fenced code is C, C++ or assembly")]
    Language(String),
    /// A gcc option that cannot work in a fenced build.
    #[error("{option} cannot be used in a fenced build: {why}")]
    Unsupported {
        /// The option.
        option: String,
        /// Why not, and what to do.
        why: &'static str,
    },
    /// Response files that include each other.
    #[error("too many response files; does {0} include itself?")]
    ResponseFileLoop(String),
    /// A line of an `--imports-from` file.
    #[error("{file}: '{line}' is not an import; write one name a line, or 'data NAME'")]
    ImportsFile {
        /// The file.
        file: String,
        /// The line.
        line: String,
    },
    /// A sysroot that is not there.
    #[error("there is no sysroot at {0}; `ringfence setup` makes one, and an installation brings one")]
    NoSysroot(String),
    /// Nothing to do.
    #[error("no input files")]
    NoInputs,
    /// Several inputs for one `-o`.
    #[error("-o cannot name one output for several inputs with -c or -S; leave -o out")]
    OneOutput,
    /// Clang, which has no way to keep the three registers free.
    #[error(
        "{0} is Clang, which cannot keep r11, r14 and r15 free before version 23; set RINGFENCE_CC to a gcc, version 12 or newer"
    )]
    Clang(String),
    /// A compiler older than the oldest tested one.
    #[error("{compiler} has version {version}; Ringfence needs gcc 12 or newer")]
    OldCompiler {
        /// Its command.
        compiler: String,
        /// What it reports.
        version: String,
    },
    /// A tool that could not be started.
    #[error("cannot run {tool}: {source}; install it, or set {variable}")]
    Tool {
        /// The tool's command.
        tool: String,
        /// Which variable overrides it.
        variable: &'static str,
        /// Why.
        source: io::Error,
    },
    /// A tool said no; it has printed its own messages.
    #[error("{0} failed")]
    Failed(String, i32),
    /// The assembler refused what the rewriter wrote.
    #[error("{file}: the assembler refused the fenced assembly (keep it with -save-temps):\n{messages}")]
    Assembler {
        /// The input.
        file: String,
        /// The assembler's messages.
        messages: String,
    },
    /// Constructs that cannot be fenced.
    #[error("{0}")]
    Rewrite(String),
    /// A file that could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// Its name.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// A link input that is neither an object, an archive, nor a module.
    #[error("{path}: {what}")]
    Input {
        /// Its name.
        path: String,
        /// What is wrong with it.
        what: String,
    },
    /// `-l` without a library.
    #[error("cannot find -l{name} (looked in: {searched}); libraries must be built with ringfence cc")]
    Library {
        /// The name.
        name: String,
        /// Where it was looked for.
        searched: String,
    },
    /// References that nothing defines and that nobody declared to be imports.
    #[error("{0}")]
    Undefined(Undefined),
    /// Data of another module, compiled as if it were the module's own.
    #[error(
        "{object} reaches '{symbol}' directly, but another module gives it; compile the source with --import-data={symbol}, or declare it there: RF_IMPORT_DATA(TYPE, {symbol})"
    )]
    DirectData {
        /// The object that refers to it.
        object: String,
        /// The data.
        symbol: String,
    },
    /// The linked file is not a module.
    #[error("{path}: {source}")]
    Image {
        /// Its name.
        path: String,
        /// What is wrong.
        source: ImageError,
    },
    /// More indirect jumps with their own labels than there are identifiers.
    #[error("the module has more than {limit} classes of jump labels; split it into several modules")]
    TooManyLabels {
        /// How many there may be.
        limit: usize,
    },
    /// Bytes that look like an identifier and could not be moved.
    #[error(
        "bytes at {address:#x}{place} look like an identifier and could not be moved; change the order of the inputs or the code there"
    )]
    Accidental {
        /// Where.
        address: u64,
        /// Function or source line, or nothing.
        place: String,
    },
    /// The verifier's verdict on the module.
    #[error("{0}")]
    Rejected(String),
}

impl Error {
    pub(crate) fn read(path: impl fmt::Display, source: io::Error) -> Error {
        Error::File {
            path: path.to_string(),
            source,
        }
    }

    /// The exit status that goes with it: a tool's own, or 1.
    #[must_use]
    pub fn status(&self) -> i32 {
        match self {
            Error::Failed(_, status) => *status,
            _ => 1,
        }
    }
}

/// Symbols that stayed undefined, with the places that refer to them.
#[derive(Debug, Default)]
pub struct Undefined {
    /// Symbol, places as the linker names them, and objects that refer to it.
    pub symbols: Vec<(String, Vec<String>, Vec<String>)>,
    /// Whether no libc was linked for want of a sysroot.
    pub no_libc: bool,
}

impl fmt::Display for Undefined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (symbol, places, objects) in &self.symbols {
            write!(f, "undefined symbol '{symbol}'")?;
            for (i, place) in places.iter().take(4).enumerate() {
                write!(f, "{}{place}", if i == 0 { ", used at " } else { ", " })?;
            }
            if places.len() > 4 {
                write!(f, " and {} more", places.len() - 4)?;
            }
            if !objects.is_empty() {
                write!(
                    f,
                    " [{}{}]",
                    objects[..objects.len().min(4)].join(", "),
                    if objects.len() > 4 { ", …" } else { "" }
                )?;
            }
            f.write_str("\n    ")?;
        }
        f.write_str(
            "link what defines it, or declare it an import: --import=NAME, or RF_IMPORT in the source",
        )?;
        if self.no_libc {
            f.write_str("\n    (no libc is linked: there is no sysroot; `ringfence setup` makes one, RINGFENCE_SYSROOT names one)")?;
        }
        Ok(())
    }
}
