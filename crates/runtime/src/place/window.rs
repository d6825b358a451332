//! Windows: 4 GiB of reserved address space each.

use crate::load::stubs;
use crate::os::lock::{Lock, Locked, Rank};
use crate::os::{backed, host, sys};
use crate::place::header::{self, Listed};
use ringfence_core::error::HostError;
use ringfence_isa::{window, words};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Where windows are looked for, in this order: above what sanitizers and the like claim and below where Linux puts programs (12,288);
/// between programs and libraries (6,400); and below the first (3,840). Windows in a row are adjacent, so that what is
/// inaccessible in one is one mapping with what is inaccessible in the next.
const ROWS: [(u64, u64); 3] = [
    (0x2000_0000_0000, 0x5000_0000_0000),
    (0x5700_0000_0000, 0x7000_0000_0000),
    (0x1100_0000_0000, 0x2000_0000_0000),
];

/// Inaccessible memory above every window: operands through `r14` reach into it ([`window::HELD_REACH`]). A masked vector move (`vmaskmovps` and kin) does not fault for elements
/// that are masked out, so one that starts in the last bytes of a window can touch what lies above although nothing is
/// mapped below. Between adjacent windows the upper one's null area serves.
const GUARD: u64 = window::NULL_END as u64;

/// Mappings that a window without lanes needs, images and what is inaccessible behind each of them not counted: the header.
/// What lies before them is one mapping with what is inaccessible in the window below, and counted there.
const MAPPINGS: u64 = 1;

/// Where windows of the words mode are looked for: each with as much again above it, where the view of its arena is.
const WIDE: (u64, u64) = (0x5000_0000_0000, 0x5400_0000_0000);

/// Windows in which a header waits for the next domain. It is a page, its tables of pages, and two mappings, which nobody counts: the
/// program's own share is larger by far.
const MOST_HEADERS: usize = 16;

static LIVE: AtomicUsize = AtomicUsize::new(0);

struct Pool {
    /// Which row, and where in it.
    row: usize,
    next: u64,
    /// Whether the guard at `next` is ours: that of the window below.
    guarded: bool,
    /// Windows that were given back. They stay reserved for ever: nobody else's memory may come to lie above another window.
    kept: Vec<u64>,
    /// Windows that were given back with their header: see [`Window::keep_header`]. [`MOST_HEADERS`] at most.
    headers: Vec<u64>,
    /// The next window with as much again above it, and those that were given back.
    next_wide: u64,
    kept_wide: Vec<u64>,
}

static POOL: Lock<Pool> = Lock::new(
    Rank::Windows,
    Pool {
        row: 0,
        next: ROWS[0].0,
        guarded: false,
        kept: Vec::new(),
        headers: Vec::new(),
        next_wide: WIDE.0,
        kept_wide: Vec::new(),
    },
);

/// A reserved window with the header in place and nothing else.
pub(crate) struct Window {
    base: u64,
    wide: bool,
    /// Whether its header stays when it is given back.
    keep: bool,
}

#[repr(align(4096))]
struct Page([u8; sys::PAGE]);

/// From the header to the first stub of windows with few imports: what is left of the header's mapping there.
const SHORT: u64 = header::LEN - stubs::LEAD as u64;

impl Window {
    /// `images` are what the header lists.
    pub(crate) fn new(processors: u32, images: &[Listed]) -> Result<Window, HostError> {
        let window = |base| Window {
            base,
            wide: false,
            keep: false,
        };
        if let Some(window) = take_with_header().map(window) {
            let header = (window.base + u64::from(window::HEADER)) as *mut Page;
            let mut wanted = Page([0; sys::PAGE]);
            // SAFETY: a page of our own; and a mapping of ours in a window that nobody uses yet.
            unsafe {
                header::fill((&raw mut wanted) as u64, window.base, processors, images)?;
                // The same modules as before, in the same window: there is nothing to write.
                if (*header).0 != wanted.0 {
                    sys::protect(header as u64, SHORT, libc::PROT_READ | libc::PROT_WRITE)?;
                    header.write(wanted);
                    sys::protect(header as u64, SHORT, libc::PROT_READ)?;
                }
            }
            return Ok(window);
        }
        Self::with_header(window(take()?), processors, images, false)
    }

    /// The window is given back with its header in place, if the pool has not too many such: the next domain there writes it anew, and
    /// saves a mapping, a page fault and the tables for it. The mapping is as it was made, but for stubs that begin in its last
    /// [`LEAD`](stubs::LEAD) bytes.
    pub(crate) fn keep_header(&mut self) {
        self.keep = !self.wide;
    }

    /// One of the words mode, of [`words::SIZE`]; `heap`: what its libc allocates are objects of the arena.
    pub(crate) fn wide(processors: u32, images: &[Listed], heap: bool) -> Result<Window, HostError> {
        host::take_mappings(MAPPINGS + WIDE_MAPPINGS)?;
        let base = reserve_wide().inspect_err(|_| host::give_mappings(MAPPINGS + WIDE_MAPPINGS))?;
        LIVE.fetch_add(1, Ordering::Relaxed);
        Self::with_header(
            Window {
                base,
                wide: true,
                keep: false,
            },
            processors,
            images,
            heap,
        )
    }

    fn with_header(
        window: Window,
        processors: u32,
        images: &[Listed],
        heap: bool,
    ) -> Result<Window, HostError> {
        let base = window.base;
        let header = base + u64::from(window::HEADER);
        // SAFETY: the whole window is our own reservation.
        unsafe {
            sys::map_anonymous(header, header::LEN, libc::PROT_READ | libc::PROT_WRITE, true)?;
            header::fill(header, base, processors, images)?;
            header::tell_heap(header, heap);
            sys::protect(header, header::LEN, libc::PROT_READ)?;
        }
        Ok(window)
    }

    pub(crate) fn base(&self) -> u64 {
        self.base
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        match self.wide {
            false if self.keep => give_back_with_header(self.base),
            false => give_back(self.base),
            true => give_back_wide(self.base),
        }
    }
}

/// The arena's view and table, and what is inaccessible before and behind them.
const WIDE_MAPPINGS: u64 = 5;

/// Reserves a window with as much again above it: all of it is inaccessible.
fn reserve_wide() -> Result<u64, HostError> {
    let mut pool = lock();
    if backed::base().is_some() {
        // A process of its own has one window, at one place.
        return Err(none());
    }
    if let Some(base) = pool.kept_wide.pop() {
        return Ok(base);
    }
    while pool.next_wide < WIDE.1 {
        let base = pool.next_wide;
        match reserve_at(base, words::SIZE) {
            Place::NoRoom => return Err(none()),
            Place::Locked => return Err(HostError::Locked),
            Place::Taken => pool.next_wide += words::SIZE,
            Place::Ours => {
                pool.next_wide += words::SIZE;
                remember(base);
                return Ok(base);
            }
        }
    }
    Err(none())
}

/// As [`give_back`], for one of the words mode.
fn give_back_wide(base: u64) {
    LIVE.fetch_sub(1, Ordering::Relaxed);
    host::give_mappings(MAPPINGS + WIDE_MAPPINGS);
    let mut pool = lock();
    // SAFETY: nobody is inside any more; the range is our own reservation, and stays one.
    if unsafe { sys::map_anonymous(base, words::SIZE, libc::PROT_NONE, true) }.is_ok() {
        pool.kept_wide.push(base);
    }
}

/// Empties a window that nobody uses any more, for the next domain.
pub(super) fn give_back(base: u64) {
    LIVE.fetch_sub(1, Ordering::Relaxed);
    host::give_mappings(MAPPINGS);
    let mut pool = lock();
    // SAFETY: nobody is inside any more; the range is our own reservation, and stays one.
    let emptied = unsafe { sys::map_anonymous(base, window::SIZE, libc::PROT_NONE, true) };
    // If that failed, there is still something of the old domain in it: it is not used again.
    if emptied.is_ok() && !backed::covers(base) {
        pool.kept.push(base);
    }
}

/// The same, but for the header, which nobody has been able to write.
fn give_back_with_header(base: u64) {
    if backed::covers(base) || lock().headers.len() >= MOST_HEADERS {
        return give_back(base);
    }
    LIVE.fetch_sub(1, Ordering::Relaxed);
    host::give_mappings(MAPPINGS);
    let behind = u64::from(window::HEADER) + SHORT;
    let mut pool = lock();
    // SAFETY: as above. In front of the header nothing is ever accessible.
    let emptied = unsafe { sys::map_anonymous(base + behind, window::SIZE - behind, libc::PROT_NONE, true) };
    if emptied.is_ok() {
        pool.headers.push(base);
    }
}

/// A window with a header, which is to be written.
fn take_with_header() -> Option<u64> {
    host::take_mappings(MAPPINGS).ok()?;
    let base = lock().headers.pop();
    match base {
        Some(_) => LIVE.fetch_add(1, Ordering::Relaxed),
        None => {
            host::give_mappings(MAPPINGS);
            return None;
        }
    };
    base
}

/// Takes a header away, and the window for any use.
fn without_header(pool: &mut Pool) -> Option<u64> {
    let base = pool.headers.pop()?;
    // SAFETY: a window that nobody uses.
    let emptied = unsafe { sys::map_anonymous(base, window::SIZE, libc::PROT_NONE, true) };
    emptied.ok().map(|_| base)
}

/// A bit for each 4 GiB of the 47-bit address space: whether they were ever a window of this runtime. They are for ever, since windows
/// stay reserved.
static WINDOWS: [AtomicU64; 1 << (47 - 32 - 6)] = [const { AtomicU64::new(0) }; 1 << (47 - 32 - 6)];

fn remember(base: u64) {
    let number = (base / window::SIZE) as usize;
    WINDOWS[number / 64].fetch_or(1 << (number % 64), Ordering::Relaxed);
}

/// Whether `base` is that of a window of this runtime, or was.
pub(crate) fn is_ours(base: u64) -> bool {
    let number = (base / window::SIZE) as usize;
    base.is_multiple_of(window::SIZE)
        && WINDOWS
            .get(number / 64)
            .is_some_and(|word| word.load(Ordering::Relaxed) >> (number % 64) & 1 != 0)
}

/// Whether the window at `base` is one of the words mode.
pub(crate) fn is_wide(base: u64) -> bool {
    (WIDE.0..WIDE.1).contains(&base) && is_ours(base)
}

/// The lock, held until what is returned goes: for `fork`.
pub(crate) fn hold() -> Box<dyn std::any::Any> {
    Box::new(lock())
}

fn lock() -> Locked<'static, Pool> {
    POOL.lock()
}

/// Reserves 4 GiB, aligned, inaccessible; [`give_back`] takes them.
pub(super) fn take() -> Result<u64, HostError> {
    host::take_mappings(MAPPINGS)?;
    let base = reserve().inspect_err(|_| host::give_mappings(MAPPINGS))?;
    LIVE.fetch_add(1, Ordering::Relaxed);
    Ok(base)
}

fn reserve() -> Result<u64, HostError> {
    let mut pool = lock();
    if let Some(base) = backed::base() {
        // There is one place, and one window.
        if is_ours(base) {
            return Err(none());
        }
        host::take_mappings(1)?;
        backed::reserve(base, GUARD)?;
        remember(base);
        return Ok(base);
    }
    if let Some(base) = pool.kept.pop().or_else(|| without_header(&mut pool)) {
        return Ok(base);
    }
    while let Some(&(_, end)) = ROWS.get(pool.row) {
        if pool.next == end {
            pool.row += 1;
            pool.next = ROWS.get(pool.row).map_or(0, |r| r.0);
            pool.guarded = false;
            continue;
        }
        let (base, adjacent) = (pool.next, pool.guarded);
        if !adjacent {
            // What is inaccessible below its header has no window below to be one mapping with.
            host::take_mappings(1)?;
        }
        let below = if adjacent { GUARD } else { 0 };
        let place = reserve_at(base + below, window::SIZE + GUARD - below);
        if place != Place::Ours && !adjacent {
            host::give_mappings(1);
        }
        match place {
            // For anybody, now: the place stays the next one.
            Place::NoRoom => return Err(none()),
            Place::Locked => return Err(HostError::Locked),
            Place::Ours | Place::Taken => {}
        }
        pool.next += window::SIZE;
        pool.guarded = place == Place::Ours;
        if pool.guarded {
            remember(base);
            return Ok(base);
        }
    }
    // Windows stay reserved for ever, and so does this.
    host::take_mappings(1)?;
    // Anywhere else: twice the size, cut down to the aligned half and its guard.
    // SAFETY: a fresh mapping at an address the kernel chooses, of which the ends are unmapped again.
    unsafe {
        let len = 2 * window::SIZE + GUARD;
        let Ok(at) = sys::map_anonymous(0, len, libc::PROT_NONE, false) else {
            host::give_mappings(1);
            return Err(none());
        };
        let base = at.next_multiple_of(window::SIZE);
        if base > at {
            libc::munmap(at as *mut _, (base - at) as usize);
        }
        let (end, got) = (base + window::SIZE + GUARD, at + len);
        if got > end {
            libc::munmap(end as *mut _, (got - end) as usize);
        }
        remember(base);
        Ok(base)
    }
}

fn none() -> HostError {
    HostError::NoWindow {
        live: LIVE.load(Ordering::Relaxed),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Ours,
    /// Something of somebody's is there.
    Taken,
    /// A limit on address space or mappings is reached.
    NoRoom,
    /// The process locks what it maps, and may not lock so much.
    Locked,
}

fn reserve_at(at: u64, len: u64) -> Place {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
    // The kernel itself is asked: a sanitizer's `mmap` forgets an address that is none of its program's, and maps at 0.
    // SAFETY: NOREPLACE takes nothing away from anybody; kernels that ignore it may choose another address,
    // which is given back.
    unsafe {
        let p = libc::syscall(libc::SYS_mmap, at, len, libc::PROT_NONE, flags, -1, 0u64);
        if p as u64 == at {
            return Place::Ours;
        }
        if p == -1 {
            let error = std::io::Error::last_os_error().raw_os_error();
            return match error {
                Some(libc::ENOMEM) => Place::NoRoom,
                Some(libc::EAGAIN) => Place::Locked,
                _ => Place::Taken,
            };
        }
        libc::syscall(libc::SYS_munmap, p, len);
    }
    Place::Taken
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether this process has a mapping of these bytes, all of them, that nobody may access.
    fn inaccessible(from: u64, to: u64) -> bool {
        let maps = std::fs::read_to_string("/proc/self/maps").expect("maps");
        let mut at = from;
        for line in maps.lines() {
            let (range, rest) = line.split_once(' ').expect("a range");
            let (start, end) = range.split_once('-').expect("two addresses");
            let [start, end] = [start, end].map(|n| u64::from_str_radix(n, 16).expect("an address"));
            if start <= at && at < end && rest.starts_with("---p") {
                at = end;
            }
        }
        at >= to
    }

    /// Operands through `r14`, and masked moves, reach above the window: [`window::HELD_REACH`].
    #[test]
    fn above_every_window_lies_what_nobody_can_access() {
        let guarded = |base: u64| {
            assert!(
                inaccessible(base, base + u64::from(window::NULL_END)),
                "null area of {base:#x}"
            );
            let end = base + window::SIZE;
            let top = base + u64::from(window::LANES_END);
            assert!(
                inaccessible(top, end + u64::from(window::NULL_END)),
                "above {base:#x}"
            );
        };
        let rows: Vec<Window> = (0..3).map(|_| Window::new(1, &[]).expect("window")).collect();
        rows.iter().for_each(|w| guarded(w.base()));
        // Where the kernel has room, once there is none in the rows.
        let (row, next) = {
            let mut pool = lock();
            let before = (std::mem::replace(&mut pool.row, ROWS.len()), pool.next);
            pool.kept.clear();
            before
        };
        let elsewhere = Window::new(1, &[]).expect("window");
        {
            let mut pool = lock();
            (pool.row, pool.next) = (row, next);
        }
        let base = elsewhere.base();
        assert!(rows.iter().all(|w| w.base() != base));
        guarded(base);
        // Given back, it stays reserved.
        drop(elsewhere);
        assert!(inaccessible(
            base,
            base + window::SIZE + u64::from(window::NULL_END)
        ));
        rows.iter().for_each(|w| guarded(w.base()));
    }

    fn page(window: &Window) -> &[u8] {
        let header = window.base() + u64::from(window::HEADER);
        // SAFETY: the header is mapped readable while the window lives.
        unsafe { std::slice::from_raw_parts(header as *const u8, sys::PAGE) }
    }

    #[test]
    fn a_header_that_stays_tells_the_next_domain_nothing_of_the_last() {
        let listed = |n: u32| Listed {
            offset: 0x10_0000 * (n + 1),
            len: 0x3000,
            frames: 0x10_0040 * (n + 1),
        };
        let many: Vec<Listed> = (0..8).map(listed).collect();
        // Those before may be other tests'.
        for _ in 0..2 * MOST_HEADERS {
            let mut last = Window::new(7, &many).expect("window");
            last.keep_header();
            let base = last.base();
            drop(last);
            let stayed = lock().headers.contains(&base);
            let mut same = Window::new(7, &many).expect("window");
            assert_eq!(page(&same)[..8], same.base().to_le_bytes());
            if stayed && same.base() == base {
                let seven = window::HEADER_CPUS - window::HEADER;
                assert_eq!(page(&same)[seven as usize..][..4], 7u32.to_le_bytes());
            }
            same.keep_header();
            drop(same);
            let next = Window::new(2, &many[..1]).expect("window");
            let fresh = Window::with_header(
                Window {
                    base: take().expect("window"),
                    wide: false,
                    keep: false,
                },
                2,
                &many[..1],
                false,
            )
            .expect("window");
            assert_eq!(page(&next)[..8], next.base().to_le_bytes());
            assert_eq!(page(&next)[8..], page(&fresh)[8..]);
            if stayed && next.base() == base {
                let header = base + u64::from(window::HEADER);
                assert!(inaccessible(base, header));
                assert!(inaccessible(header + SHORT, base + u64::from(window::LANES_END)));
            }
        }
    }

    #[test]
    fn few_headers_stay_and_their_windows_serve_for_anything() {
        let mut windows: Vec<Window> = (0..2 * MOST_HEADERS)
            .map(|_| Window::new(1, &[]).expect("window"))
            .collect();
        windows.iter_mut().for_each(Window::keep_header);
        drop(windows);
        let mut pool = lock();
        assert!(pool.headers.len() <= MOST_HEADERS);
        // No other test takes one meanwhile.
        let bases = pool.headers.clone();
        for _ in &bases {
            let base = without_header(&mut pool).expect("a window");
            assert!(inaccessible(
                base,
                base + window::SIZE + u64::from(window::NULL_END)
            ));
            pool.kept.push(base);
        }
        assert!(pool.headers.is_empty());
    }

    #[test]
    fn windows_are_aligned_and_know_their_bases() {
        let a = Window::new(3, &[]).expect("window");
        let b = Window::new(1, &[]).expect("window");
        assert_ne!(a.base(), b.base());
        assert_eq!(a.base() % window::SIZE, 0);
        for w in [a, b] {
            let header = (w.base() + u64::from(window::HEADER)) as *const u64;
            // SAFETY: the header is mapped readable while the window lives.
            assert_eq!(unsafe { header.read() }, w.base());
        }
    }
}
