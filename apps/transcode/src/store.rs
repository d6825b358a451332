//! The directory with pictures.

use std::fs::File;
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::PathBuf;
use std::time::SystemTime;

use hyper::StatusCode;

use crate::failure::Failure;
use crate::request::Format;

/// Pictures by the names of their files. What is no plain name of a plain file is not there.
pub(crate) struct Store {
    directory: Option<PathBuf>,
}

/// A picture's file.
pub(crate) struct Stored {
    pub file: File,
    pub length: u64,
    pub modified: SystemTime,
    /// Another one if the file is another one.
    pub identity: String,
}

/// No links, and no waiting for what is no file.
const FLAGS: i32 = libc::O_NOFOLLOW | libc::O_NONBLOCK;

impl Store {
    /// The pictures of a directory, which has to be there; of none, if none is given.
    pub fn new(directory: Option<PathBuf>) -> io::Result<Self> {
        if let Some(directory) = &directory
            && !std::fs::metadata(directory)?.is_dir()
        {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Store { directory })
    }

    /// Opens a picture.
    pub fn open(&self, name: &str) -> Result<Stored, Failure> {
        let missing = || Failure::new(StatusCode::NOT_FOUND, format!("there is no picture {name}"));
        let directory = self.directory.as_ref().ok_or_else(missing)?;
        if name.starts_with('.') || name.contains(['/', '\0']) || Format::of_extension(name).is_none() {
            return Err(missing());
        }
        let file = File::options()
            .read(true)
            .custom_flags(FLAGS)
            .open(directory.join(name))
            .map_err(|_| missing())?;
        let facts = file.metadata().map_err(|e| Failure::internal(&e))?;
        if !facts.is_file() {
            return Err(missing());
        }
        Ok(Stored {
            length: facts.len(),
            modified: facts.modified().unwrap_or(SystemTime::UNIX_EPOCH),
            identity: format!(
                "{name} {} {} {}.{:09}",
                facts.ino(),
                facts.len(),
                facts.mtime(),
                facts.mtime_nsec()
            ),
            file,
        })
    }

    /// The names of all pictures, in the order of the alphabet.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let Some(directory) = &self.directory else {
            return Ok(Vec::new());
        };
        let mut names = Vec::new();
        for entry in std::fs::read_dir(directory)? {
            let entry = entry?;
            if entry.file_type().is_ok_and(|kind| kind.is_file())
                && let Ok(name) = entry.file_name().into_string()
                && !name.starts_with('.')
                && Format::of_extension(&name).is_some()
            {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }
}
