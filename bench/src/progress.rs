//! What is being done, for those who watch a terminal.

use std::fmt;
use std::io::{IsTerminal, Write};

/// One line on a terminal that the next one overwrites; nothing elsewhere.
pub struct Progress(bool);

impl Progress {
    /// Shows itself if standard error is a terminal.
    pub fn new() -> Self {
        Progress(std::io::stderr().is_terminal())
    }

    /// Replaces the line.
    pub fn say(&self, what: fmt::Arguments<'_>) {
        if self.0 {
            let _ = write!(std::io::stderr(), "\r\x1b[K{what}");
        }
    }

    /// Removes the line.
    pub fn clear(&self) {
        self.say(format_args!(""));
    }
}
