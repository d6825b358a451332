//! Modules: files whose code has been verified.

use std::fmt;
use std::path::Path;

use ringfence_isa::Isolation;
use ringfence_runtime::{self as runtime, Export, Import, LoadOptions};

use crate::LoadError;

/// A verified module, ready to become domains. Cheap to clone.
///
/// # Examples
/// ```no_run
/// use ringfence::{Imports, Module};
///
/// let module = Module::open("plugin.rf")?;
/// for import in module.imports() {
///     println!("needs {}", import.name);
/// }
/// let domain = module.instantiate(Imports::new())?;
/// # Ok::<(), ringfence::Error>(())
/// ```
#[derive(Clone)]
pub struct Module(pub(crate) runtime::Module);

impl Module {
    /// Reads, checks and verifies the file. Nothing of it has run afterwards.
    ///
    /// # Errors
    /// [`LoadError`] tells what is wrong with the file, and where.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, LoadError> {
        Self::open_with(path, &LoadOptions::default())
    }

    /// The same, for hosts that accept more than the default.
    ///
    /// # Errors
    /// [`LoadError`] tells what is wrong with the file, and where.
    pub fn open_with(path: impl AsRef<Path>, options: &LoadOptions) -> Result<Self, LoadError> {
        runtime::Module::open(path, options).map(Self)
    }

    /// Checks and verifies a module that is in memory. `name` is for messages.
    ///
    /// # Errors
    /// [`LoadError`] tells what is wrong with the bytes, and where.
    ///
    /// # Examples
    /// ```
    /// use ringfence::{LoadError, LoadOptions, Module};
    ///
    /// let e = Module::from_bytes("note.txt", b"not a module", &LoadOptions::default()).unwrap_err();
    /// assert!(matches!(e, LoadError::NotModule { .. }));
    /// ```
    pub fn from_bytes(name: &str, bytes: &[u8], options: &LoadOptions) -> Result<Self, LoadError> {
        runtime::Module::from_bytes(name, bytes, options).map(Self)
    }

    /// The name it was loaded under.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// What the module offers.
    #[must_use]
    pub fn exports(&self) -> &[Export] {
        self.0.exports()
    }

    /// What the module needs.
    #[must_use]
    pub fn imports(&self) -> &[Import] {
        self.0.imports()
    }

    /// What its memory accesses are confined to.
    #[must_use]
    pub fn isolation(&self) -> Isolation {
        self.0.isolation()
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Module").field(&self.name()).finish()
    }
}
