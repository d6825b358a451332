//! Reading files whose size and kind their author decides.

use crate::os::sys;
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// A regular file's bytes, if they are no more than `limit`; otherwise [`io::ErrorKind::FileTooLarge`], and nothing is read. Devices
/// and pipes, which could go on for ever, and directories are [`io::ErrorKind::InvalidInput`].
pub(crate) fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    // Opening a pipe that nobody writes to would wait, and a terminal could become the process's own.
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
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
    sys::populate(bytes.spare_capacity_mut());
    // It may grow meanwhile; what comes then is left alone. It may shrink too, or be one of those of the kernel's whose size is 0.
    file.take(len).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Lets `f` see the lines of one of the kernel's files, as far as they fit into 64 bytes. Allocates nothing. `path` ends with a NUL; what
/// cannot be read has no lines.
pub(crate) fn lines(path: &str, mut f: impl FnMut(&[u8])) {
    assert!(path.ends_with('\0'));
    // SAFETY: a string with its end.
    let file = unsafe { libc::open(path.as_ptr().cast(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if file < 0 {
        return;
    }
    let (mut line, mut len) = ([0; 64], 0);
    let mut chunk = [0u8; 1024];
    loop {
        // SAFETY: reads into memory of our own.
        let read = unsafe { libc::read(file, chunk.as_mut_ptr().cast(), chunk.len()) };
        let Some(read) = usize::try_from(read).ok().filter(|&n| n > 0) else {
            break;
        };
        for &byte in &chunk[..read] {
            if byte == b'\n' {
                f(&line[..len]);
                len = 0;
            } else if len < line.len() {
                line[len] = byte;
                len += 1;
            }
        }
    }
    // SAFETY: opened above.
    unsafe { libc::close(file) };
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn lines_are_read_without_memory() {
        let mut found = 0;
        lines("/proc/self/status\0", |line| {
            found += u32::from(line.starts_with(b"SigPnd:") || line.starts_with(b"SigBlk:"));
        });
        assert_eq!(found, 2);
        lines("/nowhere\0", |_| panic!("there is nothing"));
    }
}
