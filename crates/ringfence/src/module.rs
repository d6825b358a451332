//! Modules: files whose code has been verified.

use std::fmt;
use std::path::Path;

use ringfence_isa::{Addressing, Isolation};
use ringfence_runtime::{self as runtime, Backend, Export, Import, LoadOptions};

use crate::LoadError;
use crate::backend::Image;

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
pub struct Module(pub(crate) Image);

impl Module {
    /// Reads, checks and verifies the file. Nothing of it has run afterwards.
    ///
    /// # Errors
    /// [`LoadError`] tells what is wrong with the file, and where.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, LoadError> {
        Self::open_with(path, &LoadOptions::default())
    }

    /// The same, for hosts that accept more than the default. With [`LoadOptions::backend`] set to [`Backend::None`] the file is an
    /// ordinary shared object, which is **not verified**; only domains of that back end can be made of it.
    ///
    /// # Errors
    /// [`LoadError`] tells what is wrong with the file, and where.
    pub fn open_with(path: impl AsRef<Path>, options: &LoadOptions) -> Result<Self, LoadError> {
        let image = match options.backend {
            Backend::None => {
                let (name, bytes) = runtime::module::read(path.as_ref(), options)?;
                Image::Plain(ringfence_none::Module::new(name, bytes)?)
            }
            _ => Image::Verified(runtime::Module::open(path, options)?),
        };
        Ok(Self(image))
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
        let image = match options.backend {
            Backend::None => Image::Plain(ringfence_none::Module::new(name.to_owned(), bytes.to_vec())?),
            _ => Image::Verified(runtime::Module::from_bytes(name, bytes, options)?),
        };
        Ok(Self(image))
    }

    /// The name it was loaded under.
    #[must_use]
    pub fn name(&self) -> &str {
        match &self.0 {
            Image::Verified(module) => module.name(),
            Image::Plain(module) => module.name(),
        }
    }

    /// What the module offers.
    #[must_use]
    pub fn exports(&self) -> &[Export] {
        match &self.0 {
            Image::Verified(module) => module.exports(),
            Image::Plain(module) => module.exports(),
        }
    }

    /// What the module needs.
    #[must_use]
    pub fn imports(&self) -> &[Import] {
        match &self.0 {
            Image::Verified(module) => module.imports(),
            Image::Plain(module) => module.imports(),
        }
    }

    /// What its memory accesses are confined to; `None` if to nothing: an ordinary shared object.
    #[must_use]
    pub fn isolation(&self) -> Option<Isolation> {
        match &self.0 {
            Image::Verified(module) => Some(module.isolation()),
            Image::Plain(_) => None,
        }
    }

    /// By which forms of operands it reaches memory, as the verifier found; `None` for an ordinary shared object.
    #[must_use]
    pub fn addressing(&self) -> Option<Addressing> {
        match &self.0 {
            Image::Verified(module) => Some(module.addressing()),
            Image::Plain(_) => None,
        }
    }

    /// The bytes it was made of.
    #[must_use]
    pub fn original(&self) -> &[u8] {
        match &self.0 {
            Image::Verified(module) => module.original(),
            Image::Plain(module) => module.original(),
        }
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Module").field(&self.name()).finish()
    }
}
