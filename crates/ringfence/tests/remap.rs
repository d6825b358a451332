//! `mremap`: a domain's memory grows, moves and shrinks, and nothing else does.

mod support;

use ringfence::policy::{Policy, Rights};
use ringfence::{Imports, Ptr};
use ringfence_isa::window;
use support::guest::{Guest, Scratch, errno};

const PAGE: i64 = 4096;
const MOVES: i64 = libc::MREMAP_MAYMOVE as i64;
const RW: i64 = (libc::PROT_READ | libc::PROT_WRITE) as i64;

fn map(g: &Guest, at: i64, pages: i64, rights: i64) -> i64 {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | if at == 0 { 0 } else { libc::MAP_FIXED_NOREPLACE };
    let args = [at, pages * PAGE, rights, flags.into(), -1, 0];
    g.sys(libc::SYS_mmap, &args)
}

fn remap(g: &Guest, at: i64, pages: i64, to: i64, flags: i64) -> i64 {
    g.sys(libc::SYS_mremap, &[at, pages * PAGE, to * PAGE, flags])
}

fn mark(g: &Guest, at: i64, pages: i64) {
    for page in 0..pages {
        let here = Ptr::<i64>::from_address((at + page * PAGE) as u64);
        g.domain.memory().write(here, 1000 + page).unwrap();
    }
}

/// The marks of as many pages, 0 where there is none.
#[track_caller]
fn marked(g: &Guest, at: i64, pages: i64) -> Vec<i64> {
    (0..pages)
        .map(|page| g.read_words(at + page * PAGE, 1)[0])
        .collect()
}

#[test]
fn memory_grows_moves_and_shrinks() {
    needs!(Policy);
    let g = Guest::new(Policy::new());
    let used = || g.domain.usage().memory as i64;
    let at = map(&g, 0, 2, RW);
    assert!(at > 0);
    mark(&g, at, 2);
    let before = used();
    // Where it is, if there is room behind it.
    assert_eq!(remap(&g, at, 2, 3, 0), at);
    assert_eq!(marked(&g, at, 3), [1000, 1001, 0]);
    assert_eq!(used(), before + PAGE);
    assert_eq!(remap(&g, at, 3, 1, MOVES), at);
    assert_eq!(used(), before - PAGE);
    assert_eq!(map(&g, at + PAGE, 1, RW), at + PAGE, "the rest is free");
    assert_eq!(marked(&g, at, 2), [1000, 0], "and comes back empty");
    mark(&g, at, 2);
    // Something lies behind it that is not its own kind.
    assert_eq!(map(&g, at + 2 * PAGE, 1, 1), at + 2 * PAGE);
    let before = used();
    assert_eq!(remap(&g, at, 2, 4, 0), errno(libc::ENOMEM));
    let to = remap(&g, at, 2, 4, MOVES);
    assert!(to > 0 && to != at, "{to:#x}");
    assert_eq!(marked(&g, to, 4), [1000, 1001, 0, 0]);
    assert_eq!(used(), before + 2 * PAGE);
    assert_eq!(map(&g, at, 2, RW), at, "where it was is free");
    assert_eq!(marked(&g, at, 2), [0, 0]);
    // A part of it, in pieces of any length.
    assert_eq!(
        g.sys(libc::SYS_mremap, &[to, 2 * PAGE - 7, 2 * PAGE - 1, MOVES]),
        to
    );
}

/// More than is copied at once.
#[test]
fn much_memory_moves_whole() {
    needs!(Policy);
    let g = Guest::new(Policy::new());
    let pages = (10 << 20) / PAGE;
    let at = map(&g, 0, pages, RW);
    mark(&g, at, pages);
    assert_eq!(map(&g, at + pages * PAGE, 1, 0), at + pages * PAGE);
    let to = remap(&g, at, pages, pages + 1, MOVES);
    assert!(to > 0 && to != at);
    let expected: Vec<i64> = (1000..1000 + pages).chain([0]).collect();
    assert_eq!(marked(&g, to, pages + 1), expected);
}

#[test]
fn rights_move_too() {
    needs!(Policy);
    let g = Guest::new(Policy::new());
    let [read, write] = g.pipe();
    for rights in [
        libc::PROT_READ,
        libc::PROT_NONE,
        libc::PROT_READ | libc::PROT_WRITE,
    ] {
        // What lies behind it is of another kind.
        let at = map(&g, 0, 2, RW);
        mark(&g, at, 1);
        let behind = if i64::from(rights) == RW {
            libc::PROT_NONE.into()
        } else {
            RW
        };
        for (page, rights) in [(at, rights.into()), (at + PAGE, behind)] {
            assert_eq!(g.sys(libc::SYS_mprotect, &[page, PAGE, rights]), 0);
        }
        let to = remap(&g, at, 1, 2, MOVES);
        assert!(to > 0 && to != at, "{to:#x}");
        for page in [to, to + PAGE] {
            let efault = errno(libc::EFAULT);
            let sent = g.sys(libc::SYS_write, &[write, page, 8]);
            assert_eq!(
                sent,
                if rights == libc::PROT_NONE { efault } else { 8 },
                "{rights}"
            );
            if sent == 8 {
                let got = g.sys(libc::SYS_read, &[read, page, 8]);
                assert_eq!(got, if i64::from(rights) == RW { 8 } else { efault }, "{rights}");
                if got != 8 {
                    assert_eq!(g.sys(libc::SYS_read, &[read, g.buffer(8), 8]), 8);
                }
            }
        }
        assert_eq!(g.sys(libc::SYS_mprotect, &[to, PAGE, 1]), 0);
        assert_eq!(marked(&g, to, 1), [1000], "{rights}");
    }
}

#[test]
fn what_is_refused() {
    needs!(Policy);
    let g = Guest::new(Policy::new());
    let (einval, efault) = (errno(libc::EINVAL), errno(libc::EFAULT));
    let at = map(&g, 0, 4, RW);
    mark(&g, at, 4);
    let base = g.domain.memory().base() as i64;
    for flags in [libc::MREMAP_FIXED, libc::MREMAP_DONTUNMAP, 8, -1] {
        assert_eq!(remap(&g, at, 4, 5, MOVES | i64::from(flags)), einval, "{flags}");
    }
    assert_eq!(remap(&g, at + 1, 1, 2, MOVES), einval);
    assert_eq!(remap(&g, at, 0, 2, MOVES), einval);
    assert_eq!(remap(&g, at, 4, 0, MOVES), einval);
    // Not all of it is mapped, nor all of one kind.
    assert_eq!(remap(&g, at, 5, 8, MOVES), efault);
    assert_eq!(g.sys(libc::SYS_mprotect, &[at + PAGE, PAGE, 1]), 0);
    assert_eq!(remap(&g, at, 4, 8, MOVES), efault);
    assert_eq!(remap(&g, at, 2, 1, MOVES), efault);
    // What is no heap of the domain's: its header, stubs and text, the window's end, memory of the host.
    let host = std::ptr::from_ref(&g) as i64 & -PAGE;
    for wild in [
        0,
        base,
        base + i64::from(window::HEADER),
        base + i64::from(window::STUBS),
        base + i64::from(window::HEAP) - PAGE,
        base + i64::from(window::HEAP_END),
        base + 0xFFFF_F000,
        host | 0xFFFF_F000,
    ] {
        for to in [1, 3] {
            assert_eq!(remap(&g, wild, 2, to, MOVES), efault, "{wild:#x}");
        }
    }
    for huge in [1 << 31, 5 << 32, i64::MAX & -PAGE, -PAGE] {
        let args = [at, PAGE, huge, MOVES];
        assert_eq!(g.sys(libc::SYS_mremap, &args), errno(libc::ENOMEM), "{huge:#x}");
        let args = [at, huge, PAGE, MOVES];
        assert_eq!(g.sys(libc::SYS_mremap, &args), efault, "{huge:#x}");
    }
    assert_eq!(marked(&g, at, 4), [1000, 1001, 1002, 1003]);
}

/// Neither in place nor elsewhere is there more than the domain may have.
#[test]
fn the_limit_holds() {
    needs!(Policy, Limits);
    let monitor = Policy::new().start().unwrap();
    let mut options = support::options();
    options.memory_limit = 24 << 20;
    let module = support::module("syscall");
    let domain = ringfence::Domain::instantiate(&[module], Imports::new().policy(monitor), &options).unwrap();
    let call = domain.func("system_call").unwrap();
    let g = Guest { domain, call };
    let mega = (1 << 20) / PAGE;
    let at = map(&g, 0, mega, RW);
    assert!(at > 0);
    mark(&g, at, mega);
    let before = g.domain.usage().memory;
    assert_eq!(remap(&g, at, mega, 100 * mega, MOVES), errno(libc::ENOMEM));
    assert_eq!(map(&g, at + mega * PAGE, 1, 1), at + mega * PAGE);
    assert_eq!(remap(&g, at, mega, 24 * mega, MOVES), errno(libc::ENOMEM));
    assert_eq!(g.domain.usage().memory, before + PAGE as u64);
    assert_eq!(marked(&g, at, mega), (1000..1000 + mega).collect::<Vec<_>>());
}

/// A private map of a file has been read: what comes behind it is empty.
#[test]
fn copies_of_files_are_memory() {
    needs!(Policy);
    let scratch = Scratch::new("remap");
    let g = Guest::new(Policy::new().dir(&scratch.0, "/d", Rights::Read));
    let fd = g.sys(libc::SYS_open, &[g.text("/d/file"), 0, 0]);
    let at = g.sys(libc::SYS_mmap, &[0, PAGE, 1, libc::MAP_PRIVATE.into(), fd, 0]);
    let text = i64::from_le_bytes(*b"01234567");
    let to = remap(&g, at, 1, 3, MOVES);
    assert_eq!(marked(&g, to, 3), [text, 0, 0]);
}
