//! Module files that a coverage-guided fuzzer (`tests/cover`) found worth keeping, as text: a line for each, in hexadecimal, `*` and
//! a number for that many zero bytes in a row.

use std::fs;
use std::io::{Error, ErrorKind, Result};
use std::path::Path;

/// Where they are kept.
#[must_use]
pub fn path() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../cover/corpus.txt")
}

/// One file as a line.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    let mut line = String::new();
    let mut at = 0;
    while at < bytes.len() {
        let zeros = bytes[at..].iter().take_while(|b| **b == 0).count();
        if zeros > 3 {
            line += &format!("*{zeros} ");
            at += zeros;
        } else {
            line += &format!("{:02x}", bytes[at]);
            at += 1;
        }
    }
    line
}

/// The file that a line stands for; `None` if it is none.
#[must_use]
pub fn decode(line: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut rest = line.trim_end();
    while !rest.is_empty() {
        if let Some(number) = rest.strip_prefix('*') {
            let (zeros, after) = number.split_once(' ').unwrap_or((number, ""));
            bytes.resize(
                bytes.len() + zeros.parse::<usize>().ok().filter(|n| *n < 1 << 26)?,
                0,
            );
            rest = after;
        } else {
            bytes.push(u8::from_str_radix(rest.get(..2)?, 16).ok()?);
            rest = &rest[2..];
        }
    }
    Some(bytes)
}

/// All that are kept.
///
/// # Errors
///
/// No such file, or a line that says nothing.
pub fn kept() -> Result<Vec<Vec<u8>>> {
    let text = fs::read_to_string(path())?;
    let bad = |n: usize| Error::new(ErrorKind::InvalidData, format!("corpus.txt, line {}", n + 1));
    let lines = text.lines().enumerate();
    lines
        .map(|(n, line)| decode(line).ok_or_else(|| bad(n)))
        .collect()
}

/// Writes what is kept, and a module to start from, to a directory.
///
/// # Errors
///
/// What the file system says.
pub fn unpack(directory: &Path) -> Result<usize> {
    fs::create_dir_all(directory)?;
    let mut all = kept().unwrap_or_default();
    all.push(crate::gates::seed());
    all.push(crate::caller::module().build());
    for (n, bytes) in all.iter().enumerate() {
        fs::write(directory.join(format!("kept-{n}")), bytes)?;
    }
    Ok(all.len())
}

/// Keeps the files of a directory, the small ones first, as many as fit into `most` bytes of text.
///
/// # Errors
///
/// What the file system says.
pub fn pack(directory: &Path, most: usize) -> Result<usize> {
    let mut lines = Vec::new();
    for entry in fs::read_dir(directory)? {
        lines.push(encode(&fs::read(entry?.path())?));
    }
    lines.sort_by(|a, b| a.len().cmp(&b.len()).then(a.cmp(b)));
    let mut text = String::new();
    let mut kept = 0;
    for line in lines {
        if text.len() + line.len() < most {
            text += &line;
            text.push('\n');
            kept += 1;
        }
    }
    fs::write(path(), text)?;
    Ok(kept)
}
