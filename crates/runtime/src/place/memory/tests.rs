//! The heap in a real window.

use super::*;
use crate::os::guarded;
use crate::place::window::Window;
use ringfence_core::FileMap;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

const RW: Protection = Protection(libc::PROT_READ | libc::PROT_WRITE);

fn readable(at: u64) -> bool {
    let mut byte = 0u8;
    crate::lanes::signal::thread_ready();
    // SAFETY: in our window; a fault becomes a result.
    unsafe { guarded::copy(&raw mut byte, at as *const u8, 1) == 0 }
}

/// Random calls, compared with a table of pages.
#[test]
fn maps_agree_with_a_table_of_pages() {
    crate::lanes::signal::install().expect("handlers");
    let window = Window::new(1, &[]).expect("window");
    let base = window.base();
    let mut memory = Memory::new(base, 64 * PAGE, 0);
    let first = 0x8000_0000u32;
    let mut table = [None::<Protection>; 48];
    let file = sys::memory_file(c"ringfence-test", 48 * PAGE)
        .map(std::fs::File::from)
        .expect("file");
    file.write_all_at(&[7; 48 * PAGE as usize], 0).expect("written");
    let mut seed = 0x2545_F491_4F6C_DD1Du64;
    let mut random = |n: u32| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % u64::from(n)) as u32
    };
    for round in 0..3000 {
        let start = random(48);
        let count = 1 + random(48 - start).min(7);
        let (at, len) = (first + start * PAGE as u32, u64::from(count) * PAGE);
        let pages = start as usize..(start + count) as usize;
        let rights = [RW, Protection(libc::PROT_READ), Protection(libc::PROT_NONE)][random(3) as usize];
        match random(5) {
            4 => {
                let map = FileMap {
                    file: file.as_fd(),
                    offset: u64::from(start) * PAGE,
                    len,
                    address: at.into(),
                    rights: rights.0,
                    flags: libc::MAP_FIXED,
                    writable: true,
                };
                assert_eq!(memory.map_file(&map).expect("under the limit"), at);
                table[pages].fill(Some(rights));
            }
            0 => {
                assert_eq!(memory.map(Some(at), len, rights).expect("under the limit"), at);
                table[pages].fill(Some(rights));
            }
            1 => {
                memory.unmap(at, len).expect("inside");
                table[pages].fill(None);
            }
            2 => {
                let whole = table[pages.clone()].iter().all(Option::is_some);
                assert_eq!(memory.protect(at, len, rights).is_ok(), whole);
                if whole {
                    table[pages].fill(Some(rights));
                }
            }
            _ => assert_eq!(memory.is_free(at, len), table[pages].iter().all(Option::is_none)),
        }
        let mapped = table.iter().flatten().count() as u64;
        assert_eq!(memory.used(), mapped * PAGE, "round {round}");
        let page = random(48) as usize;
        let expected = table[page].is_some_and(|r| r.0 & libc::PROT_READ != 0);
        assert_eq!(
            readable(base + u64::from(first) + page as u64 * PAGE),
            expected,
            "round {round}"
        );
    }
    assert!(memory.has_files(), "there is something to take away");
    memory.clear().expect("clear");
    assert_eq!(memory.used(), 0);
    let mut bytes = vec![0; 48 * PAGE as usize];
    file.read_exact_at(&mut bytes, 0).expect("read");
    assert!(bytes.iter().all(|&b| b == 7), "nobody has written to the file");
    assert!((0..48).all(|page| !readable(base + u64::from(first) + page * PAGE)));
}

#[test]
fn the_limit_holds_and_nothing_leaves_the_heap() {
    let window = Window::new(1, &[]).expect("window");
    let mut memory = Memory::new(window.base(), 16 * PAGE, 0);
    assert!(memory.map(None, 17 * PAGE, RW).is_err());
    let at = memory.map(None, 16 * PAGE, RW).expect("fits");
    assert!(memory.map(None, 1, RW).is_err());
    assert!(memory.alloc(1, 16).is_err());
    // In place of what is there, nothing more is used.
    memory.map(Some(at), 4 * PAGE, RW).expect("replaces");
    memory.unmap(at, PAGE).expect("inside");
    let (block, fresh) = memory.alloc(100, 16).expect("one page is left");
    assert!(fresh);
    assert!(memory.free(block).is_some() && memory.free(block).is_none());
    for bad in [
        0,
        window::STUBS,
        window::IMAGES,
        window::HEAP - PAGE as u32,
        window::LANES,
    ] {
        assert!(memory.map(Some(bad), PAGE, RW).is_err(), "{bad:#x}");
        assert!(memory.unmap(bad, PAGE).is_err(), "{bad:#x}");
        assert!(memory.protect(bad, PAGE, RW).is_err(), "{bad:#x}");
    }
    assert!(
        memory
            .map(Some(window::LANES - PAGE as u32), 2 * PAGE, RW)
            .is_err()
    );
    assert!(memory.unmap(at, u64::MAX).is_err());
}

#[test]
fn the_break_moves_both_ways() {
    let window = Window::new(1, &[]).expect("window");
    let mut memory = Memory::new(window.base(), 1 << 20, 0);
    let start = memory.set_break(0);
    assert_eq!(start, window::HEAP);
    assert_eq!(memory.set_break(start + 10_000), start + 10_000);
    assert_eq!(memory.used(), 3 * PAGE);
    assert_eq!(memory.set_break(start + (2 << 20)), start + 10_000);
    assert_eq!(memory.set_break(start + 1), start + 1);
    assert_eq!(memory.used(), PAGE);
    assert_eq!(memory.set_break(start), start);
    assert_eq!(memory.used(), 0);
}

#[test]
fn allocations_do_not_overlap() {
    let window = Window::new(1, &[]).expect("window");
    let mut memory = Memory::new(window.base(), 8 << 20, 0);
    let mut live: Vec<(u32, u32)> = Vec::new();
    for i in 0..2000u32 {
        let (len, align) = (1 + i * 37 % 3000, 1 << (i % 12));
        let (at, _) = memory.alloc(len.into(), u64::from(align)).expect("room");
        assert_eq!(at % align, 0);
        assert!(live.iter().all(|&(a, l)| at + len <= a || a + l <= at));
        live.push((at, len));
        if i % 3 != 0 {
            let (at, _) = live.swap_remove((i as usize * 7) % live.len());
            assert!(memory.free(at).is_some());
        }
    }
}

fn byte(at: u64) -> Option<u8> {
    let mut byte = 0u8;
    crate::lanes::signal::thread_ready();
    // SAFETY: in our window; a fault becomes a result.
    (unsafe { guarded::copy(&raw mut byte, at as *const u8, 1) } == 0).then_some(byte)
}

fn put(at: u64, value: u8) -> bool {
    crate::lanes::signal::thread_ready();
    // SAFETY: as above.
    unsafe { guarded::copy(at as *mut u8, &raw const value, 1) == 0 }
}

/// One user of a pool after the other, who maps, writes where it may and where it may not, and goes.
#[test]
fn the_next_user_finds_zeroes_within_its_limit() {
    crate::lanes::signal::install().expect("handlers");
    const LIMIT: u64 = 40;
    const AREA: u32 = 48;
    let window = Window::new(1, &[]).expect("window");
    let base = window.base();
    let mut memory = Memory::new(base, LIMIT * PAGE, 0);
    let first = 0x8000_0000u32;
    let at = |page: u32| base + u64::from(first) + u64::from(page) * PAGE;
    let mut seed = 0x9E37_79B9_7F4A_7C15u64;
    let mut random = |n: u32| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % u64::from(n)) as u32
    };
    let mut kept_before = 0;
    for user in 0..600 {
        let mut table = [None::<Protection>; AREA as usize];
        for page in 0..AREA {
            assert_eq!(
                byte(at(page)).unwrap_or(0),
                0,
                "user {user}, page {page}: the last one's"
            );
        }
        for _ in 0..random(12) {
            let start = random(AREA);
            let count = 1 + random((AREA - start).min(9));
            let (offset, len) = (first + start * PAGE as u32, u64::from(count) * PAGE);
            let pages = start as usize..(start + count) as usize;
            let rights = [
                RW,
                RW,
                RW,
                Protection(libc::PROT_READ),
                Protection(libc::PROT_NONE),
            ][random(5) as usize];
            match random(5) {
                0..=2 => {
                    let free = table[pages.clone()].iter().filter(|p| p.is_none()).count() as u64;
                    let fits = memory.used() + free * PAGE <= LIMIT * PAGE;
                    assert_eq!(memory.map(Some(offset), len, rights).is_ok(), fits, "user {user}");
                    if fits {
                        table[pages].fill(Some(rights));
                        for page in start..start + count {
                            let seen = byte(at(page));
                            assert_eq!(
                                seen,
                                (rights.0 & libc::PROT_READ != 0).then_some(0),
                                "mapped memory is zero"
                            );
                        }
                    }
                }
                3 => {
                    memory.unmap(offset, len).expect("inside");
                    table[pages.clone()].fill(None);
                    for page in start..start + count {
                        assert_eq!(byte(at(page)), None, "user {user}: unmapped is inaccessible");
                    }
                }
                _ if table[pages.clone()].iter().all(Option::is_some) => {
                    memory.protect(offset, len, rights).expect("mapped");
                    table[pages].fill(Some(rights));
                }
                _ => {}
            }
            let mapped = table.iter().flatten().count() as u64;
            assert_eq!(memory.used(), mapped * PAGE);
            // A domain writes wherever it can, whether it has asked or not.
            let accessible = (0..AREA).filter(|&page| byte(at(page)).is_some()).count() as u64;
            let hidden = table.iter().flatten().filter(|r| r.0 == 0).count() as u64;
            assert!(
                accessible + hidden <= LIMIT,
                "user {user}: {accessible} and {hidden} pages"
            );
            for page in 0..AREA {
                let may = table[page as usize].map(|r| r.0 & libc::PROT_WRITE != 0);
                let did = put(at(page), 0xEE);
                assert!(may.is_none_or(|may| may == did), "user {user}, page {page}");
            }
        }
        match random(8) {
            0 => {
                memory.clear().expect("cleared");
                assert!((0..AREA).all(|page| byte(at(page)).is_none()), "as new");
            }
            1 => {
                memory.recycle(1 << 20).expect("recycled");
                memory.give_up_kept().expect("given up");
                assert!((0..AREA).all(|page| byte(at(page)).is_none()), "trimmed");
            }
            _ => memory.recycle(1 << 20).expect("recycled"),
        }
        assert_eq!(memory.used(), 0);
        kept_before += u32::from(memory.kept() > 0);
    }
    assert!(
        kept_before > 50,
        "{kept_before} of 600 users left something accessible"
    );
}

/// A heap within what may be kept stays where it is, zeroed, and the next user's writes fault no more; a larger one goes.
#[test]
fn as_much_heap_is_kept_as_may_be() {
    crate::lanes::signal::install().expect("handlers");
    const PAGES: u32 = 512;
    let len = u64::from(PAGES) * PAGE;
    let window = Window::new(1, &[]).expect("window");
    let base = window.base();
    let mut memory = Memory::new(base, 2 * len, 0);
    let start = base + 0x8000_0000;
    let present = || {
        let mut pages = [0u8; PAGES as usize];
        // SAFETY: as many pages of our window as there are bytes.
        let asked = unsafe { libc::mincore(start as *mut _, len as usize, pages.as_mut_ptr()) };
        assert_eq!(asked, 0);
        pages.iter().filter(|&&p| p & 1 != 0).count() as u32
    };
    for most in [len, len, len - 1, 4 * len] {
        memory.map(Some(0x8000_0000), len, RW).expect("room");
        for page in 0..PAGES {
            let at = start + u64::from(page) * PAGE;
            assert_eq!(byte(at), Some(0), "page {page}: the last one's");
            assert!(put(at, 1));
        }
        memory.recycle(most).expect("recycled");
        let kept = most >= len;
        assert_eq!(memory.kept(), if kept { len } else { 0 });
        assert_eq!(present(), if kept { PAGES } else { 0 });
        assert_eq!(byte(start), kept.then_some(0));
    }
    // Whoever needs little does not pay for what others needed.
    memory.map(Some(0x8000_0000), PAGE, RW).expect("room");
    memory.recycle(4 * len).expect("recycled");
    assert_eq!((memory.kept(), present()), (PAGE, 1));
}

/// What gives back the pages of a large range is many calls, which cover it and nothing else.
#[test]
fn large_ranges_are_worked_off_in_slices() {
    let at = 0x1_8000_0000;
    let slices = |number: libc::c_long, args: [u64; 4]| -> Vec<(libc::c_long, u64, u64)> {
        let mut all = [0; 6];
        all[..4].copy_from_slice(&args);
        let call = ringfence_core::policy::Syscall {
            number: number as u64,
            args: all,
        };
        super::slices(&call)
            .map(|c| (c.number as i64, c.args[0], c.args[1]))
            .collect()
    };
    let whole = 3 * SLICE + 100;
    let dropped = libc::MADV_DONTNEED as u64;
    for (number, third) in [
        (libc::SYS_munmap, 0),
        (libc::SYS_mprotect, 1),
        (libc::SYS_madvise, dropped),
    ] {
        let parts: Vec<_> = (0..3).map(|n| (number, at + n * SLICE, SLICE)).collect();
        let all = [&parts[..], &[(number, at + 3 * SLICE, 100)]].concat();
        assert_eq!(slices(number, [at, whole, third, 0]), all);
        assert_eq!(slices(number, [at, SLICE, third, 0]), [(number, at, SLICE)]);
        // Not in the heap's area: refused, whole.
        for (at, len) in [(0, whole), (at, u64::MAX), (at, 1 << 32), (at, 0)] {
            assert_eq!(slices(number, [at, len, third, 0]), [(number, at, len)]);
        }
    }
    let fixed = (libc::MAP_FIXED | libc::MAP_ANONYMOUS | libc::MAP_PRIVATE) as u64;
    let mapped = slices(libc::SYS_mmap, [at, whole, 3, fixed]);
    assert_eq!(mapped.len(), 5);
    assert!(mapped[..4].iter().all(|c| c.0 == libc::SYS_munmap));
    assert_eq!(mapped[4], (libc::SYS_mmap, at, whole));
    let anywhere = (libc::MAP_ANONYMOUS | libc::MAP_PRIVATE) as u64;
    assert_eq!(slices(libc::SYS_mmap, [0, whole, 3, anywhere]).len(), 1);
}
