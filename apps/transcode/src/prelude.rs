//! What stands in front of each text of a client's.

/// Declarations: the picture, and where memory comes from.
const TEXT: &str = include_str!("../functions/picture.h");

/// A client's text as it is compiled.
pub(crate) fn with(text: &str) -> String {
    [TEXT, text].concat()
}

/// How many lines stand before a client's own.
pub(crate) fn lines() -> u32 {
    TEXT.lines().count() as u32
}
