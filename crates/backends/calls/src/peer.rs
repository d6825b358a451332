//! Another process's memory, or one's own: what is not there is an error, and rights are those that the process has.

use ringfence_core::MemoryError;

/// Which process; `None` is this one.
pub type Peer = Option<libc::pid_t>;

enum Way {
    Read,
    Write,
}

/// How many bytes were copied before something was not there, or the errno if none were.
fn copy(peer: Peer, way: Way, mine: *mut u8, theirs: u64, len: usize) -> Result<usize, i32> {
    // SAFETY: no arguments.
    let process = peer.unwrap_or_else(|| unsafe { libc::getpid() });
    let mine = libc::iovec {
        iov_base: mine.cast(),
        iov_len: len,
    };
    let theirs = libc::iovec {
        iov_base: theirs as *mut libc::c_void,
        iov_len: len,
    };
    // SAFETY: `mine` is a buffer of the caller's that may be written if bytes are read; the kernel checks the other side.
    let n = unsafe {
        match way {
            Way::Read => libc::process_vm_readv(process, &raw const mine, 1, &raw const theirs, 1, 0),
            Way::Write => libc::process_vm_writev(process, &raw const mine, 1, &raw const theirs, 1, 0),
        }
    };
    usize::try_from(n).map_err(|_| {
        // SAFETY: errno is this thread's own.
        unsafe { *libc::__errno_location() }
    })
}

/// Copies out of the process.
///
/// # Errors
/// [`MemoryError::Unmapped`] if not all of it can be read.
pub fn read(peer: Peer, address: u64, to: &mut [u8]) -> Result<(), MemoryError> {
    all(peer, Way::Read, to.as_mut_ptr(), address, to.len())
}

/// Copies into the process.
///
/// # Errors
/// [`MemoryError::Unmapped`] if not all of it can be written.
pub fn write(peer: Peer, address: u64, from: &[u8]) -> Result<(), MemoryError> {
    all(peer, Way::Write, from.as_ptr().cast_mut(), address, from.len())
}

fn all(peer: Peer, way: Way, mine: *mut u8, address: u64, len: usize) -> Result<(), MemoryError> {
    match copy(peer, way, mine, address, len) {
        _ if len == 0 => Ok(()),
        Ok(n) if n == len => Ok(()),
        _ => Err(MemoryError::Unmapped {
            address,
            len: len as u64,
        }),
    }
}

/// Whether this process may read the other's memory at all.
///
/// # Errors
/// The system's error, `EPERM` if it may not.
pub fn probe(peer: libc::pid_t, address: u64) -> std::io::Result<()> {
    let mut byte = 0u8;
    copy(Some(peer), Way::Read, &raw mut byte, address, 1)
        .map(drop)
        .map_err(std::io::Error::from_raw_os_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_an_error() {
        let mut word = 7u32;
        let at = &raw mut word as u64;
        write(None, at, &9u32.to_ne_bytes()).unwrap();
        let mut back = [0; 4];
        read(None, at, &mut back).unwrap();
        assert_eq!(u32::from_ne_bytes(back), 9);
        assert!(matches!(
            read(None, 0, &mut back),
            Err(MemoryError::Unmapped { address: 0, len: 4 })
        ));
        let text = what_is_not_there_is_an_error as *const () as u64;
        assert!(read(None, text, &mut back).is_ok());
        assert!(write(None, text, &back).is_err(), "rights hold");
    }
}
