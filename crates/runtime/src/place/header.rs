//! The header page: what a window tells its domain, and how the list of images in it changes while threads run there.
//!
//! The page is read-only in the window from the beginning to the end. A domain to which a module is added gets its header from a
//! memory file, which is also mapped in host memory, writable: a change is a few words written there, and no system call.
//! After a fork both processes would write to the same file, so whichever changes a list then makes a file of its own first, as
//! for added code.

use crate::os::{host, sys};
use crate::place::arena;
use ringfence_core::error::HostError;
use ringfence_isa::window;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU32, Ordering};

/// From the header to the end of the stubs, which are mapped over as much of it as the window uses: one mapping, of which only the
/// first page holds anything.
pub(crate) const LEN: u64 = (window::STUBS_END - window::HEADER) as u64;

/// What the page tells of an image, as offsets in the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub offset: u32,
    pub len: u32,
    /// Its table of frames, or 0.
    pub frames: u32,
}

/// Writes a fresh header.
///
/// # Safety
/// `page` is a writable page of zeroes that nobody else uses yet.
pub(crate) unsafe fn fill(page: u64, base: u64, processors: u32, images: &[Listed]) -> Result<(), HostError> {
    let features = host::check()?.features;
    // SAFETY: all places are in the page.
    unsafe {
        place(page, window::HEADER_BASE)
            .cast_mut()
            .cast::<u64>()
            .write(base);
        (*place(page, window::HEADER_ABI)).store(ringfence_isa::ABI_VERSION, Ordering::Relaxed);
        (*place(page, window::HEADER_FEATURES)).store(features, Ordering::Relaxed);
        (*place(page, window::HEADER_CPUS)).store(processors, Ordering::Relaxed);
        for (at, word) in (window::HEADER_VECTOR_ROOM..)
            .step_by(4)
            .zip(vector_words(features))
        {
            (*place(page, at)).store(word, Ordering::Relaxed);
        }
        list(page, images, images.len() as u32);
    }
    Ok(())
}

/// Writes whether the domain's libc allocates objects of the arena.
///
/// # Safety
/// `page` is a writable header that nobody else uses yet.
pub(crate) unsafe fn tell_heap(page: u64, heap: bool) {
    // SAFETY: in the page.
    unsafe { (*place(page, window::HEADER_HEAP)).store(heap.into(), Ordering::Relaxed) };
}

/// What stands from [`window::HEADER_VECTOR_ROOM`] on: two u32, then three u64.
fn vector_words(features: u32) -> [u32; 8] {
    if features & window::feature::AVX2 == 0 {
        return [0; 8];
    }
    let below = |vectors: u32| 4096 - 32 * vectors + 1;
    [below(1), below(4), 2 * 32, 0, 4 * 32, 0, 8 * 32, 0]
}

fn place(page: u64, at: u32) -> *const AtomicU32 {
    (page + u64::from(at - window::HEADER)) as *const AtomicU32
}

/// Writes a list of images.
///
/// # Safety
/// `page` is a header's page, writable, and nobody else writes it.
unsafe fn list(page: u64, images: &[Listed], changes: u32) {
    let listed = images.len().min(window::HEADER_IMAGES_MOST as usize);
    let set = |at: u32, value: u32| {
        // SAFETY: all places are in the page.
        unsafe { &*place(page, at) }.store(value, Ordering::Release);
    };
    for (i, image) in (0u32..).zip(&images[..listed]) {
        let entry = window::HEADER_IMAGES + 8 * i;
        set(entry, image.offset);
        set(entry + 4, image.len);
        set(window::HEADER_FRAMES + 4 * i, image.frames);
    }
    // A thread that reads the list meanwhile finds an image that is new complete, or does not find it.
    set(window::HEADER_IMAGE_COUNT, listed as u32);
    set(window::HEADER_IMAGE_CHANGES, changes);
}

/// The writable view of one window's header.
pub(crate) struct Header {
    base: u64,
    /// Bytes up to the window's first stub.
    len: u64,
    at: u64,
    forks: u64,
}

impl Header {
    /// Puts the header of the window at `base` into a file. The window's stubs begin at the offset `stubs`.
    pub(crate) fn new(base: u64, stubs: u32) -> Result<Header, HostError> {
        let len = u64::from(stubs - window::HEADER);
        host::take_mappings(1)?;
        let at = map(base, len).inspect_err(|_| host::give_mappings(1))?;
        Ok(Header {
            base,
            len,
            at,
            forks: arena::forks(),
        })
    }

    /// Before [`list`](Self::list), which cannot fail: a file of this process's own.
    pub(crate) fn ready(&mut self) -> Result<(), HostError> {
        let forks = arena::forks();
        if self.forks != forks {
            let at = map(self.base, self.len)?;
            self.unmap();
            (self.at, self.forks) = (at, forks);
        }
        Ok(())
    }

    /// Tells other images from now on. Either they are those before and more behind them, or no thread is in the domain that could
    /// be reading. `changes` is another number each time.
    pub(crate) fn list(&mut self, images: &[Listed], changes: u32) {
        debug_assert_eq!(self.forks, arena::forks());
        // SAFETY: our own view of the page; whoever changes it holds it alone.
        unsafe { list(self.at, images, changes) };
    }

    fn unmap(&self) {
        // SAFETY: our own mapping.
        unsafe { libc::munmap(self.at as *mut _, sys::PAGE) };
    }
}

impl Drop for Header {
    fn drop(&mut self) {
        self.unmap();
        host::give_mappings(1);
    }
}

/// Puts a file with the same bytes in the place of a window's header, in one step; where its page is mapped writable.
fn map(base: u64, len: u64) -> Result<u64, HostError> {
    let header = base + u64::from(window::HEADER);
    let file = sys::memory_file(c"ringfence-header", len)?;
    let shared = |at: u64, len: u64, prot: i32, fixed: i32| {
        sys::exact(prot)?;
        let flags = libc::MAP_SHARED | libc::MAP_NORESERVE | fixed;
        // SAFETY: at an address that the kernel chooses, or over our own window's header, with the same bytes.
        let p = unsafe { libc::mmap(at as *mut _, len as usize, prot, flags, file.as_raw_fd(), 0) };
        if p == libc::MAP_FAILED {
            return Err(HostError::last("mapping a header"));
        }
        Ok(p as u64)
    };
    let view = shared(0, sys::PAGE as u64, libc::PROT_READ | libc::PROT_WRITE, 0)?;
    // SAFETY: two pages that are mapped, and different; nobody changes the old one, for the world is locked.
    unsafe { std::ptr::copy_nonoverlapping(header as *const u8, view as *mut u8, sys::PAGE) };
    if let Err(e) = shared(header, len, libc::PROT_READ, libc::MAP_FIXED) {
        // SAFETY: mapped above.
        unsafe { libc::munmap(view as *mut _, sys::PAGE) };
        return Err(e);
    }
    Ok(view)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::window::Window;

    fn listed(offset: u32, len: u32) -> Listed {
        let frames = offset + 16;
        Listed { offset, len, frames }
    }

    #[test]
    fn a_list_changes_and_the_rest_stays() {
        let window = Window::new(3, &[listed(0x10_0000, 0x3000), listed(0x12_0000, 4096)]).expect("window");
        let read = |at: u32| {
            // SAFETY: the header is mapped readable while the window lives.
            unsafe { &*place(window.base() + u64::from(window::HEADER), at) }.load(Ordering::Relaxed)
        };
        let image = |i: u32| Listed {
            offset: read(window::HEADER_IMAGES + 8 * i),
            len: read(window::HEADER_IMAGES + 8 * i + 4),
            frames: read(window::HEADER_FRAMES + 4 * i),
        };
        let told = || {
            [
                window::HEADER_CPUS,
                window::HEADER_IMAGE_COUNT,
                window::HEADER_IMAGE_CHANGES,
            ]
            .map(read)
        };
        assert_eq!(told(), [3, 2, 2]);
        assert_eq!(
            [image(0), image(1)],
            [listed(0x10_0000, 0x3000), listed(0x12_0000, 4096)]
        );

        let mut header = Header::new(window.base(), window::STUBS).expect("header");
        assert_eq!(told(), [3, 2, 2]);
        header.list(&[listed(0x20_0000, 8192)], 9);
        assert_eq!(told(), [3, 1, 9]);
        assert_eq!(image(0), listed(0x20_0000, 8192));
        let base = u64::from(read(window::HEADER_BASE)) | u64::from(read(window::HEADER_BASE + 4)) << 32;
        assert_eq!(base, window.base());
        assert_eq!(read(window::HEADER_ABI), ringfence_isa::ABI_VERSION);
        let features = read(window::HEADER_FEATURES);
        assert_eq!(features, host::check().expect("host").features);
        let words: [u32; 8] = std::array::from_fn(|i| read(window::HEADER_VECTOR_ROOM + 4 * i as u32));
        assert_eq!(words, vector_words(features));

        // More than there is room for are counted as far as they are listed.
        let many = vec![listed(1, 2); window::HEADER_IMAGES_MOST as usize + 5];
        header.list(&many, 10);
        assert_eq!(told(), [3, window::HEADER_IMAGES_MOST, 10]);
    }

    #[test]
    fn words_for_vectors_are_0_where_there_are_none() {
        assert_eq!(vector_words(!window::feature::AVX2), [0; 8]);
        let words = vector_words(window::feature::AVX2);
        assert_eq!(words, [4065, 3969, 64, 0, 128, 0, 256, 0]);
        let end = window::HEADER_VECTOR_SIZES + 3 * 8;
        assert!(
            end <= window::HEADER_IMAGES && window::HEADER_VECTOR_SIZES == window::HEADER_VECTOR_ROOM + 8
        );
    }

    #[test]
    fn nobody_can_write_it_where_the_domain_reads_it() {
        let window = Window::new(1, &[]).expect("window");
        let _header = Header::new(window.base(), window::STUBS).expect("header");
        let at = window.base() + u64::from(window::HEADER);
        let maps = std::fs::read_to_string("/proc/self/maps").expect("maps");
        let own = maps
            .lines()
            .find(|l| l.starts_with(&format!("{at:x}-")))
            .expect("the header's line");
        assert!(own.contains(" r--s "), "{own}");
    }

    #[test]
    fn after_a_fork_each_process_has_its_own() {
        let window = Window::new(1, &[listed(0x10_0000, 4096)]).expect("window");
        let mut header = Header::new(window.base(), window::STUBS).expect("header");
        let count = || {
            // SAFETY: the header is mapped readable while the window lives.
            unsafe {
                &*place(
                    window.base() + u64::from(window::HEADER),
                    window::HEADER_IMAGE_COUNT,
                )
            }
            .load(Ordering::Relaxed)
        };
        let before = header.at;
        arena::freeze();
        header.ready().expect("a file of its own");
        assert_ne!(header.at, before);
        header.list(&[], 5);
        assert_eq!(count(), 0);
        header.ready().expect("it has one already");
        header.list(&[listed(0x10_0000, 4096); 2], 6);
        assert_eq!(count(), 2);
    }
}
