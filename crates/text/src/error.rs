//! What is wrong with a text, and where.

use std::fmt;

/// One thing that is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Line, from 1.
    pub line: u32,
    /// Column in bytes, from 1.
    pub column: u32,
    /// The line itself, or up to 120 bytes of it around the column. Control characters are shown as spaces.
    pub source: String,
    /// Where in `source` the column is, from 0.
    pub caret: u32,
    /// How many bytes are meant, from 1.
    pub width: u32,
    /// What is wrong.
    pub message: String,
    /// What to do about it, if that is known.
    pub remedy: Option<&'static str>,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}:{}: error: {}", self.line, self.column, self.message)?;
        writeln!(f, "    {}", self.source)?;
        write!(f, "    {:1$}^", "", self.caret as usize)?;
        for _ in 1..self.width {
            f.write_str("~")?;
        }
        match self.remedy {
            Some(remedy) => write!(f, "\n    {remedy}"),
            None => Ok(()),
        }
    }
}

/// All that is wrong with a text: at least one error and at most [`Errors::LIMIT`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Errors(pub Vec<Error>);

impl Errors {
    /// How many errors are told of one text.
    pub const LIMIT: usize = 20;
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.0.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            error.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Errors {}

/// An error was noted; whoever gets this goes on at the next place where that makes sense.
#[derive(Clone, Copy, Debug)]
pub struct Stop;

/// Errors as they are found: offsets and messages.
#[derive(Default)]
pub struct Notes {
    list: Vec<Note>,
    /// Nothing more is to be said: a bound was met, or the list is full.
    pub full: bool,
}

struct Note {
    at: u32,
    width: u32,
    message: String,
    remedy: Option<&'static str>,
}

impl Notes {
    /// Notes an error, unless there is one for the place already.
    pub fn note(&mut self, at: u32, width: u32, message: String, remedy: Option<&'static str>) -> Stop {
        let known = self.list.iter().any(|n| n.at == at);
        if !known && !self.full {
            self.list.push(Note {
                at,
                width,
                message,
                remedy,
            });
            self.full = self.list.len() >= Errors::LIMIT;
        }
        Stop
    }

    /// Notes an error after which nothing else is worth telling.
    pub fn last(&mut self, at: u32, message: String, remedy: Option<&'static str>) -> Stop {
        self.note(at, 1, message, remedy);
        self.full = true;
        Stop
    }

    pub fn none(&self) -> bool {
        self.list.is_empty()
    }

    /// The errors with their lines, in the order of the text.
    pub fn finish(mut self, text: &[u8]) -> Errors {
        self.list.sort_by_key(|n| n.at);
        Errors(self.list.into_iter().map(|n| show(n, text)).collect())
    }
}

/// Most bytes of a line that are shown.
const SHOWN: usize = 120;

fn show(note: Note, text: &[u8]) -> Error {
    let at = (note.at as usize).min(text.len());
    let start = text[..at].iter().rposition(|&c| c == b'\n').map_or(0, |i| i + 1);
    let end = text[at..]
        .iter()
        .position(|&c| c == b'\n')
        .map_or(text.len(), |i| at + i);
    let from = if at - start > SHOWN / 2 {
        at - SHOWN / 2
    } else {
        start
    };
    let to = end.min(from + SHOWN);
    let source: String = text[from..to]
        .iter()
        .map(|&c| if (b' '..127).contains(&c) { c as char } else { ' ' })
        .collect();
    let room = to.saturating_sub(at).max(1) as u32;
    Error {
        line: text[..start].iter().filter(|&&c| c == b'\n').count() as u32 + 1,
        column: (at - start) as u32 + 1,
        source,
        caret: (at - from) as u32,
        width: note.width.clamp(1, room),
        message: note.message,
        remedy: note.remedy,
    }
}
