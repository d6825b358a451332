//! A directory that goes when its owner goes.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, io, process};

use crate::error::Error;

/// A fresh directory for one run's intermediate files, so that parallel runs never meet.
#[derive(Debug)]
pub(crate) struct TempDir(PathBuf);

impl TempDir {
    pub(crate) fn new() -> Result<TempDir, Error> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let root = env::temp_dir();
        loop {
            let n = COUNT.fetch_add(1, Ordering::Relaxed);
            let salt = std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .map_or(0, |d| d.subsec_nanos());
            let path = root.join(format!("ringfence-{}-{n}-{salt:08x}", process::id()));
            // Creation fails when the name exists, so nobody can have put something there before.
            let mut builder = fs::DirBuilder::new();
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            match builder.create(&path) {
                Ok(()) => return Ok(TempDir(path)),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(Error::read(path.display(), e)),
            }
        }
    }

    pub(crate) fn file(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        // Nothing to be done about a directory that cannot be removed.
        let _ = fs::remove_dir_all(&self.0);
    }
}
