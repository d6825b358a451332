//! Modules: verified images.

use crate::error::LoadError;
use ringfence_isa::Isolation;
use std::path::Path;
use std::sync::Arc;

/// What the host accepts.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct LoadOptions {
    /// Accept modules that confine stores and jumps only.
    pub allow_integrity: bool,
    /// Accept code that reads the time-stamp counter.
    pub allow_tsc: bool,
}

/// What the module's note claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// ABI version.
    pub abi: u32,
    /// [`ringfence_isa::note::flag`] bits.
    pub flags: u32,
    /// [`ringfence_isa::window::feature`] bits.
    pub features: u32,
}

/// What an export is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportKind {
    /// A function that the verifier knows as an entry: can be called.
    Function,
    /// A variable.
    Object,
    /// A thread-local variable.
    ThreadLocal,
}

/// A symbol that the module defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: ExportKind,
    /// Offset in the image.
    pub offset: u32,
    /// Size in bytes, as claimed.
    pub size: u64,
}

/// A symbol that the module needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// Its plain name, without [`ringfence_isa::note::IMPORT_PREFIX`].
    pub name: String,
    /// Whether it is a function (has the prefix) or data.
    pub function: bool,
    /// Whether it may stay undefined.
    pub weak: bool,
}

/// A loadable segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Offset in the image.
    pub offset: u32,
    /// Length in memory.
    pub len: u32,
    /// Length in the file.
    pub file_len: u32,
    /// What it holds.
    pub kind: ringfence_verify::SegmentKind,
}

/// A verified image, ready to become domains. Cheap to clone.
#[derive(Clone)]
pub struct Module(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    name: String,
}

impl Module {
    /// Reads and verifies a module file.
    ///
    /// # Errors
    /// [`LoadError`] tells what is wrong with the file.
    pub fn open(path: impl AsRef<Path>, options: &LoadOptions) -> Result<Module, LoadError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let bytes = std::fs::read(path).map_err(|source| LoadError::Read {
            name: name.clone(),
            source,
        })?;
        Module::from_bytes(&name, &bytes, options)
    }

    /// Verifies a module file that is in memory. `name` is for messages.
    ///
    /// # Errors
    /// [`LoadError`] tells what is wrong with the bytes.
    pub fn from_bytes(name: &str, bytes: &[u8], options: &LoadOptions) -> Result<Module, LoadError> {
        let _ = (bytes, options);
        Err(LoadError::NotModule {
            name: name.into(),
            reason: "the loader has not landed yet".into(),
        })
    }

    /// The name it was loaded under.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Defined symbols of default visibility.
    #[must_use]
    pub fn exports(&self) -> &[Export] {
        todo!()
    }

    /// Undefined symbols.
    #[must_use]
    pub fn imports(&self) -> &[Import] {
        todo!()
    }

    /// Loadable segments in order of address.
    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        todo!()
    }

    /// Instruction-set extensions that the code uses ([`ringfence_isa::window::feature`] bits), as the verifier found.
    #[must_use]
    pub fn features(&self) -> u32 {
        self.report().features
    }

    /// What its memory accesses are confined to.
    #[must_use]
    pub fn isolation(&self) -> Isolation {
        todo!()
    }

    /// What its note claims.
    #[must_use]
    pub fn note(&self) -> Note {
        todo!()
    }

    /// What the verifier found out.
    #[must_use]
    pub fn report(&self) -> &ringfence_verify::Report {
        todo!()
    }
}
