//! The memory files behind regions.

use crate::os::sys;
use ringfence_core::error::HostError;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Maps a file shared.
///
/// # Safety
/// With `fixed`, whatever is mapped in the range goes away.
pub(super) unsafe fn map_shared(
    at: u64,
    len: u64,
    prot: i32,
    file: BorrowedFd<'_>,
    fixed: bool,
) -> Result<u64, HostError> {
    sys::exact(prot)?;
    let flags = libc::MAP_SHARED | libc::MAP_NORESERVE | if fixed { libc::MAP_FIXED } else { 0 };
    // SAFETY: the caller answers for what was mapped there.
    let p = unsafe { libc::mmap(at as *mut _, len as usize, prot, flags, file.as_raw_fd(), 0) };
    if p == libc::MAP_FAILED {
        Err(HostError::last("mapping a region"))
    } else {
        Ok(p as u64)
    }
}

/// A second descriptor of the same memory that can only read.
pub(super) fn read_only(file: &OwnedFd) -> Result<OwnedFd, HostError> {
    let path = format!("/proc/self/fd/{}\0", file.as_raw_fd());
    // SAFETY: a C string.
    let fd = unsafe { libc::open(path.as_ptr().cast(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if fd < 0 {
        return Err(HostError::last(
            "opening a region for reading (is /proc mounted?)",
        ));
    }
    // SAFETY: a fresh descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

pub(super) fn memory_file(len: u64) -> Result<OwnedFd, HostError> {
    sys::check_file_size(sys::page_up(len))?;
    const MFD_NOEXEC_SEAL: u32 = 8;
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: the name is a C string; kernels before 6.3 do not know MFD_NOEXEC_SEAL.
    let mut fd = unsafe { libc::memfd_create(c"ringfence region".as_ptr(), flags | MFD_NOEXEC_SEAL) };
    if fd < 0 {
        // SAFETY: as above.
        fd = unsafe { libc::memfd_create(c"ringfence region".as_ptr(), flags) };
    }
    if fd < 0 {
        return Err(HostError::last("making a memory file"));
    }
    // SAFETY: a fresh descriptor that nobody else owns.
    let file = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: the descriptor is open.
    if unsafe { libc::ftruncate(fd, sys::page_up(len) as i64) } != 0 {
        return Err(HostError::last("sizing a memory file"));
    }
    Ok(file)
}

/// After this nobody can make the file shorter under those who map it.
pub(super) fn seal(file: &OwnedFd) -> std::io::Result<()> {
    const WANTED: i32 = libc::F_SEAL_SHRINK;
    // SAFETY: the descriptor is open.
    let now = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
    if now >= 0 && now & WANTED == WANTED {
        return Ok(());
    }
    // SAFETY: the descriptor is open.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, WANTED) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok(())
}
