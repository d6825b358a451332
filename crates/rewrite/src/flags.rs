//! The flags that gcc must be given for its output to be rewritable.

/// At which of the driver's steps flags are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlagKind {
    /// Every compile of C or C++ (`-S`), behind the user's own flags.
    Compile,
    /// In addition, when the user asked for debug information (`-g…`).
    CompileDebug,
    /// Every link, in the form that `gcc` takes.
    Link,
    /// In addition, at a link with link-time optimisation, which compiles once more.
    LinkLto,
}

const COMPILE: &[&str] = &[
    // As for an executable: nothing in a module can be replaced by another's definition, so its own data and functions are
    // reached directly. What only the loader knows is mended by `late.rs`.
    "-fPIE",
    "-ffixed-r11",
    "-ffixed-r14",
    "-ffixed-r15",
    "-fasynchronous-unwind-tables",
    "-fcf-protection=branch",
    "-mcet-switch",
    "-dp",
    "-fno-reorder-blocks-and-partition",
    "-fno-stack-protector",
    "-fno-stack-clash-protection",
    "-msse3",
    "-fno-fp-int-builtin-inexact",
    // Unique symbols are one in a process by the dynamic linker, which modules have none of; ld binds them to no definition.
    "-fno-gnu-unique",
    "-ftls-model=initial-exec",
    "-mno-tls-direct-seg-refs",
    "-Wtrampolines",
    "-Werror=trampolines",
    // At 64 if that takes less than 32 bytes, else at 32 if that takes less than 16: docs/performance-causes.md has the figures.
    "-falign-loops=64:32:32:16",
    // Gathers are refused by the verifier; gcc is told not to make any.
    "-mtune-ctrl=^use_gather_2parts,^use_gather_4parts,^use_gather",
];

const DEBUG: &[&str] = &["-gdwarf-2", "-gno-variable-location-views", "-dA"];

const LINK: &[&str] = &["-Wl,--no-relax", "-Wl,-Bsymbolic", "-Wl,-z,noexecstack"];

const LTO: &[&str] = &["-ffixed-r11", "-ffixed-r14", "-ffixed-r15"];

/// The flags that the driver must add to gcc at the given step.
#[must_use]
pub fn compile_flags(kind: FlagKind) -> &'static [&'static str] {
    match kind {
        FlagKind::Compile => COMPILE,
        FlagKind::CompileDebug => DEBUG,
        FlagKind::Link => LINK,
        FlagKind::LinkLto => LTO,
    }
}
