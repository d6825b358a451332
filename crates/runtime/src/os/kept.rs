//! Descriptors that are kept for later.
//!
//! A host may close descriptors that are not its own: a daemon closes all but three when it starts. The number is then free, and the next
//! file that the host opens gets it. So whoever uses a descriptor that it made some time ago looks first whether it is the same file.

use ringfence_core::error::HostError;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// A file, kept by its descriptor, and told from others that got its number.
pub struct KeptFile {
    file: ManuallyDrop<OwnedFd>,
    /// Which file it is: device and number there.
    identity: (u64, u64),
}

/// Which file a descriptor is; `None` if it is closed.
fn identity(file: BorrowedFd<'_>) -> Option<(u64, u64)> {
    // By its number: the library's `fstat` is another system call, which a filter may refuse that has this one.
    // SAFETY: asks only, into a structure that may be all zeroes before and is the kernel's on this machine.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        let asked = libc::syscall(libc::SYS_fstat, file.as_raw_fd(), &raw mut stat);
        (asked == 0).then_some((stat.st_dev, stat.st_ino))
    }
}

impl KeptFile {
    /// Keeps a file that was just opened.
    ///
    /// # Errors
    /// [`HostError`]: the system does not tell which it is.
    pub fn new(file: OwnedFd) -> Result<KeptFile, HostError> {
        let identity =
            identity(file.as_fd()).ok_or_else(|| HostError::last("asking which file a descriptor is"))?;
        Ok(KeptFile {
            file: ManuallyDrop::new(file),
            identity,
        })
    }

    /// The descriptor, for use at once.
    ///
    /// # Errors
    /// [`HostError::Descriptor`]: somebody has closed it.
    pub fn get(&self) -> Result<BorrowedFd<'_>, HostError> {
        match identity(self.file.as_fd()) == Some(self.identity) {
            true => Ok(self.file.as_fd()),
            false => Err(HostError::Descriptor),
        }
    }
}

impl Drop for KeptFile {
    fn drop(&mut self) {
        if self.get().is_ok() {
            // SAFETY: dropped once. What somebody else has closed, and may have opened again, is not ours to close.
            unsafe { ManuallyDrop::drop(&mut self.file) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::IntoRawFd;

    #[test]
    fn another_file_of_the_same_number_is_not_taken_for_it() {
        let open = || File::open(std::env::current_exe().expect("own path")).expect("there");
        let memory = crate::os::sys::memory_file(c"kept", 4096).expect("memory");
        let number = memory.as_raw_fd();
        let kept = KeptFile::new(memory).expect("told");
        assert_eq!(kept.get().expect("ours").as_raw_fd(), number);
        // SAFETY: what a host does that knows no better: closes the number, and has another file there.
        let other = unsafe {
            let other = open().into_raw_fd();
            assert_eq!(libc::dup3(other, number, libc::O_CLOEXEC), number);
            other
        };
        assert!(matches!(kept.get(), Err(HostError::Descriptor)));
        drop(kept);
        // SAFETY: asks for the descriptor's flags, then closes what was opened above.
        unsafe {
            assert!(libc::fcntl(number, libc::F_GETFD) >= 0, "it is still the host's");
            libc::close(number);
            libc::close(other);
        }
    }
}
