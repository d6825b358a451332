//! The few system calls the runtime lives on, with their errors as values.

use crate::os::backed;
use ringfence_core::KeptFile;
use ringfence_core::error::HostError;
use std::cell::Cell;
use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;

pub(crate) const PAGE: usize = ringfence_isa::PAGE as usize;

pub(crate) fn page_up(n: u64) -> u64 {
    (n + (PAGE as u64 - 1)) & !(PAGE as u64 - 1)
}

/// Whether a system call of this file is to fail without being made: tests ask for it.
#[cfg(not(test))]
const fn refused() -> bool {
    false
}
#[cfg(test)]
use crate::os::refusals::refused;

/// Whether memory gets the rights that are asked for, and no others. A thread with `READ_IMPLIES_EXEC` would get what it may read as
/// executable, from `mmap` and from `mprotect`: memory that a domain writes must never be that. The flag belongs to the thread, so it
/// is looked at here each time, but where the thread has [`Looked`].
pub(crate) fn exact(prot: i32) -> Result<(), HostError> {
    if prot & libc::PROT_READ == 0 || prot & libc::PROT_EXEC != 0 {
        return Ok(());
    }
    plain_personality()
}

/// Whether the calling thread has no `READ_IMPLIES_EXEC`.
pub(crate) fn plain_personality() -> Result<(), HostError> {
    if LOOKED.get() != 0 {
        return Ok(());
    }
    // SAFETY: with this argument it only asks.
    let personality = unsafe { libc::personality(0xFFFF_FFFF) };
    match personality & libc::READ_IMPLIES_EXEC {
        0 => Ok(()),
        _ => Err(HostError::ReadImpliesExec),
    }
}

thread_local! {
    /// How many [`Looked`] the thread has.
    static LOOKED: Cell<u32> = const { Cell::new(0) };
}

/// The thread's personality was looked at when this was made, and none of the host's code runs on the thread while it lives: so
/// mappings that one operation makes cost one look.
pub(crate) struct Looked(PhantomData<*const ()>);

impl Looked {
    /// Looks.
    pub(crate) fn now() -> Result<Looked, HostError> {
        plain_personality()?;
        LOOKED.set(LOOKED.get() + 1);
        Ok(Looked(PhantomData))
    }
}

impl Drop for Looked {
    fn drop(&mut self) {
        LOOKED.set(LOOKED.get() - 1);
    }
}

/// Maps anonymous private memory, at `at` exactly if `fixed`.
///
/// # Safety
/// With `fixed`, whatever is mapped in the range goes away.
pub(crate) unsafe fn map_anonymous(at: u64, len: u64, prot: i32, fixed: bool) -> Result<u64, HostError> {
    exact(prot)?;
    if refused() {
        return Err(HostError::last("mapping memory"));
    }
    // SAFETY: the caller answers for what was mapped there.
    if let Some(mapped) = unsafe { backed::map_anonymous(at, len, prot) } {
        return mapped.map(|()| at);
    }
    let flags = libc::MAP_PRIVATE
        | libc::MAP_ANONYMOUS
        | libc::MAP_NORESERVE
        | if fixed { libc::MAP_FIXED } else { 0 };
    // SAFETY: the caller answers for what was mapped there.
    let p = unsafe { libc::mmap(at as *mut _, len as usize, prot, flags, -1, 0) };
    if p == libc::MAP_FAILED {
        Err(HostError::last("mapping memory"))
    } else {
        Ok(p as u64)
    }
}

/// Maps a piece of a file privately over `at`.
///
/// # Safety
/// Whatever is mapped in the range goes away.
pub(crate) unsafe fn map_file(
    at: u64,
    len: u64,
    prot: i32,
    file: BorrowedFd<'_>,
    offset: u64,
) -> Result<(), HostError> {
    exact(prot)?;
    if refused() {
        return Err(HostError::last("mapping a module"));
    }
    // SAFETY: the caller answers for what was mapped there.
    if let Some(true) = unsafe { backed::map_file(at, len, prot, file, offset) }.transpose()? {
        return Ok(());
    }
    // SAFETY: the caller answers for what was mapped there.
    let p = unsafe {
        libc::mmap(
            at as *mut _,
            len as usize,
            prot,
            libc::MAP_PRIVATE | libc::MAP_FIXED | libc::MAP_NORESERVE,
            file.as_raw_fd(),
            offset as i64,
        )
    };
    if p == libc::MAP_FAILED {
        Err(HostError::last("mapping a module"))
    } else {
        Ok(())
    }
}

/// Maps a piece of a file over `at`, shared.
///
/// # Safety
/// Whatever is mapped in the range goes away.
pub(crate) unsafe fn map_shared(
    at: u64,
    len: u64,
    prot: i32,
    file: BorrowedFd<'_>,
    offset: u64,
) -> Result<(), HostError> {
    const WHAT: &str = "mapping a file";
    exact(prot)?;
    if refused() {
        return Err(HostError::last(WHAT));
    }
    // Elsewhere first: a file that cannot be mapped would leave a hole where it was to be, into which anything of the host's could come.
    // SAFETY: a new mapping at an address the kernel chooses.
    let new = unsafe {
        let flags = libc::MAP_SHARED | libc::MAP_NORESERVE;
        libc::mmap(
            std::ptr::null_mut(),
            len as usize,
            prot,
            flags,
            file.as_raw_fd(),
            offset as i64,
        )
    };
    if new == libc::MAP_FAILED {
        return Err(HostError::last(WHAT));
    }
    // SAFETY: our own new mapping goes where the caller answers for what was.
    unsafe { place(new as u64, len, at, len) }.inspect_err(|_| {
        // SAFETY: it is still where it was.
        unsafe { libc::munmap(new, len as usize) };
    })
}

/// Maps a file shared, to read and write, at an address that the kernel chooses.
pub(crate) fn map_anywhere(file: BorrowedFd<'_>, len: u64) -> Result<u64, HostError> {
    // SAFETY: a fresh mapping.
    let p = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            len as usize,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_NORESERVE,
            file.as_raw_fd(),
            0,
        )
    };
    if p == libc::MAP_FAILED {
        return Err(HostError::last("mapping a file"));
    }
    Ok(p as u64)
}

/// Maps what is mapped shared at `from` once more at `at`, and as much more of its file as makes `len` bytes.
///
/// # Safety
/// As for [`map_shared`].
pub(crate) unsafe fn map_shared_again(from: u64, at: u64, len: u64) -> Result<(), HostError> {
    // SAFETY: the caller's promise. A length of 0 leaves what is there.
    unsafe { place(from, 0, at, len) }
}

/// Moves a mapping, or copies it where its length is given as 0.
///
/// # Safety
/// As for [`map_shared`].
unsafe fn place(from: u64, from_len: u64, at: u64, len: u64) -> Result<(), HostError> {
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    // SAFETY: the caller answers for both ranges.
    let to = || unsafe { libc::mremap(from as *mut _, from_len as usize, len as usize, flags, at) };
    if !refused() && to() as u64 == at {
        return Ok(());
    }
    let failed = HostError::last("mapping a file");
    // The kernel may have taken away what was there.
    // SAFETY: the caller's promise.
    unsafe { map_anonymous(at, len, libc::PROT_NONE, true)? };
    Err(failed)
}

/// Changes rights.
///
/// # Safety
/// Nobody relies on the old rights of the range.
pub(crate) unsafe fn protect(at: u64, len: u64, prot: i32) -> Result<(), HostError> {
    exact(prot)?;
    // SAFETY: see above.
    if refused() || unsafe { libc::mprotect(at as *mut _, len as usize, prot) } != 0 {
        return Err(HostError::last("changing the rights of memory"));
    }
    backed::note(at, len, prot);
    Ok(())
}

/// Keeps the kernel from making huge pages of what is mapped in a range. One that makes none anywhere says `EINVAL`.
///
/// # Safety
/// The range is the caller's.
pub(crate) unsafe fn never_huge(at: u64, len: u64) -> Result<(), HostError> {
    // SAFETY: changes no contents.
    let advised =
        !refused() && unsafe { libc::madvise(at as *mut _, len as usize, libc::MADV_NOHUGEPAGE) } == 0;
    if advised || io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL) {
        return Ok(());
    }
    Err(HostError::last("asking for small pages"))
}

/// Asks for memory that is about to be written all at once: a page fault for each page takes longer. Nothing relies on it.
pub(crate) fn populate(memory: &mut [MaybeUninit<u8>]) {
    let start = page_up(memory.as_ptr() as u64);
    let end = (memory.as_ptr() as u64 + memory.len() as u64) & !(PAGE as u64 - 1);
    if end > start {
        // SAFETY: whole pages that nobody else uses, whose contents stay; kernels before 5.14 do not know the advice.
        unsafe { libc::madvise(start as *mut _, (end - start) as usize, libc::MADV_POPULATE_WRITE) };
    }
}

/// Much memory for a short time: zeroes, of which the kernel makes huge pages if it has any. A page fault for each small one, and giving
/// it back, takes several times as long as filling it.
pub(crate) struct Scratch {
    at: *mut libc::c_void,
    mapped: usize,
    start: usize,
    len: usize,
}

impl Scratch {
    const HUGE: usize = 2 << 20;
    /// So much is as fast in small pages as a huge one.
    const SMALL: usize = 512 << 10;

    /// `None` if it is little, or there is none.
    pub(crate) fn new(len: usize) -> Option<Scratch> {
        let huge = len
            .saturating_sub(Self::SMALL)
            .checked_next_multiple_of(Self::HUGE)?;
        if huge == 0 || refused() {
            return None;
        }
        let mapped = len.max(huge).checked_add(Self::HUGE)?;
        let (rights, kind) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
        );
        // SAFETY: a fresh mapping at an address the kernel chooses.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), mapped, rights, kind, -1, 0) };
        if at == libc::MAP_FAILED {
            return None;
        }
        let start = (at as usize).next_multiple_of(Self::HUGE) - at as usize;
        let scratch = Scratch {
            at,
            mapped,
            start,
            len,
        };
        // SAFETY: pages of the mapping, whose contents stay. Kernels without huge pages refuse.
        unsafe { libc::madvise(at.byte_add(start), huge, libc::MADV_HUGEPAGE) };
        Some(scratch)
    }

    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: so many bytes from there on are mapped for as long as `self` lives, and nobody else has them.
        unsafe { std::slice::from_raw_parts_mut(self.at.byte_add(self.start).cast(), self.len) }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // SAFETY: unmaps our own mapping.
        unsafe { libc::munmap(self.at, self.mapped) };
    }
}

/// Drops private copies of pages of anonymous memory, which reads as zero again.
///
/// # Safety
/// Nobody relies on the contents.
pub(crate) unsafe fn drop_pages(at: u64, len: u64) -> Result<(), HostError> {
    // SAFETY: see above.
    unsafe { drop_copies(at, len, None) }
}

/// Drops private copies of pages that were mapped from a file: `known` bytes of it from `offset` on read as the file again, and what
/// is anonymous behind them as zero.
///
/// # Safety
/// Nobody relies on the contents.
pub(crate) unsafe fn drop_to_file(
    at: u64,
    len: u64,
    file: &KeptFile,
    offset: u64,
    known: u64,
) -> Result<(), HostError> {
    // SAFETY: see above.
    unsafe { drop_copies(at, len, Some((file, offset, known))) }
}

/// # Safety
/// As for those above.
unsafe fn drop_copies(at: u64, len: u64, known: Option<(&KeptFile, u64, u64)>) -> Result<(), HostError> {
    if len == 0 {
        return Ok(());
    }
    if refused() {
        return Err(HostError::last("dropping pages"));
    }
    if let Some(renewed) = backed::renew(at, len, known) {
        return renewed;
    }
    // SAFETY: see above.
    let drop = |advice| unsafe { libc::madvise(at as *mut _, len as usize, advice) == 0 };
    if drop(libc::MADV_DONTNEED) {
        return Ok(());
    }
    // The process locks its memory (`mlockall`). Linux before 5.18 drops such pages only once they are not locked any more.
    const MADV_DONTNEED_LOCKED: i32 = 24;
    let source = io::Error::last_os_error();
    if source.raw_os_error() == Some(libc::EINVAL) {
        // SAFETY: the range is ours.
        let unlock = || unsafe { libc::munlock(at as *const _, len as usize) == 0 };
        if drop(MADV_DONTNEED_LOCKED) || (unlock() && drop(libc::MADV_DONTNEED)) {
            return Ok(());
        }
    }
    let what = "dropping pages";
    Err(HostError::Os { what, source })
}

/// Whether the process may have a file of this size: one that is larger than `RLIMIT_FSIZE` would raise `SIGXFSZ`, which ends the
/// process, also if the file is memory.
pub(crate) fn check_file_size(wanted: u64) -> Result<(), HostError> {
    // SAFETY: asks only; all-zero is a value of the type.
    let limit = unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        // The library asks by `prlimit64`, which a filter may refuse. Nothing is made on a guess: it could end the process.
        let told = libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) == 0
            || libc::syscall(libc::SYS_getrlimit, libc::RLIMIT_FSIZE, &raw mut limit) == 0;
        if !told {
            return Err(HostError::last("asking how large files may be"));
        }
        limit.rlim_cur
    };
    if wanted > limit {
        return Err(HostError::FileSize { wanted, limit });
    }
    Ok(())
}

/// An empty memory file that may be mapped executable.
pub(crate) fn memory_file(name: &std::ffi::CStr, len: u64) -> Result<OwnedFd, HostError> {
    check_file_size(len)?;
    const MFD_EXEC: u32 = 0x10;
    let base = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: the name is a C string; kernels before 6.3 do not know MFD_EXEC and need none.
    let mut fd = unsafe { libc::memfd_create(name.as_ptr(), base | MFD_EXEC) };
    if fd < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL) {
        // SAFETY: as above.
        fd = unsafe { libc::memfd_create(name.as_ptr(), base) };
    }
    if fd < 0 {
        return Err(HostError::last("making a memory file"));
    }
    // SAFETY: a fresh descriptor that nobody else owns.
    let file = unsafe { OwnedFd::from_raw_fd(fd) };
    if refused() {
        return Err(HostError::last("making a memory file"));
    }
    // SAFETY: the descriptor is open.
    if unsafe { libc::ftruncate(fd, len as i64) } != 0 {
        return Err(HostError::last("sizing a memory file"));
    }
    Ok(file)
}

/// A memory file that is written through `fill` and then sealed: from here on nobody can change it.
pub(crate) fn sealed_file(
    name: &std::ffi::CStr,
    len: u64,
    fill: impl FnOnce(&mut [u8]),
) -> Result<OwnedFd, HostError> {
    let file = memory_file(name, len)?;
    let fd = file.as_raw_fd();
    // SAFETY: a fresh mapping at an address the kernel chooses.
    let p = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            len as usize,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            fd,
            0,
        )
    };
    if p == libc::MAP_FAILED {
        return Err(HostError::last("mapping a memory file"));
    }
    // SAFETY: the mapping is `len` bytes long and ours alone until it is unmapped below.
    fill(unsafe { std::slice::from_raw_parts_mut(p.cast::<u8>(), len as usize) });
    // SAFETY: unmaps what was mapped above; sealing against writing needs it gone.
    unsafe { libc::munmap(p, len as usize) };
    seal(&file)?;
    Ok(file)
}

/// As [`sealed_file`], of pieces that `fill` puts where they belong, and zeroes elsewhere. Faster: no page faults.
pub(crate) fn sealed_file_of(
    name: &std::ffi::CStr,
    len: u64,
    fill: impl FnOnce(&Unsealed) -> Result<(), HostError>,
) -> Result<OwnedFd, HostError> {
    let file = Unsealed(memory_file(name, len)?.into());
    fill(&file)?;
    let file = OwnedFd::from(file.0);
    seal(&file)?;
    Ok(file)
}

/// A memory file that is being written.
pub(crate) struct Unsealed(std::fs::File);

impl Unsealed {
    pub(crate) fn put(&self, offset: u64, bytes: &[u8]) -> Result<(), HostError> {
        self.0
            .write_all_at(bytes, offset)
            .map_err(|source| HostError::Os {
                what: "writing a memory file",
                source,
            })
    }
}

/// From here on nobody can change the file.
fn seal(file: &OwnedFd) -> Result<(), HostError> {
    let seals = libc::F_SEAL_SEAL | libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_WRITE;
    // SAFETY: the descriptor is open.
    if refused() || unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } != 0 {
        return Err(HostError::last("sealing a memory file"));
    }
    Ok(())
}

/// A read-only view of a file, unmapped on drop.
pub(crate) struct View {
    at: *mut libc::c_void,
    len: usize,
}

impl View {
    pub(crate) fn new(file: BorrowedFd<'_>, offset: u64, len: u64) -> Result<View, HostError> {
        if refused() {
            return Err(HostError::last("mapping a module to verify it"));
        }
        // SAFETY: a fresh mapping at an address the kernel chooses.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len as usize,
                libc::PROT_READ,
                libc::MAP_PRIVATE,
                file.as_raw_fd(),
                offset as i64,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(HostError::last("mapping a module to verify it"));
        }
        Ok(View {
            at,
            len: len as usize,
        })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: mapped for as long as `self` lives, of a sealed file that nobody can change.
        unsafe { std::slice::from_raw_parts(self.at.cast::<u8>(), self.len) }
    }
}

impl Drop for View {
    fn drop(&mut self) {
        // SAFETY: unmaps our own mapping.
        unsafe { libc::munmap(self.at, self.len) };
    }
}

// SAFETY: an immutable mapping.
unsafe impl Send for View {}
// SAFETY: an immutable mapping.
unsafe impl Sync for View {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scratch_is_zeroes_that_may_be_written() {
        for len in [1, 600 << 10, 2 << 20, (2 << 20) + 1, (3 << 20) + 5] {
            let Some(mut scratch) = Scratch::new(len) else {
                assert_eq!(len, 1, "little needs none");
                continue;
            };
            assert_eq!(scratch.bytes().len(), len);
            assert!(scratch.bytes().iter().all(|&byte| byte == 0));
            scratch.bytes().fill(1);
        }
        assert!(Scratch::new(usize::MAX).is_none());
    }
}
