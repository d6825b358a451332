//! Why a file did not become a module.

use super::HostError;
use crate::backend::Backend;
use std::io;

/// Why a file did not become a `Module`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file is a fenced module, and was to be loaded for the back end `none`.
    #[error("{name}: {}", not_for(Backend::None))]
    Fenced {
        /// The file.
        name: String,
    },
    /// The file cannot be read.
    #[error("{name}: {source}")]
    Read {
        /// The file.
        name: String,
        /// What the system said.
        source: io::Error,
    },
    /// The file is not a module at all: another format, another processor, no Ringfence note.
    #[error("{name}: not a Ringfence module: {reason}")]
    NotModule {
        /// The file.
        name: String,
        /// What is missing or wrong.
        reason: String,
    },
    /// The file claims to be a module but breaks the format.
    #[error("{name}: malformed module at offset {offset:#x}: {reason}")]
    Malformed {
        /// The file.
        name: String,
        /// Offset in the file, or address in the image, where it goes wrong.
        offset: u64,
        /// What is wrong there.
        reason: String,
    },
    /// The module was built for another version of the interface.
    #[error("{name}: built for ABI version {found}, this runtime speaks {expected}; build it again")]
    Version {
        /// The file.
        name: String,
        /// What the module's note says.
        found: u32,
        /// What this runtime needs.
        expected: u32,
    },
    /// The module was compiled for a processor with more extensions than this one has.
    #[error("{name}: needs processor features that this machine lacks (bits {missing:#x})")]
    Features {
        /// The file.
        name: String,
        /// The missing [`ringfence_isa::window::feature`] bits.
        missing: u32,
    },
    /// An integrity-only module was not expressly allowed.
    #[error(
        "{name}: confines stores only (--isolation=integrity); set LoadOptions::allow_integrity to load it"
    )]
    Integrity {
        /// The file.
        name: String,
    },
    /// A module that reaches the host's objects by rights was not expressly allowed.
    #[error(
        "{name}: reaches objects of the host's (--isolation=words); set LoadOptions::allow_words (in C: RF_LOAD_ALLOW_WORDS) to load it"
    )]
    Words {
        /// The file.
        name: String,
    },
    /// The verifier refused the code.
    #[error("{name}: {reason}")]
    Rejected {
        /// The file.
        name: String,
        /// Every rejection, one a line.
        reason: String,
    },
    /// All label identifiers of the process are taken by loaded modules.
    #[error("{name}: needs {wanted} label identifiers, {free} are free; drop modules that are not needed")]
    Identifiers {
        /// The file.
        name: String,
        /// How many the module needs.
        wanted: usize,
        /// How many are left, in one piece.
        free: usize,
    },
    /// The module has more label identifiers than one may take of those that the process has.
    #[error(
        "{name}: needs {wanted} label identifiers, one module may have {limit}; raise LoadOptions::max_labels"
    )]
    Labels {
        /// The file.
        name: String,
        /// How many the module needs.
        wanted: usize,
        /// How many it may have.
        limit: usize,
    },
    /// The file is larger than the host accepts. It was not read.
    #[error("{name}: larger than {limit} bytes; raise LoadOptions::max_file_size")]
    TooLarge {
        /// The file.
        name: String,
        /// How large it may be.
        limit: u64,
    },
    /// What the file says would cost more memory or work than a file of its size may.
    #[error("{name}: loading it {source}")]
    Exceeded {
        /// The file.
        name: String,
        /// Which bound.
        source: crate::work::Exceeded,
    },
    /// The process cannot host modules, or a system call failed.
    #[error(transparent)]
    Host(#[from] HostError),
}

/// What a domain's option says of a module with the other form of operands.
pub(super) const THROUGH_R14: &str = "has operands through r14, and the domain takes such through gs only (DomainOptions::addressing); \
                           compile and link it with --addressing=segment ('ringfence verify --addressing segment' tells where)";

/// What a file for another back end has to become.
pub(super) fn not_for(backend: Backend) -> String {
    match backend {
        Backend::None => "a fenced module, and the back end none runs ordinary shared objects: build one from the same sources with \
                          'cc -shared -fPIC', and load it with LoadOptions::backend set to none"
            .to_owned(),
        other => format!(
            "an ordinary shared object, loaded for the back end none, and the back end {other} runs verified modules: build one \
             from the same sources with 'ringfence cc -shared'"
        ),
    }
}
