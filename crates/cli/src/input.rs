//! Reading the files that the command looks at.

use std::io::{self, Read};
use std::path::Path;

/// Largest file unless `--max-file` says otherwise: what hosts load by default.
pub const MOST: u64 = 256 << 20;

/// A file's bytes, if they are no more than `limit`: devices go on for ever.
pub fn read(path: &Path, limit: Option<u64>) -> Result<Vec<u8>, String> {
    let limit = limit.unwrap_or(MOST);
    let over = || format!("larger than {limit} bytes; --max-file raises the limit");
    let read = || -> io::Result<Option<Vec<u8>>> {
        let file = std::fs::File::open(path)?;
        if file.metadata()?.len() > limit {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(file.metadata()?.len() as usize)?;
        file.take(limit + 1).read_to_end(&mut bytes)?;
        Ok((bytes.len() as u64 <= limit).then_some(bytes))
    };
    read().map_err(|e| e.to_string())?.ok_or_else(over)
}
