//! A window that another process runs, in this one.

use crate::lanes::signal;
use crate::os::{backed, guarded, host, sys};
use crate::place::window;
use ringfence_core::error::HostError;
use ringfence_isa::window::SIZE;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

/// A window of another process, as this one has it: at the same addresses, all of it readable and writable, and nothing executable. Who
/// uses it looks first at what the domain itself may do there.
///
/// The file is sealed against another size before it is mapped, so there is always a page behind an address: the other process
/// can change what the bytes are and that is all.
pub struct Twin {
    base: u64,
    rights: *const AtomicU8,
}

// SAFETY: addresses of mappings, of which only atomics and guarded copies are used.
unsafe impl Send for Twin {}
// SAFETY: as above.
unsafe impl Sync for Twin {}

impl Twin {
    /// Reserves a place for a window and maps the file there, whose size is that of a window with rights behind it, or more.
    ///
    /// # Errors
    /// [`HostError`].
    pub fn new(file: BorrowedFd<'_>) -> Result<Twin, HostError> {
        host::begin()?;
        signal::install()?;
        at_fork()?;
        let rights = backed::map_rights(file)?;
        let base = window::take().inspect_err(|_| unmap_rights(rights))?;
        let twin = Twin { base, rights };
        mark(base, true);
        let shared = libc::MAP_SHARED | libc::MAP_FIXED | libc::MAP_NORESERVE;
        let (at, len) = (base as *mut libc::c_void, SIZE as usize);
        let rw = libc::PROT_READ | libc::PROT_WRITE;
        sys::exact(rw)?;
        // SAFETY: the whole window is our own reservation. A process that locks what it maps is not to have all of it at once, so
        // the lock goes before anything is accessible.
        let mapped = unsafe {
            libc::mmap(at, len, libc::PROT_NONE, shared, file.as_raw_fd(), 0) == at
                && libc::munlock(at, len) == 0
                && libc::mprotect(at, len, rw) == 0
        };
        if !mapped {
            return Err(HostError::last("mapping a window of another process"));
        }
        // What every dump of the host would hold otherwise is the domain's.
        // SAFETY: advice about our own mapping.
        unsafe { libc::madvise(at, len, libc::MADV_DONTDUMP) };
        Ok(twin)
    }

    /// The window's first address.
    #[must_use]
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Whether the domain may do this with all pages of a range.
    #[must_use]
    pub fn allows(&self, address: u64, len: u64, rights: u8) -> bool {
        self.allowed(address, len, rights) == len
    }

    /// With how many bytes of a range, from its beginning on, the domain may do this.
    #[must_use]
    pub fn allowed(&self, address: u64, len: u64, rights: u8) -> u64 {
        let offset = address.wrapping_sub(self.base);
        if offset >= SIZE {
            return 0;
        }
        let page = sys::PAGE as u64;
        let end = offset + len.min(SIZE - offset);
        let forbidden = |n: &u64| {
            // SAFETY: there is a byte for each page of the window, mapped while `self` lives.
            let told = unsafe { &*self.rights.add(*n as usize) }.load(Ordering::Acquire);
            told & rights != rights
        };
        match (offset / page..end.div_ceil(page)).find(forbidden) {
            Some(n) => (n * page).max(offset) - offset,
            None => end - offset,
        }
    }

    /// Notes what the domain may do with a region.
    pub fn note(&self, address: u64, len: u64, rights: u8) {
        let first = address.wrapping_sub(self.base) / sys::PAGE as u64;
        for n in first..(first + sys::page_up(len) / sys::PAGE as u64).min(backed::RIGHTS) {
            // SAFETY: as above.
            unsafe { &*self.rights.add(n as usize) }.store(rights, Ordering::Release);
        }
    }

    /// Copies out of the window. False if the domain may not read there.
    #[must_use]
    pub fn read(&self, address: u64, to: &mut [u8]) -> bool {
        if to.is_empty() {
            return true;
        }
        signal::thread_ready();
        self.allows(address, to.len() as u64, backed::READ)
            // SAFETY: `to` is ours, the other range lies in the window; faults become a result.
            && unsafe { guarded::copy(to.as_mut_ptr(), address as *const u8, to.len()) } == 0
    }

    /// Copies into the window. False if the domain may not write there.
    #[must_use]
    pub fn write(&self, address: u64, from: &[u8]) -> bool {
        if from.is_empty() {
            return true;
        }
        signal::thread_ready();
        self.allows(address, from.len() as u64, backed::WRITE)
            // SAFETY: `from` is ours, the other range lies in the window; faults become a result.
            && unsafe { guarded::copy(address as *mut u8, from.as_ptr(), from.len()) } == 0
    }
}

/// A bit for each place a window can have: whether it is one of another process's.
static TWINS: [AtomicU64; 1 << (47 - 32 - 6)] = [const { AtomicU64::new(0) }; 1 << (47 - 32 - 6)];

fn mark(base: u64, there: bool) {
    let number = (base / SIZE) as usize;
    let (word, bit) = (&TWINS[number / 64], 1 << (number % 64));
    match there {
        true => word.fetch_or(bit, Ordering::Relaxed),
        false => word.fetch_and(!bit, Ordering::Relaxed),
    };
}

/// A forked child has private copies of its parent's memory, but would share these windows: they are inaccessible there.
fn at_fork() -> Result<(), HostError> {
    extern "C" fn child() {
        for (n, word) in TWINS.iter().enumerate() {
            let bits = word.load(Ordering::Relaxed);
            for bit in (0..64).filter(|bit| bits >> bit & 1 != 0) {
                let base = (64 * n as u64 + bit) * SIZE;
                // SAFETY: this process's mapping of a window that is another process's.
                let replaced = unsafe { sys::map_anonymous(base, SIZE, libc::PROT_NONE, true) };
                // Where nothing may be mapped, what is there stays and cannot be reached.
                // SAFETY: the same.
                let done = replaced
                    .map(|_| ())
                    .or_else(|_| unsafe { sys::protect(base, SIZE, libc::PROT_NONE) });
                if done.is_err() {
                    // Rather no child than one that shares memory it should not.
                    std::process::abort();
                }
            }
        }
    }
    static DONE: AtomicBool = AtomicBool::new(false);
    if !DONE.swap(true, Ordering::AcqRel) {
        // SAFETY: registers a function that stays.
        let e = unsafe { libc::pthread_atfork(None, None, Some(child)) };
        if e != 0 {
            let source = std::io::Error::from_raw_os_error(e);
            DONE.store(false, Ordering::Release);
            return Err(HostError::Os {
                what: "registering for fork",
                source,
            });
        }
    }
    Ok(())
}

fn unmap_rights(rights: *const AtomicU8) {
    // SAFETY: mapped by `backed::map_rights`, and used by nobody any more.
    unsafe { libc::munmap(rights.cast_mut().cast(), backed::RIGHTS as usize) };
}

impl Drop for Twin {
    fn drop(&mut self) {
        unmap_rights(self.rights);
        mark(self.base, false);
        window::give_back(self.base);
    }
}
