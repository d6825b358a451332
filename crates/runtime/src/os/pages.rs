//! Which pages of a range hold something of their own: memory that was written since it was mapped.
//!
//! A private mapping shows its file, or zeroes, until a page is written; then the page is the mapping's own ("anonymous").
//! The kernel tells which pages are (`PAGEMAP_SCAN`, Linux 6.7), for about a microsecond. So a reset restores these pages
//! where they are, and neither it nor the next user pays for page faults. A page that was restored stays in the list: what is
//! told is more than what has changed, never less. Where the kernel cannot tell, pages are dropped, which is always right.

use crate::os::sys;
use ringfence_core::error::HostError;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// Areas with more pages of their own than this are dropped: domains that nobody uses would hold much memory.
pub(crate) const KEEP: usize = 64;

/// Ranges that one look may find; an area that is more scattered is dropped.
const RANGES: usize = 32;

/// What is not longer is zeroed without a look, which would take longer.
const SMALL: u64 = 2 * sys::PAGE as u64;

/// `struct page_region`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Found {
    start: u64,
    end: u64,
    categories: u64,
}

/// `struct pm_scan_arg`.
#[repr(C)]
#[derive(Default)]
struct Scan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

const FILE: u64 = 1 << 2;
const PRESENT: u64 = 1 << 3;
const SWAPPED: u64 = 1 << 4;
const ZERO_PAGE: u64 = 1 << 5;
/// `_IOWR('f', 16, struct pm_scan_arg)`
const PAGEMAP_SCAN: u64 = 3 << 30 | (size_of::<Scan>() as u64) << 16 | (b'f' as u64) << 8 | 16;

/// The word that tells the descriptor of the process's page tables: 0 if nobody has asked for it yet, else the descriptor + 1. It lies
/// in a page that the kernel empties in every forked child, in whatever way it is made: a child must not look at its parent's.
/// Null before the first look. No lock: a child may be made at any moment.
static TABLES: AtomicPtr<AtomicU64> = AtomicPtr::new(null_mut());

/// Stands for a descriptor that cannot be had.
const NONE: u64 = u64::MAX;

/// The word where no page can be had that the kernel empties.
static NEVER: AtomicU64 = AtomicU64::new(NONE);

/// Makes the word. Where it cannot be had, the next look tries again.
#[cold]
fn make_word() -> &'static AtomicU64 {
    let len = sys::PAGE;
    // SAFETY: a fresh mapping.
    let page = unsafe { sys::map_anonymous(0, len as u64, libc::PROT_READ | libc::PROT_WRITE, false) };
    let Ok(page) = page else { return &NEVER };
    let word = page as *mut AtomicU64;
    // SAFETY: the fresh page, all of it.
    let wiped = unsafe { libc::madvise(word.cast(), len, libc::MADV_WIPEONFORK) } == 0;
    let known = match wiped {
        true => TABLES.compare_exchange(null_mut(), word, Ordering::AcqRel, Ordering::Acquire),
        false => Err((&raw const NEVER).cast_mut()),
    };
    if known.is_err() {
        // Another thread was faster, or a child would see it.
        // SAFETY: the fresh page, of which nobody knows.
        unsafe { libc::munmap(word.cast(), len) };
    }
    // SAFETY: ours, another thread's, or the constant one: never unmapped.
    unsafe { &*known.err().unwrap_or(word) }
}

/// The word of this process.
fn word() -> &'static AtomicU64 {
    // SAFETY: null, or what `make_word` has made.
    unsafe { TABLES.load(Ordering::Acquire).as_ref() }.unwrap_or_else(|| make_word())
}

/// The descriptor for this process.
fn tables() -> Option<i32> {
    let word = word();
    let known = match word.load(Ordering::Acquire) {
        0 => open_tables(word),
        known => known,
    };
    (known != NONE).then(|| known as i32 - 1)
}

/// Opens the page tables, if that can be and is not done: a process that changes its user may not look at its own any more.
pub(crate) fn prepare() {
    let _ = tables();
}

#[cold]
fn open_tables(word: &AtomicU64) -> u64 {
    // SAFETY: a C string.
    let fd = unsafe { libc::open(c"/proc/self/pagemap".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    let new = u64::try_from(fd).map_or(NONE, |fd| fd + 1);
    match word.compare_exchange(0, new, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => new,
        Err(other) => {
            // Another thread was faster.
            // SAFETY: our own fresh descriptor, or -1, which is refused.
            unsafe { libc::close(fd) };
            other
        }
    }
}

/// A number that no ancestor of this process has had. `None` where no page can be had that the kernel empties in children.
pub(crate) fn process() -> Option<u64> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let word = word();
    if std::ptr::eq(word, &raw const NEVER) {
        return None;
    }
    // SAFETY: the page that the word begins has room for another.
    let number = unsafe { &*std::ptr::from_ref(word).add(1) };
    match number.load(Ordering::Acquire) {
        0 => {
            let new = NEXT.fetch_add(1, Ordering::Relaxed);
            let known = number.compare_exchange(0, new, Ordering::AcqRel, Ordering::Acquire);
            Some(known.err().unwrap_or(new))
        }
        known => Some(known),
    }
}

/// Ranges of whole pages, in order.
pub(crate) struct Ranges {
    found: [Found; RANGES],
    len: usize,
}

impl Ranges {
    /// None, and room.
    pub(crate) fn none() -> Ranges {
        Ranges {
            found: [Found::default(); RANGES],
            len: 0,
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.found[..self.len].iter().map(|f| (f.start, f.end))
    }

    /// Those that another one had.
    pub(crate) fn set(&mut self, ranges: &[(u64, u64)]) {
        self.len = 0;
        for (found, &(start, end)) in self.found.iter_mut().zip(ranges) {
            (found.start, found.end) = (start, end);
            self.len += 1;
        }
    }
}

/// The pages of `start..end` that are not as they were mapped, in `ranges`, if there are at most [`KEEP`] and the kernel can tell.
pub(crate) fn own(start: u64, end: u64, ranges: &mut Ranges) -> Option<&Ranges> {
    own_at_most(start, end, KEEP as u64, ranges)
}

/// The same, however many there are.
pub(crate) fn all_own(start: u64, end: u64, ranges: &mut Ranges) -> Option<&Ranges> {
    own_at_most(start, end, (end - start) / sys::PAGE as u64, ranges)
}

fn own_at_most(start: u64, end: u64, most: u64, ranges: &mut Ranges) -> Option<&Ranges> {
    // Nothing is a page's own where another process has it too.
    if crate::os::backed::covers(start) {
        return None;
    }
    let file = tables()?;
    let mut scan = Scan {
        size: size_of::<Scan>() as u64,
        start,
        end,
        vec: ranges.found.as_mut_ptr() as u64,
        vec_len: RANGES as u64,
        // One more than are kept: more tells that there are too many.
        max_pages: most + 1,
        category_inverted: FILE | ZERO_PAGE,
        category_mask: FILE | ZERO_PAGE,
        category_anyof_mask: PRESENT | SWAPPED,
        ..Scan::default()
    };
    // SAFETY: the structure and the array that it names are ours; a descriptor that is no page table refuses the request.
    let count = unsafe { libc::ioctl(file, PAGEMAP_SCAN, &raw mut scan) };
    let Ok(len) = usize::try_from(count) else {
        // An old kernel, or somebody closed our descriptor: this process does not ask again.
        word().store(NONE, Ordering::Release);
        return None;
    };
    ranges.len = len;
    let bytes: u64 = ranges.iter().map(|(start, end)| end - start).sum();
    (scan.walk_end == end && bytes <= most * sys::PAGE as u64).then_some(ranges)
}

/// Zeroes private anonymous memory that is kept, where it is if the kernel can tell which pages were written.
///
/// # Safety
/// The range is mapped writable, and nobody relies on the contents.
pub(crate) unsafe fn zero(start: u64, len: u64) -> Result<(), HostError> {
    // SAFETY: the caller's promise.
    unsafe { zero_own(start, len, |ranges| all_own(start, start + len, ranges)) }
}

/// The same, by whoever tells which pages are not as they were mapped.
///
/// # Safety
/// As [`zero`]; and as [`own`], what is told is more than what has changed, never less.
pub(crate) unsafe fn zero_own(
    start: u64,
    len: u64,
    own: impl FnOnce(&mut Ranges) -> Option<&Ranges>,
) -> Result<(), HostError> {
    if len <= SMALL && !crate::os::backed::covers(start) {
        // SAFETY: the caller's promise.
        unsafe { std::ptr::write_bytes(start as *mut u8, 0, len as usize) };
        return Ok(());
    }
    let mut ranges = Ranges::none();
    let Some(ranges) = own(&mut ranges) else {
        // SAFETY: the caller's promise.
        return unsafe { sys::drop_pages(start, len) };
    };
    for (start, end) in ranges.iter() {
        // SAFETY: pages in the caller's range.
        unsafe { std::ptr::write_bytes(start as *mut u8, 0, (end - start) as usize) };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::sys::PAGE;

    const RW: i32 = libc::PROT_READ | libc::PROT_WRITE;

    fn fresh(pages: usize) -> u64 {
        // SAFETY: a fresh mapping.
        unsafe { sys::map_anonymous(0, (pages * PAGE) as u64, RW, false) }.expect("memory")
    }

    fn write(at: u64, page: usize, value: u8) {
        // SAFETY: in a mapping of the test's own.
        unsafe { ((at as usize + page * PAGE) as *mut u8).write_volatile(value) };
    }

    fn read(at: u64, page: usize) -> u8 {
        // SAFETY: as above.
        unsafe { ((at as usize + page * PAGE) as *const u8).read_volatile() }
    }

    #[test]
    fn what_was_written_is_told_and_what_was_read_is_not() {
        let at = fresh(512);
        let end = at + 512 * PAGE as u64;
        let mut ranges = Ranges::none();
        let Some(none) = own(at, end, &mut ranges) else {
            // A kernel that cannot tell: `zero` drops, which the next test covers.
            return;
        };
        assert_eq!(none.iter().count(), 0);
        for page in [7, 8, 300] {
            write(at, page, 1);
        }
        assert_eq!(read(at, 100), 0);
        let page = |n: u64| at + n * PAGE as u64;
        let told: Vec<_> = own(at, end, &mut Ranges::none()).expect("few").iter().collect();
        assert_eq!(told, [(page(7), page(9)), (page(300), page(301))]);
        for n in 0..=KEEP {
            write(at, n, 1);
        }
        assert!(own(at, end, &mut Ranges::none()).is_none(), "too many");
    }

    #[test]
    fn copies_of_a_file_are_told_and_its_own_pages_are_not() {
        let file = sys::sealed_file(c"ringfence-test", 8 * PAGE as u64, |b| b.fill(7)).expect("file");
        let at = fresh(8);
        // SAFETY: over the test's own mapping.
        unsafe { sys::map_file(at, 8 * PAGE as u64, RW, std::os::fd::AsFd::as_fd(&file), 0) }
            .expect("mapped");
        assert_eq!(read(at, 2), 7);
        write(at, 5, 1);
        if let Some(told) = own(at, at + 8 * PAGE as u64, &mut Ranges::none()) {
            let page = at + 5 * PAGE as u64;
            assert_eq!(told.iter().collect::<Vec<_>>(), [(page, page + PAGE as u64)]);
        }
    }

    #[test]
    fn zeroing_leaves_nothing_few_pages_or_many() {
        for count in [1, 3, KEEP, KEEP + 1, 400] {
            let at = fresh(512);
            for page in 0..count {
                write(at, page * 511 / count, 0xEE);
            }
            // SAFETY: the test's own mapping.
            unsafe { zero(at, 512 * PAGE as u64) }.expect("zeroed");
            assert!((0..512).all(|page| read(at, page) == 0), "{count} pages");
        }
    }

    /// A forked child has page tables of its own; the parent's would not tell what the child wrote.
    #[test]
    fn a_child_looks_at_its_own_pages() {
        let at = fresh(4);
        let end = at + 4 * PAGE as u64;
        if own(at, end, &mut Ranges::none()).is_none() {
            return;
        }
        // SAFETY: the child only touches memory, asks the kernel, and leaves.
        let child = unsafe { libc::fork() };
        if child == 0 {
            write(at, 3, 1);
            let told =
                own(at, end, &mut Ranges::none()).is_none_or(|r| r.iter().eq([(end - PAGE as u64, end)]));
            // SAFETY: ends the child.
            unsafe { libc::_exit(i32::from(!told)) };
        }
        let mut status = 0;
        // SAFETY: waits for our own child.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!(status, 0);
        assert_eq!(own(at, end, &mut Ranges::none()).expect("few").iter().count(), 0);
    }
}
