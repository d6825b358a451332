//! Notes: what a header does not say, one line for each parameter, result, field or function (docs/bind.md).

use std::cell::Cell;
use std::collections::BTreeMap;

use crate::Error;

/// One word of a note, with what stands in its brackets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub name: String,
    pub inside: String,
}

#[derive(Debug)]
struct Line {
    number: usize,
    words: Vec<Word>,
    used: Cell<bool>,
}

/// A file of them.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    path: String,
    exact: BTreeMap<String, Line>,
    /// Those with a `*`.
    patterns: Vec<(String, Line)>,
}

impl Notes {
    /// Reads a file's text.
    pub(crate) fn read(path: &str, text: &str) -> Result<Notes, Error> {
        let mut notes = Notes {
            path: path.to_owned(),
            ..Notes::default()
        };
        for (i, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = |why: &str| Error::Note {
                path: path.to_owned(),
                line: i + 1,
                why: why.to_owned(),
            };
            let (target, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            let words = words(rest).ok_or_else(|| wrong("brackets are not closed"))?;
            if words.is_empty() {
                return Err(wrong(
                    "a name, and then what holds for it, such as: sqlite3_step renews(a0)",
                ));
            }
            let line = Line {
                number: i + 1,
                words,
                used: Cell::new(false),
            };
            if target.contains('*') {
                notes.patterns.push((target.to_owned(), line));
            } else if notes.exact.insert(target.to_owned(), line).is_some() {
                return Err(wrong(&format!("{target} stands here twice")));
            }
        }
        Ok(notes)
    }

    /// What is noted of `target`, such as `function.parameter`.
    pub(crate) fn of(&self, target: &str) -> &[Word] {
        let line = self.exact.get(target).or_else(|| {
            let found = self.patterns.iter().find(|(pattern, _)| matches(pattern, target));
            found.map(|(_, line)| line)
        });
        line.map_or(&[], |line| {
            line.used.set(true);
            &line.words
        })
    }

    /// A note that nobody asked for is a mistake.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let all = self.exact.iter().chain(self.patterns.iter().map(|(p, l)| (p, l)));
        let unused = all
            .filter(|(_, line)| !line.used.get())
            .min_by_key(|(_, line)| line.number);
        match unused {
            None => Ok(()),
            Some((target, line)) => Err(Error::Note {
                path: self.path.clone(),
                line: line.number,
                why: format!("the headers have no {target}; parameters without a name are a0, a1, …"),
            }),
        }
    }

    /// An error about the note of `target`.
    pub(crate) fn wrong(&self, target: &str, why: &str) -> Error {
        let line = self.exact.get(target);
        Error::Note {
            path: self.path.clone(),
            line: line.map_or(0, |l| l.number),
            why: format!("{target}: {why}"),
        }
    }
}

fn words(text: &str) -> Option<Vec<Word>> {
    let mut found = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let end = rest
            .find(|c: char| c.is_whitespace() || c == '(')
            .unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let mut inside = String::new();
        rest = after;
        if after.starts_with('(') {
            let mut depth = 0usize;
            let close = after.char_indices().find(|(_, c)| {
                depth = match c {
                    '(' => depth + 1,
                    ')' => depth - 1,
                    _ => depth,
                };
                depth == 0
            });
            let (close, _) = close?;
            inside = after[1..close].trim().to_owned();
            rest = &after[close + 1..];
        }
        if name.is_empty() {
            return None;
        }
        found.push(Word {
            name: name.to_owned(),
            inside,
        });
        rest = rest.trim_start();
    }
    Some(found)
}

/// Whether `text` is `pattern`, where each `*` stands for anything but a dot.
fn matches(pattern: &str, text: &str) -> bool {
    let (mut parts, mut names) = (pattern.split('.'), text.split('.'));
    loop {
        match (parts.next(), names.next()) {
            (None, None) => return true,
            (Some(part), Some(name)) if matches_part(part, name) => {}
            _ => return false,
        }
    }
}

/// The same, without dots: the first place for each piece between stars leaves most for the others.
fn matches_part(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    let Some(mut left) = text.strip_prefix(first).and_then(|t| t.strip_suffix(last)) else {
        return false;
    };
    for piece in middle.split('*') {
        let Some(at) = left.find(piece) else {
            return false;
        };
        left = &left[at + piece.len()..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_by_name_and_pattern() {
        let notes = Notes::read("n", "# x\n\nf.a in(n * sizeof (int)) for(b)\ng_*.return text\n").unwrap();
        let words = notes.of("f.a");
        assert_eq!(
            (words[0].name.as_str(), words[0].inside.as_str()),
            ("in", "n * sizeof (int)")
        );
        assert_eq!(words[1].name, "for");
        assert_eq!(notes.of("g_x.return").len(), 1);
        for (pattern, text, is) in [
            ("z_*_decompress*.in", "z_gzip_decompress_ex.in", true),
            ("z_*_decompress*.in", "z_gzip_decompress.in", true),
            ("z_*_decompress*.in", "z_decompress.in", false),
            ("*_*.a", "x_y.a", true),
            ("a*a.b", "a.b", false),
            ("*ab*ab*.c", "ab.c", false),
            ("f.*", "f.a.b", false),
        ] {
            assert_eq!(matches(pattern, text), is, "{pattern} {text}");
        }
        assert!(notes.of("g_x.y.return").is_empty() && notes.of("f.b").is_empty());
        assert!(notes.check().is_ok());
    }

    #[test]
    fn mistakes_name_their_line() {
        let error = |text: &str| {
            Notes::read("n", text)
                .and_then(|n| n.check())
                .unwrap_err()
                .to_string()
        };
        assert!(error("a text\nb text(\n").starts_with("n:2: "));
        assert!(error("a text\na text\n").starts_with("n:2: "));
        assert!(error("\nalone\n").starts_with("n:2: "));
        assert!(error("nobody.x text\n").starts_with("n:1: the headers have no nobody.x"));
    }
}
