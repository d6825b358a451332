//! How much the inputs of a link may take: their authors are strangers, and a sparse file, a device or a table of names may say anything.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::error::Error;

/// Bytes of one file.
const FILE: u64 = 1 << 30;
/// Bytes of all of them, members of thin archives included: what does not fit into a window cannot be linked to a module.
const ALL: u64 = 4 << 30;
/// Bytes of symbols' names, besides four times what was read.
const NAMES: u64 = 64 << 20;

/// What is left.
#[derive(Debug)]
pub(crate) struct Room {
    bytes: u64,
    names: u64,
}

impl Default for Room {
    fn default() -> Room {
        Room {
            bytes: ALL,
            names: NAMES,
        }
    }
}

impl Room {
    /// A file's bytes.
    pub(crate) fn read(&mut self, path: &Path) -> Result<Vec<u8>, Error> {
        let data = read(path, FILE.min(self.bytes)).map_err(|e| self.refused(path, e))?;
        self.bytes -= data.len() as u64;
        self.names = self.names.saturating_add(4 * data.len() as u64);
        Ok(data)
    }

    fn refused(&self, path: &Path, e: io::Error) -> Error {
        if e.kind() != io::ErrorKind::FileTooLarge {
            return Error::read(path.display(), e);
        }
        let what = if self.bytes < FILE {
            format!(
                "the inputs of this link are larger than {} GiB together, and would fit into no window",
                ALL >> 30
            )
        } else {
            format!("larger than {} GiB; no compiler makes such a file", FILE >> 30)
        };
        Error::Input {
            path: path.display().to_string(),
            what,
        }
    }

    /// Makes a symbol's name one of our own. Many symbols may share one long name in the file.
    pub(crate) fn name(&mut self, name: &[u8]) -> Result<String, String> {
        self.names = self.names.checked_sub(name.len() as u64).ok_or_else(|| {
            format!(
                "its symbols' names take more than {} MiB and four times the file; no compiler makes such a file",
                NAMES >> 20
            )
        })?;
        Ok(String::from_utf8_lossy(name).into_owned())
    }
}

/// A regular file's bytes, if they are no more than `limit`, else [`io::ErrorKind::FileTooLarge`].
fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    // Opening a pipe that nobody writes to would wait.
    let flags = 0o4000; // O_NONBLOCK
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    if metadata.len() > limit {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(metadata.len() as usize)?;
    // What it grows by meanwhile is left alone.
    file.take(metadata.len()).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A file that is looked at for a message, or to find out what it is: nothing if it is too large or cannot be read.
pub(crate) fn glance(path: &Path) -> Option<Vec<u8>> {
    read(path, FILE).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    fn sparse(name: &str, len: u64) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("rf-room-{}-{name}", std::process::id()));
        File::create(&path).unwrap().set_len(len).unwrap();
        path
    }

    #[test]
    fn a_sparse_file_is_not_read() {
        let path = sparse("sparse", 1 << 40);
        let error = Room::default().read(&path).unwrap_err().to_string();
        assert!(
            error.ends_with("larger than 1 GiB; no compiler makes such a file"),
            "{error}"
        );
        assert!(glance(&path).is_none());
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn neither_are_devices() {
        let error = Room::default()
            .read(Path::new("/dev/zero"))
            .unwrap_err()
            .to_string();
        assert!(error.contains("not a regular file"), "{error}");
    }

    #[test]
    fn all_files_together_have_a_bound() {
        let path = sparse("all", 4096);
        let mut room = Room {
            bytes: 10_000,
            names: 0,
        };
        assert_eq!(room.read(&path).unwrap().len(), 4096);
        assert_eq!(room.read(&path).unwrap().len(), 4096);
        let error = room.read(&path).unwrap_err().to_string();
        assert!(error.contains("larger than 4 GiB together"), "{error}");
        std::fs::remove_file(path).unwrap();
        // Eight times what was read may be names, and no more.
        assert_eq!(room.name(&[b'x'; 20_000]).unwrap().len(), 20_000);
        assert!(room.name(&[b'x'; 20_000]).is_err());
    }
}
