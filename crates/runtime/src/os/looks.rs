//! What was found when a domain's areas were looked at last, as long as it holds.
//!
//! A page becomes a mapping's own by a page fault. The kernel counts those of a process, whoever of its threads has them, and where it
//! writes for a thread as well. While the count is what it was before the last look ([`pages::own`]), no page has become anything's
//! own since, and that look's answer is still right: it may name more than was written, never less. So a reset asks for the count once
//! instead of looking at each area.
//!
//! One thing makes pages a mapping's own without a fault: the kernel collapses anonymous pages, and those between that nobody has
//! touched, into a huge one. So what is looked at here is a file's, which it does not collapse so, or [never huge](never_huge).

use crate::os::pages::{self, Ranges};
use crate::os::{backed, sys};
use ringfence_core::error::HostError;
use std::time::{Duration, Instant};

/// After counts that did not help, so many resets go without at most. Faults of others make each of them ask in vain, and where there
/// are a hundred threads and more, counting takes longer than looking.
const MOST_PAUSES: u32 = 31;

/// Page faults of a process until some moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Count {
    /// A forked child counts from 0 again.
    process: u64,
    faults: i64,
}

impl Count {
    fn now() -> Option<Count> {
        let process = pages::process()?;
        // SAFETY: all-zero is a value of the type, and the kernel fills what is ours.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            (libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) == 0).then_some(usage)
        }?;
        let faults = usage.ru_minflt + usage.ru_majflt;
        // Without any this program would not run: whoever stands in for the kernel does not count.
        (faults > 0).then_some(Count { process, faults })
    }
}

/// An area, and what a look found there.
struct Area {
    start: u64,
    end: u64,
    /// Before the look, or later with nothing between.
    count: Count,
    found: Box<[(u64, u64)]>,
}

/// Looks at a domain's areas, from one reset to the next.
#[derive(Default)]
pub(crate) struct Looks {
    /// When the reset at hand began, if that was asked.
    now: Option<Count>,
    /// How many resets go without a count, and how many did the last time.
    pauses: u32,
    paused: u32,
    /// How long the last looks took, those of one reset together; and those of the reset at hand.
    took: Duration,
    taking: Duration,
    /// By their start.
    areas: Vec<Area>,
}

impl Looks {
    /// A reset begins, and nobody is in the domain until it ends.
    pub(crate) fn begin(&mut self) {
        let before = self.now.take();
        match std::mem::take(&mut self.taking) {
            Duration::ZERO => {}
            took => self.took = took,
        }
        if self.pauses > 0 {
            self.pauses -= 1;
            return;
        }
        let begin = Instant::now();
        self.now = Count::now();
        let dear = begin.elapsed() > self.took && self.took > Duration::ZERO;
        if dear || self.now.is_none() || before.is_some() && before != self.now {
            self.paused = (2 * self.paused + 1).min(MOST_PAUSES);
            self.pauses = self.paused;
        } else if before.is_some() {
            self.paused = 0;
        }
    }

    /// As [`pages::own`], for an area that only a domain of this process writes, and that nothing collapses.
    pub(crate) fn own<'r>(&mut self, start: u64, end: u64, ranges: &'r mut Ranges) -> Option<&'r Ranges> {
        let Some(count) = self.now else {
            return pages::own(start, end, ranges);
        };
        let at = self.areas.partition_point(|area| area.start < start);
        let known = self.areas.get(at).is_some_and(|area| area.start == start);
        if known && self.areas[at].end == end && self.areas[at].count == count {
            ranges.set(&self.areas[at].found);
            return Some(ranges);
        }
        let begin = Instant::now();
        let own = pages::own(start, end, ranges);
        self.taking += begin.elapsed();
        if known {
            self.areas.remove(at);
        }
        if let Some(own) = own {
            let found = own.iter().collect();
            let area = Area {
                start,
                end,
                count,
                found,
            };
            self.areas.insert(at, area);
        }
        own
    }

    /// As [`pages::zero`], for such an area.
    ///
    /// # Safety
    /// The same.
    pub(crate) unsafe fn zero(&mut self, start: u64, len: u64) -> Result<(), HostError> {
        // SAFETY: the caller's promise.
        unsafe { pages::zero_own(start, len, |ranges| self.own(start, start + len, ranges)) }
    }

    /// Areas were mapped anew.
    pub(crate) fn forget(&mut self) {
        self.areas.clear();
    }
}

/// Keeps the kernel from collapsing what is mapped in a range, now and with what is mapped there with the same rights later.
///
/// # Safety
/// The range is mapped, and the caller's.
pub(crate) unsafe fn never_huge(at: u64, len: u64) -> Result<(), HostError> {
    if backed::covers(at) {
        return Ok(());
    }
    // SAFETY: the caller's promise.
    unsafe { sys::never_huge(at, len) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::sys::PAGE;
    use std::os::fd::AsFd;

    const RW: i32 = libc::PROT_READ | libc::PROT_WRITE;
    const PAGES: usize = 64;
    const NAME: &str = "RINGFENCE_TEST_LOOKS";

    /// Runs a test's body in a process of its own: no other test's faults are counted there.
    fn alone(name: &str, body: impl FnOnce()) {
        if std::env::var_os(NAME).is_some() {
            return body();
        }
        let out = std::process::Command::new(std::env::current_exe().expect("own path"))
            .args(["--exact", &format!("os::looks::tests::{name}"), "--nocapture"])
            .env(NAME, "1")
            .output()
            .expect("own process");
        let text = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{:?}\n{text}", out.status);
    }

    /// An area that is a file's, or anonymous; 0 in all its bytes.
    fn area(file: bool) -> (u64, u64) {
        let len = (PAGES * PAGE) as u64;
        // SAFETY: a fresh mapping.
        let at = unsafe { sys::map_anonymous(0, len, RW, false) }.expect("memory");
        // SAFETY: the test's own mapping.
        unsafe { never_huge(at, len) }.expect("advice");
        if file {
            let file = sys::sealed_file(c"ringfence-test", len, |_| {}).expect("file");
            // SAFETY: as above.
            unsafe { sys::map_file(at, len, RW, file.as_fd(), 0) }.expect("mapped");
        }
        (at, at + len)
    }

    fn write(at: u64, page: usize) {
        // SAFETY: in a mapping of the test's own.
        unsafe { ((at as usize + page * PAGE) as *mut u8).write_volatile(1) };
    }

    /// What is found at a reset's begin, as numbers of pages; and whether the kernel was asked.
    fn look(looks: &mut Looks, (start, end): (u64, u64)) -> (Vec<u64>, bool) {
        looks.begin();
        let count = looks.areas.first().map(|area| area.count);
        let asked = count.is_none() || count != looks.now;
        let mut ranges = Ranges::none();
        let own = looks.own(start, end, &mut ranges).expect("few");
        let page = |(from, to)| (from - start) / PAGE as u64..(to - start) / PAGE as u64;
        (own.iter().flat_map(page).collect(), asked)
    }

    fn kernel_tells() -> bool {
        let (start, end) = area(false);
        pages::own(start, end, &mut Ranges::none()).is_some() && Count::now().is_some()
    }

    #[test]
    fn a_page_that_was_written_again_is_told_without_asking() {
        alone("a_page_that_was_written_again_is_told_without_asking", || {
            if !kernel_tells() {
                return;
            }
            for file in [false, true] {
                let (place, mut looks) = (area(file), Looks::default());
                // The first makes the list of areas, and what it finds on its way may be new to the process.
                let mut in_vain = 0;
                for _ in 0..100 {
                    write(place.0, 3);
                    // Whatever the clock said of the last count.
                    looks.pauses = 0;
                    let (found, asked) = look(&mut looks, place);
                    assert_eq!(found, [3]);
                    in_vain += u32::from(asked);
                }
                assert!(in_vain < 10, "asked {in_vain} times of 100");
            }
        });
    }

    /// Each way in which a page comes to be a mapping's own is counted: by threads, and by the kernel for them.
    #[test]
    fn a_page_that_somebody_wrote_first_is_always_told() {
        alone("a_page_that_somebody_wrote_first_is_always_told", || {
            if !kernel_tells() {
                return;
            }
            let ways: [fn(u64); 5] = [
                |at| write(at, 0),
                |at| std::thread::scope(|s| s.spawn(move || write(at, 0)).join().expect("thread")),
                |at| {
                    let file = std::fs::File::open("/dev/zero").expect("zeroes");
                    // SAFETY: a page of the test's own.
                    let n = unsafe { libc::read(std::os::fd::AsRawFd::as_raw_fd(&file), at as *mut _, 1) };
                    assert_eq!(n, 1);
                },
                |at| {
                    let one = 1u8;
                    let iov = |base| libc::iovec {
                        iov_base: base,
                        iov_len: 1,
                    };
                    let (from, to) = (iov((&raw const one).cast_mut().cast()), iov(at as *mut _));
                    // SAFETY: this very process, and its own memory.
                    let n = unsafe {
                        libc::process_vm_writev(libc::getpid(), &raw const from, 1, &raw const to, 1, 0)
                    };
                    assert_eq!(n, 1);
                },
                // Read first: a page of zeroes, or the file's, stands there until it is written.
                |at| {
                    // SAFETY: as above.
                    unsafe { (at as *const u8).read_volatile() };
                    write(at, 0);
                },
            ];
            for file in [false, true] {
                for (number, way) in ways.iter().enumerate() {
                    let (place, mut looks) = (area(file), Looks::default());
                    let mut wanted = Vec::new();
                    for page in 0..PAGES as u64 {
                        let (found, _) = look(&mut looks, place);
                        assert_eq!(found, wanted, "way {number}, a file: {file}");
                        way(place.0 + page * PAGE as u64);
                        wanted.push(page);
                        // No pause, so that each reset relies on the count.
                        looks.pauses = 0;
                        looks.paused = 0;
                    }
                }
            }
        });
    }

    #[test]
    fn a_child_does_not_take_its_parents_count() {
        alone("a_child_does_not_take_its_parents_count", || {
            if !kernel_tells() {
                return;
            }
            let (place, mut looks) = (area(false), Looks::default());
            look(&mut looks, place);
            // SAFETY: the child only touches memory, asks the kernel, and leaves.
            let child = unsafe { libc::fork() };
            if child == 0 {
                let page = place.0 + 5 * PAGE as u64;
                write(page, 0);
                looks.begin();
                // As if the child had had as many faults by now as its parent then.
                let faults = looks.now.map_or(0, |now| now.faults);
                looks.areas.iter_mut().for_each(|area| area.count.faults = faults);
                let mut ranges = Ranges::none();
                let own = looks.own(place.0, place.1, &mut ranges).expect("few");
                let told = own.iter().eq([(page, page + PAGE as u64)]);
                // SAFETY: ends the child.
                unsafe { libc::_exit(i32::from(!told)) };
            }
            let mut status = 0;
            // SAFETY: waits for our own child.
            unsafe { libc::waitpid(child, &raw mut status, 0) };
            assert_eq!(status, 0);
        });
    }

    /// Somebody else's faults cost a look each time, so after some resets nobody asks for the count.
    #[test]
    fn counts_that_do_not_help_become_rare() {
        let (place, mut looks) = (area(false), Looks::default());
        let mut counts = 0;
        for page in 0..320 {
            write(place.0, page % PAGES);
            // SAFETY: the test's own mapping.
            unsafe { sys::drop_pages(place.0, PAGE as u64) }.expect("dropped");
            write(place.0, 0);
            looks.begin();
            counts += u32::from(looks.now.is_some());
        }
        assert!(counts < 40, "{counts} of 320");
    }
}
