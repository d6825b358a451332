//! What a reset leaves behind: nothing.

mod support;

use ringfence_runtime::{Domain, DomainError, DomainOptions, Syscall};
use std::collections::BTreeMap;
use support::{call, domain, domain_with, fault, module};

/// Pages with something in them, by offset.
type Pages = BTreeMap<u64, Vec<u8>>;
/// Start, end and rights of what can be read.
type Mapped = Vec<(u64, u64, String)>;

/// Everything of a window that can be read, by offset; and the rights.
fn contents(d: &Domain) -> (Pages, Mapped) {
    let base = d.as_ref().base();
    let maps = std::fs::read_to_string("/proc/self/maps").expect("maps");
    let (mut pages, mut rights) = (Pages::new(), Mapped::new());
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        let (range, mode) = (words.next().unwrap(), &words.next().unwrap()[..3]);
        let (start, end) = range.split_once('-').unwrap();
        let address = |s: &str| u64::from_str_radix(s, 16).unwrap();
        let (start, end) = (address(start), address(end));
        if start < base || end > base + (1 << 32) || mode == "---" {
            continue;
        }
        match rights.last_mut() {
            Some(last) if last.1 == start - base && last.2 == mode => last.1 = end - base,
            _ => rights.push((start - base, end - base, mode.into())),
        }
        for at in (start..end).step_by(4096) {
            let mut page = vec![0; 4096];
            d.as_ref().read(at, &mut page).expect("a readable page");
            if page.iter().any(|&b| b != 0) {
                pages.insert(at - base, page);
            }
        }
    }
    (pages, rights)
}

/// The same words, but for the upper halves of pointers into the own window.
fn same(a: &[u8], b: &[u8], bases: [u64; 2]) -> bool {
    let own = bases.map(|base| ((base >> 32) as u32).to_le_bytes());
    let mut words = a.chunks_exact(4).zip(b.chunks_exact(4));
    words.all(|(a, b)| a == b || (a == own[0] && b == own[1]))
}

fn assert_like_new(d: &Domain, what: &str) {
    let fresh = domain_with(&options());
    // Both have one lane and have been in it.
    for d in [d, &fresh] {
        call(d, "nothing", &[]).unwrap();
    }
    let (mut got, wanted) = (contents(d), contents(&fresh));
    // Of other threads' lanes only the thread block is not zero, and it is as in the first.
    let others: Vec<u64> = got.0.keys().copied().filter(|&at| at >= SECOND_LANE).collect();
    for at in others {
        let (page, first) = (got.0.remove(&at).unwrap(), &got.0[&(FIRST_LANE + at % BERTH)]);
        assert!(
            at % BERTH < 2 * 4096,
            "{what}: {at:#x} in a lane that nobody uses"
        );
        // The thread pointer and its copies differ by the slot's number.
        let differ = page.iter().zip(first).filter(|(a, b)| a != b).count();
        assert!(differ <= 4, "{what}: {differ} bytes at {at:#x}");
    }
    got.1.retain(|r| r.0 < SECOND_LANE);
    if let Some(last) = got.1.last_mut() {
        // The first lane's stack and the second's thread block are neighbours.
        last.1 = last.1.min(SECOND_LANE);
    }
    assert_eq!(got.1, wanted.1, "{what}: rights");
    assert!(wanted.0.len() > 3, "{} pages", wanted.0.len());
    assert_eq!(
        got.0.keys().collect::<Vec<_>>(),
        wanted.0.keys().collect::<Vec<_>>(),
        "{what}: pages with something in them"
    );
    let bases = [d, &fresh].map(|d| d.as_ref().base());
    for (at, page) in &wanted.0 {
        assert!(same(&got.0[at], page, bases), "{what}: at {at:#x}");
    }
}

const BERTH: u64 = 0x0100_0000;
const FIRST_LANE: u64 = 0xC000_0000;
const SECOND_LANE: u64 = FIRST_LANE + BERTH;

fn options() -> DomainOptions {
    let mut options = DomainOptions::default();
    options.data_stack = 1 << 20;
    options
}

/// A memory call of the domain's.
fn memory(d: &Domain, number: i64, args: [u64; 6]) -> u64 {
    let call = Syscall {
        number: number as u64,
        args,
    };
    d.as_ref().memory_call(&call).expect("a call on memory") as u64
}

const ANONYMOUS: u64 = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;

fn map(d: &Domain, len: u64) -> u64 {
    memory(d, libc::SYS_mmap, [0, len, 3, ANONYMOUS, u64::MAX, 0])
}

/// Writes `pages` pages of data, heap, break and stack, and the thread's variables.
fn soil(d: &Domain, pages: u64) {
    let dirt = vec![0xD1u8; 4096];
    let break_at = memory(d, libc::SYS_brk, [0; 6]);
    assert_eq!(
        memory(d, libc::SYS_brk, [break_at + pages * 4096, 0, 0, 0, 0, 0]),
        break_at + pages * 4096
    );
    let mapped = map(d, pages * 4096);
    let given = d.as_ref().alloc(pages * 4096, 16).unwrap();
    for area in [break_at, mapped, given] {
        for page in 0..pages {
            d.as_ref().write(area + page * 4096, &dirt).unwrap();
        }
    }
    for _ in 0..3 {
        call(d, "increment", &[]).unwrap();
        call(d, "thread_local_next", &[]).unwrap();
    }
    for i in 0..1024 {
        call(d, "next_zeroed", &[i]).unwrap();
    }
    call(d, "recurse", &[pages]).unwrap();
    let stack = call(d, "stack_address", &[]).unwrap();
    d.as_ref().write((stack - 100 * 4096) & !4095, &dirt).unwrap();
}

#[test]
fn a_window_is_like_new_after_a_reset() {
    let d = domain_with(&options());
    for pages in [1, 16, 60, 64, 65, 200] {
        soil(&d, pages);
        d.reset().unwrap();
        assert_like_new(&d, &format!("{pages} pages of each"));
    }
    // Again with memory that the reset before has kept: it is handed out zeroed.
    soil(&d, 16);
    d.reset().unwrap();
    let (at, mut page) = (map(&d, 16 * 4096), vec![1u8; 16 * 4096]);
    d.as_ref().read(at, &mut page).unwrap();
    assert!(page.iter().all(|&b| b == 0));
    let at = d.as_ref().alloc(16 * 4096, 16).unwrap();
    page.fill(1);
    d.as_ref().read(at, &mut page).unwrap();
    assert!(page.iter().all(|&b| b == 0));
}

#[test]
fn what_a_domain_hid_before_the_reset_is_gone() {
    let d = domain_with(&options());
    // Written, then made inaccessible or read-only; written, then given back and mapped again.
    for rights in [0, 1] {
        let at = map(&d, 8 * 4096);
        d.as_ref().write(at, &[0xD1; 8 * 4096]).unwrap();
        assert_eq!(memory(&d, libc::SYS_mprotect, [at, 8 * 4096, rights, 0, 0, 0]), 0);
        let other = map(&d, 8 * 4096);
        d.as_ref().write(other, &[0xD1; 8 * 4096]).unwrap();
        assert_eq!(memory(&d, libc::SYS_munmap, [other + 4096, 4096, 0, 0, 0, 0]), 0);
        d.reset().unwrap();
        assert_like_new(&d, "hidden");
        let again = map(&d, 64 * 4096);
        let mut all = vec![1u8; 64 * 4096];
        d.as_ref().read(again, &mut all).unwrap();
        assert!(all.iter().all(|&b| b == 0), "old memory shows through");
    }
    // More pieces than are cleared one by one.
    let many: Vec<u64> = (0..40).map(|_| map(&d, 4096)).collect();
    for (i, &at) in many.iter().enumerate() {
        d.as_ref().write(at, &[0xD1; 4096]).unwrap();
        if i % 2 == 0 {
            assert_eq!(memory(&d, libc::SYS_munmap, [at, 4096, 0, 0, 0, 0]), 0);
        }
    }
    d.reset().unwrap();
    assert_like_new(&d, "scattered");
}

#[test]
fn a_fault_and_an_endless_recursion_leave_nothing() {
    let d = domain_with(&options());
    soil(&d, 4);
    fault(&d, "divide", &[1, 0]);
    d.reset().unwrap();
    assert_like_new(&d, "fault");
    soil(&d, 4);
    fault(&d, "deep", &[0]);
    d.reset().unwrap();
    assert_like_new(&d, "data stack used up");
    // Another thread's lane, given back and used again.
    std::thread::scope(|s| {
        s.spawn(|| soil(&d, 4));
    });
    d.reset().unwrap();
    call(&d, "nothing", &[]).unwrap();
    std::thread::scope(|s| {
        s.spawn(|| {
            assert_eq!(call(&d, "thread_local_next", &[]).unwrap(), 7);
            let stack = call(&d, "stack_address", &[]).unwrap();
            let mut below = vec![1u8; 64 * 4096];
            d.as_ref().read((stack & !4095) - 64 * 4096, &mut below).unwrap();
            assert!(below.iter().all(|&b| b == 0));
        });
    });
}

/// Instances of one module that were not used yet share what they do not write, and a reset gives nothing of one to another.
#[test]
fn many_domains_are_reset_side_by_side() {
    let all: Vec<Domain> = (0..8).map(|_| domain_with(&options())).collect();
    std::thread::scope(|s| {
        for (i, d) in all.iter().enumerate() {
            s.spawn(move || {
                for round in 0..20 {
                    soil(d, 1 + (i as u64 * 7 + round) % 70);
                    d.reset().unwrap();
                }
            });
        }
    });
    for d in &all {
        assert_like_new(d, "side by side");
    }
    assert_eq!(module().name(), "basic.rf");
    drop(domain());
}

/// Each reset finds one page more than the one before, wherever it is, and in between those that find nothing new.
#[test]
fn a_page_more_at_each_reset_is_found() {
    support::in_child("a_page_more_at_each_reset_is_found", || {
        for checkpoint in [false, true] {
            let d = domain_with(&options());
            let stack = call(&d, "stack_address", &[]).unwrap() & !4095;
            let written = module();
            let data = written.segments().last().expect("data");
            let image = d.as_ref().base() + u64::from(ringfence_isa::window::IMAGES);
            let data = (image + u64::from(data.offset + data.len) - 1) & !4095;
            let heap = map(&d, 32 * 4096);
            if checkpoint {
                d.as_ref().write(heap, &[1; 32 * 4096]).unwrap();
                d.checkpoint().unwrap();
            }
            let read = |at: u64| {
                let mut page = vec![0; 4096];
                d.as_ref().read(at, &mut page).unwrap();
                page
            };
            for page in 0..32 {
                let mut places = vec![stack - (1 + page) * 4096];
                if page == 7 {
                    places.push(data);
                }
                if checkpoint {
                    places.push(heap + page * 4096);
                }
                for at in places {
                    let before = read(at);
                    for _ in 0..4 {
                        d.as_ref().write(at, &[0xD1; 4096]).unwrap();
                        d.reset().unwrap();
                        assert!(read(at) == before, "page {page} at {at:#x}");
                        d.reset().unwrap();
                        assert!(read(at) == before, "page {page} at {at:#x}, again");
                    }
                }
            }
        }
    });
}

/// While a call is in progress a reset says so, and that is all: the call comes back.
#[test]
fn a_refused_reset_leaves_calls_alone() {
    let imports = support::imports().closure("host_add", |f| {
        (0..100).for_each(|_| std::hint::spin_loop());
        f.result[0] = f.ints[0] + f.ints[1];
        Ok(())
    });
    let d = Domain::new(&[module()], imports, &DomainOptions::default()).unwrap();
    call(&d, "call_out", &[1, 2]).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let (mut refused, mut done) = (0, 0);
    std::thread::scope(|s| {
        let caller = s.spawn(|| {
            for n in 0..50_000 {
                let result = call(&d, "call_out", &[n, 2]);
                assert!(matches!(result, Ok(sum) if sum == n + 3), "call {n}: {result:?}");
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        while !stop.load(std::sync::atomic::Ordering::Relaxed) && !caller.is_finished() {
            match d.reset() {
                Ok(()) => done += 1,
                Err(DomainError::Busy { .. }) => refused += 1,
                Err(e) => panic!("{e}"),
            }
        }
    });
    assert!(refused > 0 && done > 0, "{refused} refused, {done} done");
    assert!(!d.faulted());
}

/// A kernel that does not tell which pages were written: all of them are dropped.
fn untold(asked_before: bool) {
    let d = domain_with(&options());
    if asked_before {
        soil(&d, 3);
        d.reset().unwrap();
    }
    support::refuse::calls(&[libc::SYS_ioctl]);
    for pages in [1, 16, 64, 200] {
        soil(&d, pages);
        d.reset().unwrap();
        assert_like_new(&d, &format!("{pages} pages of each"));
    }
}

#[test]
fn a_window_is_like_new_where_the_kernel_tells_no_more() {
    support::in_child("a_window_is_like_new_where_the_kernel_tells_no_more", || {
        untold(true);
    });
}

#[test]
fn a_window_is_like_new_where_the_kernel_never_told() {
    support::in_child("a_window_is_like_new_where_the_kernel_never_told", || {
        untold(false);
    });
}
