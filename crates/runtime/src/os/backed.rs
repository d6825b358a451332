//! A window that another process maps too, for the back end `process`. In a worker there is one.
//!
//! What is private memory in an ordinary window lies here in a memory file, at the window's offsets; text alone is mapped from its
//! sealed file over that, and the file has a copy of it to read. Behind the window's bytes the file has a byte for each of its pages
//! that tells what the domain may do there: the other process maps everything, and looks there first.

use crate::os::sys;
use ringfence_core::KeptFile;
use ringfence_core::error::HostError;
use ringfence_isa::window;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

/// How many bytes tell rights.
pub const RIGHTS: u64 = window::SIZE / sys::PAGE as u64;
/// Where whoever makes the file may put more.
pub const MORE: u64 = window::SIZE + RIGHTS;

/// Rights to a page, as bits: to read, and to write.
pub const READ: u8 = libc::PROT_READ as u8;
/// See [`READ`].
pub const WRITE: u8 = libc::PROT_WRITE as u8;

/// Bytes of a file that is copied, in one piece.
const PIECE: usize = 64 << 10;

struct Backed {
    base: u64,
    file: OwnedFd,
    rights: &'static [AtomicU8],
}

static BACKED: OnceLock<Backed> = OnceLock::new();

/// Maps what tells rights.
pub(crate) fn map_rights(file: BorrowedFd<'_>) -> Result<*const AtomicU8, HostError> {
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    let (shared, fd) = (libc::MAP_SHARED, file.as_raw_fd());
    // SAFETY: a new mapping, at an address that the kernel chooses.
    let at = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            RIGHTS as usize,
            rights,
            shared,
            fd,
            window::SIZE as i64,
        )
    };
    if at == libc::MAP_FAILED {
        return Err(HostError::last("mapping a window's rights"));
    }
    Ok(at.cast())
}

/// The window that this process makes next, its only one, lies at `base` and in `file`, which is sealed against another size and empty.
///
/// # Errors
/// [`HostError`].
pub fn install(base: u64, file: OwnedFd) -> Result<(), HostError> {
    use std::os::fd::AsFd;
    let at = map_rights(file.as_fd())?;
    // SAFETY: so many bytes are mapped, for ever, and used as atomics by all who map them.
    let rights = unsafe { std::slice::from_raw_parts(at, RIGHTS as usize) };
    let _ = BACKED.set(Backed { base, file, rights });
    Ok(())
}

/// Where the one window lies, if there is one of this kind.
pub(crate) fn base() -> Option<u64> {
    BACKED.get().map(|b| b.base)
}

/// The same, if the range lies in it.
fn of(at: u64) -> Option<&'static Backed> {
    BACKED.get().filter(|b| at.wrapping_sub(b.base) < window::SIZE)
}

/// Whether an address lies in such a window.
pub(crate) fn covers(at: u64) -> bool {
    of(at).is_some()
}

impl Backed {
    fn offset(&self, at: u64) -> u64 {
        at - self.base
    }

    fn tell(&self, at: u64, len: u64, prot: i32) {
        let first = self.offset(at) / sys::PAGE as u64;
        let count = sys::page_up(len) / sys::PAGE as u64;
        let bits = prot as u8 & (READ | WRITE);
        for page in self.rights.iter().skip(first as usize).take(count as usize) {
            // Most are what they were, and pages of zeroes take no memory.
            if page.load(Ordering::Relaxed) != bits {
                page.store(bits, Ordering::Release);
            }
        }
    }

    /// The file's own zeroes again.
    fn empty(&self, at: u64, len: u64) -> Result<(), HostError> {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let (offset, len) = (self.offset(at) as i64, sys::page_up(len) as i64);
        // SAFETY: a file of ours.
        match unsafe { libc::fallocate(self.file.as_raw_fd(), mode, offset, len) } {
            0 => Ok(()),
            _ => Err(HostError::last("dropping pages")),
        }
    }

    /// # Safety
    /// Whatever is mapped in the range goes away.
    unsafe fn map(&self, at: u64, len: u64, prot: i32) -> Result<(), HostError> {
        let flags = libc::MAP_SHARED | libc::MAP_FIXED | libc::MAP_NORESERVE;
        let (fd, offset) = (self.file.as_raw_fd(), self.offset(at) as i64);
        // SAFETY: the caller answers for what was mapped there.
        let p = unsafe { libc::mmap(at as *mut _, len as usize, prot, flags, fd, offset) };
        if p == libc::MAP_FAILED {
            return Err(HostError::last("mapping memory"));
        }
        Ok(())
    }

    /// Writes bytes of a file to the window's, and zeroes behind them to the end of the page.
    fn copy(&self, at: u64, len: u64, file: BorrowedFd<'_>, offset: u64) -> Result<(), HostError> {
        let failed = |source| HostError::Os {
            what: "copying a module",
            source,
        };
        let (from, to) = (file.as_raw_fd(), self.file.as_raw_fd());
        let mut buffer = vec![0u8; PIECE];
        let mut done = 0;
        while done < len {
            let piece = &mut buffer[..PIECE.min((len - done) as usize)];
            // SAFETY: a buffer of ours.
            let read = unsafe {
                libc::pread(
                    from,
                    piece.as_mut_ptr().cast(),
                    piece.len(),
                    (offset + done) as i64,
                )
            };
            match read {
                // The file ends before.
                0 => {
                    let rest = sys::page_up(done).min(len);
                    return if rest < len {
                        self.empty(at + rest, len - rest)
                    } else {
                        Ok(())
                    };
                }
                ..0 => return Err(failed(std::io::Error::last_os_error())),
                _ => {}
            }
            let whole = sys::page_up(read as u64) as usize;
            buffer[read as usize..whole].fill(0);
            let bytes = &buffer[..whole];
            // Zeroes are holes.
            if bytes.iter().all(|&b| b == 0) {
                self.empty(at + done, bytes.len() as u64)?;
            } else {
                let at = (self.offset(at) + done) as i64;
                // SAFETY: as above.
                let written = unsafe { libc::pwrite(to, bytes.as_ptr().cast(), bytes.len(), at) };
                if written != bytes.len() as isize {
                    return Err(failed(std::io::Error::last_os_error()));
                }
            }
            done += read as u64;
        }
        Ok(())
    }
}

/// Reserves the window, inaccessible, where nothing is.
pub(crate) fn reserve(base: u64, guard: u64) -> Result<(), HostError> {
    let Some(backed) = of(base) else {
        return Err(HostError::NoWindow { live: 0 });
    };
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
    let len = (window::SIZE + guard) as usize;
    // SAFETY: takes nothing away from anybody; then what was reserved is replaced.
    unsafe {
        let at = libc::mmap(base as *mut _, len, libc::PROT_NONE, flags, -1, 0);
        if at as u64 != base {
            return Err(HostError::last("placing the window where the host has it"));
        }
        backed.map(base, window::SIZE, libc::PROT_NONE)
    }
}

/// As `sys::map_anonymous`, if the range is in such a window: zeroes with these rights.
///
/// # Safety
/// Whatever is mapped in the range goes away.
pub(crate) unsafe fn map_anonymous(at: u64, len: u64, prot: i32) -> Option<Result<(), HostError>> {
    let backed = of(at)?;
    backed.tell(at, len, libc::PROT_NONE);
    // SAFETY: the caller's promise.
    let mapped = backed
        .empty(at, len)
        .and_then(|()| unsafe { backed.map(at, len, prot) });
    if mapped.is_ok() {
        backed.tell(at, len, prot);
    }
    Some(mapped)
}

/// As `sys::map_file`. True if the bytes are mapped too; false if only a copy was made, of what is to be executed.
///
/// # Safety
/// As for [`map_anonymous`].
pub(crate) unsafe fn map_file(
    at: u64,
    len: u64,
    prot: i32,
    file: BorrowedFd<'_>,
    offset: u64,
) -> Option<Result<bool, HostError>> {
    let backed = of(at)?;
    let map = || {
        backed.tell(at, len, libc::PROT_NONE);
        backed.empty(at, len)?;
        backed.copy(at, len, file, offset)?;
        let executable = prot & libc::PROT_EXEC != 0;
        if !executable {
            // SAFETY: the caller's promise.
            unsafe { backed.map(at, len, prot)? };
        }
        backed.tell(at, len, prot);
        Ok(!executable)
    };
    Some(map())
}

/// Notes rights that have changed.
pub(crate) fn note(at: u64, len: u64, prot: i32) {
    if let Some(backed) = of(at) {
        backed.tell(at, len, prot);
    }
}

/// Has `known` bytes of a file in the range, and zeroes behind them. `None` if it is in no such window. What is as it is to be stays so all the
/// time: the host reads the range meanwhile.
pub(crate) fn renew(
    at: u64,
    len: u64,
    known: Option<(&KeptFile, u64, u64)>,
) -> Option<Result<(), HostError>> {
    let backed = of(at)?;
    let renewed = || {
        let known = match known {
            Some((file, offset, known)) => {
                let known = known.min(len);
                backed.copy(at, known, file.get()?, offset)?;
                sys::page_up(known)
            }
            None => 0,
        };
        match known < len {
            true => backed.empty(at + known, len - known),
            false => Ok(()),
        }
    };
    Some(renewed())
}

/// Maps a region's file, or takes the region away.
///
/// # Errors
/// [`HostError`]; nothing has changed.
pub fn map_region(at: u64, len: u64, prot: i32, file: Option<BorrowedFd<'_>>) -> Result<(), HostError> {
    let inside = |b: &Backed| {
        let offset = at.wrapping_sub(b.base);
        (u64::from(window::REGIONS)..u64::from(window::REGIONS_END)).contains(&offset)
            && len <= u64::from(window::REGIONS_END) - offset
    };
    let Some(backed) = BACKED.get().filter(|b| inside(b)) else {
        return Err(HostError::NoWindow { live: 0 });
    };
    let Some(file) = file else {
        // SAFETY: the part of the window for regions has nothing else.
        return unsafe { backed.map(at, len, libc::PROT_NONE) };
    };
    sys::exact(prot)?;
    let (flags, fd) = (
        libc::MAP_SHARED | libc::MAP_FIXED | libc::MAP_NORESERVE,
        file.as_raw_fd(),
    );
    // SAFETY: as above; the file is sealed against shrinking.
    let p = unsafe { libc::mmap(at as *mut _, len as usize, prot, flags, fd, 0) };
    if p == libc::MAP_FAILED {
        return Err(HostError::last("mapping a region"));
    }
    Ok(())
}
