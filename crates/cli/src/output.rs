//! How the command talks: one style of message, colour on terminals only.

use std::fmt::Display;
use std::io::{IsTerminal, Write};

/// Prints an error in the one style that the whole command has.
pub fn error(text: impl Display) {
    if std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        line(format_args!("\x1b[1mringfence: \x1b[31merror:\x1b[0m {text}"));
    } else {
        line(format_args!("ringfence: error: {text}"));
    }
}

/// A line on standard error. If nobody reads it, that changes nothing: the exit status still tells.
pub fn line(text: impl Display) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// A line on standard output. If nobody reads it any more, that changes nothing either.
pub fn out(text: impl Display) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// A colour for standard output.
#[derive(Clone, Copy)]
pub enum Colour {
    /// Accepted.
    Green,
    /// Rejected.
    Red,
    /// Headings.
    Bold,
    /// Of less interest.
    Dim,
}

/// `text` in a colour when standard output is a terminal.
pub fn paint(colour: Colour, text: impl Display) -> String {
    if !std::io::stdout().is_terminal() || std::env::var_os("NO_COLOR").is_some() {
        return text.to_string();
    }
    let code = match colour {
        Colour::Green => "32",
        Colour::Red => "31",
        Colour::Bold => "1",
        Colour::Dim => "2",
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}

/// A number of bytes as people read it.
pub fn bytes(n: u64) -> String {
    match n {
        0..1024 => format!("{n} B"),
        1024..1_048_576 => format!("{:.1} KiB", n as f64 / 1024.0),
        _ => format!("{:.1} MiB", n as f64 / 1_048_576.0),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn sizes() {
        assert_eq!(super::bytes(1023), "1023 B");
        assert_eq!(super::bytes(1536), "1.5 KiB");
        assert_eq!(super::bytes(3 << 20), "3.0 MiB");
    }
}
