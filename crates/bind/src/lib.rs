//! `ringfence bind`: typed bindings of a library that runs in a domain, from its headers.
//!
//! gcc compiles a file that includes the headers and names each of their functions; its debug information says what every type is. What
//! types do not say, how long an array is, or who owns a text, notes do. Nothing here is trusted: what is written calls the public
//! interface, and a wrong binding gives the library wrong values.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

mod constant;
mod notes;
mod plan;
mod probe;
mod scan;
mod types;
mod write;

pub use constant::Constant;
pub use write::Language;

/// What to bind.
#[derive(Debug, Default)]
pub struct Request {
    /// The library's headers: what stands behind `#include`, or paths. Their functions are bound.
    pub headers: Vec<String>,
    /// What the binding is called.
    pub name: String,
    /// The file of notes.
    pub notes: Option<PathBuf>,
    /// The module, to be compared with the headers.
    pub module: Option<PathBuf>,
    /// What gcc gets besides: `-I`, `-D`, `-include`.
    pub flags: Vec<String>,
}

impl Request {
    /// The file that the binding opens if the program names no other: called as the module, or as the binding.
    fn module_name(&self) -> String {
        let file = self.module.as_deref().and_then(Path::file_name);
        file.map_or_else(
            || format!("{}.rf", self.name),
            |file| file.to_string_lossy().into_owned(),
        )
    }
}

/// What came of it.
#[derive(Debug)]
pub struct Binding {
    /// Names and contents of files.
    pub files: Vec<(String, String)>,
    /// How many functions are bound.
    pub functions: usize,
    /// Functions that are not, and why.
    pub refused: Vec<(String, String)>,
    /// Constants of the headers: macros and enumerators.
    pub constants: Vec<(String, Constant)>,
    /// Where the module is another than the headers say.
    pub differences: Vec<String>,
}

/// Why nothing was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be read.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// gcc does not understand the headers.
    #[error(
        "gcc does not understand the headers; what it needs (-I, -D, -include) stands behind --:\n{output}"
    )]
    Headers {
        /// What gcc said.
        output: String,
    },
    /// gcc cannot be run, or what it wrote cannot be read.
    #[error("{0}")]
    Compiler(String),
    /// The headers declare no function.
    #[error(
        "the headers declare no functions: name those that declare the library's (not one that only includes them)"
    )]
    NoFunctions,
    /// A note is wrong.
    #[error("{path}:{line}: {why}")]
    Note {
        /// The file of notes.
        path: String,
        /// The line, counted from 1; 0 for a pattern.
        line: usize,
        /// What is wrong.
        why: String,
    },
}

/// Writes bindings in these languages.
///
/// # Errors
/// [`Error`].
pub fn bind(request: &Request, languages: &[Language]) -> Result<Binding, Error> {
    let read = |path: &PathBuf| {
        std::fs::read(path).map_err(|source| Error::File {
            path: path.display().to_string(),
            source,
        })
    };
    let notes = match &request.notes {
        Some(path) => {
            let text = String::from_utf8_lossy(&read(path)?).into_owned();
            notes::Notes::read(&path.display().to_string(), &text)?
        }
        None => notes::Notes::default(),
    };
    let probed = probe::probe(request)?;
    let mut plan = plan::plan(&probed.scanned, &probed.types, &notes)?;
    let differences = match &request.module {
        Some(path) => probe::compare(&read(path)?, &probed, &mut plan),
        None => Vec::new(),
    };
    let library = write::Library {
        request,
        types: &probed.types,
        constants: &probed.constants,
        plan: &plan,
    };
    Ok(Binding {
        files: languages.iter().flat_map(|l| l.write(&library)).collect(),
        functions: plan.functions.len(),
        refused: plan.refused,
        constants: probed.constants,
        differences,
    })
}
