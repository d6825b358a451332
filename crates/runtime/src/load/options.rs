//! What a host accepts of modules.

use ringfence_core::{Addressing, Backend};

/// What the host accepts.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LoadOptions {
    /// Accept modules that confine stores and jumps only.
    pub allow_integrity: bool,
    /// Accept modules that reach objects of the host's, as far as the rights in a table go. Their domain needs an
    /// [`Arena`](crate::Arena), and all its modules are of that kind.
    pub allow_words: bool,
    /// By which forms of operands the module may reach memory: [`Addressing::Any`]. With [`Addressing::Segment`] one that also goes
    /// through `r14` is refused, and the refusal tells where; [`DomainOptions::addressing`](crate::DomainOptions::addressing) holds for
    /// all that is ever in a domain.
    pub addressing: Addressing,
    /// Accept code that reads the time-stamp counter.
    pub allow_tsc: bool,
    /// Largest file in bytes, debug information included: 256 MiB; 4 GiB at most. A larger one is not read. Loading a file of
    /// *n* bytes takes no more than 64 MiB + 8 *n* of memory, whatever the file says.
    pub max_file_size: u64,
    /// Which back end is to run it: verified modules for windows and processes, an ordinary shared object for [`Backend::None`].
    pub backend: Backend,
    /// How many of the 65,533 label identifiers that a process has one module may take: 16,384.
    pub max_labels: usize,
}

impl Default for LoadOptions {
    fn default() -> Self {
        LoadOptions {
            allow_integrity: false,
            allow_words: false,
            addressing: Addressing::Any,
            allow_tsc: false,
            max_file_size: 256 << 20,
            backend: Backend::Window,
            max_labels: 16 << 10,
        }
    }
}
