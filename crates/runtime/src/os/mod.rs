//! What the operating system and the processor give: memory, files, pages, careful copies. Knows nothing of modules and domains.

pub mod backed;
pub(crate) mod clock;
pub(crate) mod file;
pub mod guarded;
pub(crate) mod host;
pub(crate) mod lock;
pub(crate) mod looks;
pub(crate) mod mark;
pub(crate) mod pages;
#[cfg(test)]
pub(crate) mod refusals;
pub mod reserve;
pub(crate) mod sys;
