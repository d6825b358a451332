//! The memory that code added to a living domain goes to: always executable and never writable in the window, written
//! through another view of the same memory file, which lies in host memory.
//!
//! What is not in use is `int3`. A fork would leave both processes with the same file, so it freezes arenas: whichever
//! process wants to change one then makes a file of its own first, with the same bytes, and maps that in its place.

use crate::os::{host, sys};
use crate::place::room::Room;
use ringfence_core::KeptFile;
use ringfence_core::error::HostError;
use ringfence_isa::window;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Places are multiples of it: a line of the cache, so that no two pieces share one.
const GRAIN: u32 = 64;

/// So much becomes executable at a time.
const STEP: u32 = 64 << 10;

/// The view in host memory, and the one in the window, which splits the reservation there.
const MAPPINGS: u64 = 3;

const INT3: u8 = 0xCC;

/// How often this process or its parents forked.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// Before a fork, with the world locked: what there is stays as it is, in both processes.
pub(crate) fn freeze() {
    FORKS.fetch_add(1, Ordering::AcqRel);
}

/// Another number after each fork: files of memory that were made before are shared with the other process.
pub(crate) fn forks() -> u64 {
    FORKS.load(Ordering::Acquire)
}

/// An arena of one domain.
pub(crate) struct Arena {
    base: u64,
    limit: u32,
    /// Bytes from the arena's start that are executable.
    mapped: u32,
    /// Free places below `mapped`, by offset in the arena.
    free: Room,
    view: View,
    /// [`FORKS`] when the file was made.
    forks: u64,
}

/// The writable view.
struct View {
    file: KeptFile,
    at: u64,
    len: u32,
}

impl View {
    fn new(len: u32) -> Result<View, HostError> {
        let file = KeptFile::new(sys::memory_file(c"ringfence-code", len.into())?)?;
        let at = sys::map_anywhere(file.get()?, len.into())?;
        Ok(View { file, at, len })
    }

    /// Maps a part of the file executable into the window.
    fn map(&self, base: u64, start: u32, len: u32) -> Result<(), HostError> {
        let at = base + u64::from(window::ARENA) + u64::from(start);
        let file = self.file.get()?;
        // SAFETY: inside the part of our own window that is for nothing else; over it either nothing was mapped, or the same
        // bytes.
        let p = unsafe {
            libc::mmap(
                at as *mut _,
                len as usize,
                libc::PROT_READ | libc::PROT_EXEC,
                libc::MAP_SHARED | libc::MAP_FIXED | libc::MAP_POPULATE,
                file.as_raw_fd(),
                i64::from(start),
            )
        };
        if p == libc::MAP_FAILED {
            return Err(HostError::last("mapping added code into a window"));
        }
        Ok(())
    }
}

impl Drop for View {
    fn drop(&mut self) {
        // SAFETY: our own mapping.
        unsafe { libc::munmap(self.at as *mut _, self.len as usize) };
    }
}

impl Arena {
    /// Makes one for the window at `base`. Nothing is mapped there yet.
    pub(crate) fn new(base: u64, limit: u32) -> Result<Arena, HostError> {
        host::take_mappings(MAPPINGS)?;
        let len = limit.next_multiple_of(STEP).max(STEP);
        let view = View::new(len).inspect_err(|_| host::give_mappings(MAPPINGS))?;
        Ok(Arena {
            base,
            limit,
            mapped: 0,
            free: Room::default(),
            view,
            forks: forks(),
        })
    }

    /// How many bytes code of `len` bytes takes.
    pub(crate) fn size(len: u32) -> u32 {
        len.next_multiple_of(GRAIN)
    }

    /// After a fork: a file of our own.
    fn thaw(&mut self) -> Result<(), HostError> {
        let forks = forks();
        if self.forks == forks {
            return Ok(());
        }
        let view = View::new(self.view.len)?;
        // SAFETY: both views are mapped to at least this length, and different. Nobody writes a frozen file any more.
        unsafe {
            std::ptr::copy_nonoverlapping(
                self.view.at as *const u8,
                view.at as *mut u8,
                self.mapped as usize,
            );
        }
        if self.mapped > 0 {
            view.map(self.base, 0, self.mapped)?;
        }
        self.view = view;
        self.forks = forks;
        Ok(())
    }

    /// A place for `size` bytes, as an offset in the window; `None` if the limit does not allow it.
    pub(crate) fn take(&mut self, size: u32) -> Result<Option<u32>, HostError> {
        self.thaw()?;
        loop {
            if let Some(at) = self.free.take(size) {
                return Ok(Some(window::ARENA + at));
            }
            if !self.grow(size)? {
                return Ok(None);
            }
        }
    }

    /// Makes more of it executable, filled with `int3`: enough for `size` bytes in one piece at the end.
    fn grow(&mut self, size: u32) -> Result<bool, HostError> {
        let end = self.limit.next_multiple_of(STEP);
        let tail = self.free.tail(self.mapped);
        let more = size.saturating_sub(tail).next_multiple_of(STEP);
        if more == 0 || more > end - self.mapped {
            return Ok(false);
        }
        let start = self.mapped;
        // SAFETY: in our view, at a place that nobody uses and that is mapped nowhere else.
        unsafe { std::ptr::write_bytes((self.view.at + u64::from(start)) as *mut u8, INT3, more as usize) };
        self.view.map(self.base, start, more)?;
        self.mapped += more;
        self.free.give(start, more);
        Ok(true)
    }

    fn view(&self, place: u32) -> *mut u8 {
        (self.view.at + u64::from(place - window::ARENA)) as *mut u8
    }

    /// Writes code to a place that [`take`](Self::take) gave.
    pub(crate) fn write(&mut self, place: u32, code: &[u8]) {
        // SAFETY: the place is at least as long as the code and belongs to the caller.
        unsafe { std::ptr::copy_nonoverlapping(code.as_ptr(), self.view(place), code.len()) };
    }

    /// Sets one aligned word of code, in one piece.
    pub(crate) fn set(&mut self, at: u32, word: u32) {
        debug_assert!(at.is_multiple_of(4));
        // SAFETY: in the arena, aligned; a word that other threads may load at the same time.
        unsafe { &*self.view(at).cast::<AtomicU32>() }.store(word, Ordering::Release);
    }

    /// Before words are [`set`](Self::set) in code that is in place already.
    pub(crate) fn ready(&mut self) -> Result<(), HostError> {
        self.thaw()
    }

    /// Takes back a place where no thread is or can come to be. It is `int3` again.
    pub(crate) fn give(&mut self, place: u32, size: u32) {
        // SAFETY: the place belongs to the caller, who gives it up.
        unsafe { std::ptr::write_bytes(self.view(place), INT3, size as usize) };
        self.free.give(place - window::ARENA, size);
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        host::give_mappings(MAPPINGS);
    }
}
