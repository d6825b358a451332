//! Reading files whose size and kind their author decides.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// A regular file's bytes, if they are no more than `limit`; otherwise [`io::ErrorKind::FileTooLarge`], and nothing is read. Devices
/// and pipes, which could go on for ever, and directories are [`io::ErrorKind::InvalidInput`].
pub(crate) fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    // Opening a pipe that nobody writes to would wait, and a terminal could become the process's own.
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let mut file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let len = metadata.len();
    if len > limit {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len as usize)?;
    // It may grow meanwhile; what comes then is left alone. It may shrink too, or be one of those of the kernel's whose size is 0.
    bytes.resize(len as usize, 0);
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}
