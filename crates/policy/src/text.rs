//! Names in messages: whoever chose them does not steer the terminal that shows them.

use std::fmt::{self, Display, Write};
use std::path::Path;

/// A path, with what is not printable as an escape sequence.
pub(crate) struct Name<'a>(pub(crate) &'a Path);

impl Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        plain(f, &self.0.to_string_lossy())
    }
}

fn plain(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    for c in text.chars() {
        match c {
            '"' | '\'' | '\\' => f.write_char(c)?,
            _ => write!(f, "{}", c.escape_debug())?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_terminals_is_escaped() {
        let shown = |text: &str| Name(Path::new(text)).to_string();
        assert_eq!(shown("/a b/\"c\"/it's\\ünïcode"), "/a b/\"c\"/it's\\ünïcode");
        assert_eq!(
            shown("a\n\x1b[2Jb\u{202e}c\x7f"),
            "a\\n\\u{1b}[2Jb\\u{202e}c\\u{7f}"
        );
    }
}
