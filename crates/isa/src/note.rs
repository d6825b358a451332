//! The note that makes an ELF shared object a module.
//!
//! Section `.note.ringfence`, in a `PT_NOTE` segment: name `Ringfence`, type [`TYPE`],
//! descriptor four little-endian u32: ABI version, [flags](flag), processor features that the code was compiled for
//! ([`crate::window::feature`]), reserved (0). The note is a claim, not a proof: everything
//! that matters is established by the verifier.

use crate::Isolation;

/// The note's name, without the terminating NUL.
pub const NAME: &str = "Ringfence";
/// The note's type.
pub const TYPE: u32 = 1;
/// The section that holds the note.
pub const SECTION: &str = ".note.ringfence";
/// Size of the descriptor in bytes.
pub const DESC_LEN: usize = 16;

/// Bits of the note's second word.
pub mod flag {
    /// Built with `--isolation=integrity`: loads are not confined.
    pub const INTEGRITY: u32 = 1 << 0;
    /// Built with `--check`: accesses trap where they leave the window.
    pub const CHECK: u32 = 1 << 1;
    /// Built with `--isolation=words`: reaches objects of the host's by their rights.
    pub const WORDS: u32 = 1 << 2;
}

/// The isolation that flags claim; `None` if they claim two.
#[must_use]
pub const fn isolation(flags: u32) -> Option<Isolation> {
    match flags & (flag::INTEGRITY | flag::WORDS) {
        0 => Some(Isolation::Full),
        flag::INTEGRITY => Some(Isolation::Integrity),
        flag::WORDS => Some(Isolation::Words),
        _ => None,
    }
}

/// A symbol that the module imports by function is undefined in its dynamic symbol table under
/// this prefix and its name: `__rf_import.read_row` is the import `read_row`.
pub const IMPORT_PREFIX: &str = "__rf_import.";
