//! The back end `none`: an ordinary shared object behind the interface of domains. **No fence.** What crashes in it takes the process
//! along, as with `dlopen`; it is for debugging with the usual tools, and to measure against.
//!
//! Each domain has a private copy of the file, so data is its own. `dlmopen` would do that too, but with a second C library and for
//! fifteen domains only. The dynamic linker places and relocates the copy; it neither runs code of it nor looks for the symbols that
//! the host gives: those words are filled in afterwards with function pointers, and constructors run then, as calls.

mod domain;
mod elf;
mod imports;
mod library;

pub use domain::Domain;

use ringfence_core::{Export, Import, LoadError};
use std::sync::Arc;

/// An ordinary shared object that was read, and not checked. Cheap to clone.
#[derive(Clone)]
pub struct Module(Arc<Inner>);

struct Inner {
    name: String,
    bytes: Vec<u8>,
    object: elf::Object,
}

impl Module {
    /// Takes a shared object apart that is in memory. `name` is for messages.
    ///
    /// # Errors
    /// [`LoadError::Fenced`] if it is a module; [`LoadError::NotModule`], [`LoadError::Malformed`] if it is no shared object.
    pub fn new(name: String, bytes: Vec<u8>) -> Result<Module, LoadError> {
        let object = elf::parse(&name, &bytes)?;
        Ok(Module(Arc::new(Inner { name, bytes, object })))
    }

    /// The name it was loaded under.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// What it offers.
    #[must_use]
    pub fn exports(&self) -> &[Export] {
        &self.0.object.exports
    }

    /// What it needs, of the host and of other libraries.
    #[must_use]
    pub fn imports(&self) -> &[Import] {
        &self.0.object.imports
    }

    /// The bytes it was made of.
    #[must_use]
    pub fn original(&self) -> &[u8] {
        &self.0.bytes
    }
}
