//! Maps of files that are shared with whoever has the file: what the domain writes is in the file, and the other way round.

mod support;

use ringfence::policy::{Policy, Rights, Stream};
use ringfence::{
    Access, CallError, Domain, DomainOptions, FaultKind, Imports, LimitHit, MemoryError, OnLimit, Ptr,
    SnapshotError,
};
use std::os::unix::fs::FileExt;
use support::Start as _;
use support::guest::{Guest, Scratch, errno};

const PAGE: i64 = 4096;
const SHARED: i32 = libc::MAP_SHARED;
const READ: i32 = libc::PROT_READ;
const RW: i32 = libc::PROT_READ | libc::PROT_WRITE;

/// A guest with the directory as `/d`, in which is a `file` of four pages.
fn guest(scratch: &Scratch, rights: Rights) -> Guest {
    Guest::new(policy(scratch, rights))
}

fn policy(scratch: &Scratch, rights: Rights) -> Policy {
    std::fs::write(scratch.0.join("file"), [0x11; 4 * PAGE as usize]).unwrap();
    Policy::new().dir(&scratch.0, "/d", rights)
}

fn open(g: &Guest, flags: i32) -> i64 {
    g.sys(libc::SYS_open, &[g.text("/d/file"), flags.into(), 0])
}

fn map_at(g: &Guest, at: i64, len: i64, rights: i32, flags: i32, fd: i64, offset: i64) -> i64 {
    let args = [at, len, rights.into(), flags.into(), fd, offset];
    g.sys(libc::SYS_mmap, &args)
}

fn map(g: &Guest, len: i64, rights: i32, fd: i64) -> i64 {
    let at = map_at(g, 0, len, rights, SHARED, fd, 0);
    assert!(at > 0, "{at}");
    at
}

/// The word at an address, as the module sees it.
fn load(g: &Guest, at: i64) -> Result<i64, CallError> {
    let load = g.domain.func::<(i64,), i64>("load").unwrap();
    Ok(load.call(at)?.into_inner_unchecked())
}

fn store(g: &Guest, at: i64, value: i64) -> Result<(), CallError> {
    let store = g.domain.func::<(i64, i64), ()>("store").unwrap();
    store.call(at, value).map(drop)
}

fn host_word(scratch: &Scratch, offset: u64) -> i64 {
    let file = std::fs::File::open(scratch.0.join("file")).unwrap();
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, offset).unwrap();
    i64::from_ne_bytes(bytes)
}

fn host(scratch: &Scratch) -> std::fs::File {
    let mut options = std::fs::OpenOptions::new();
    options
        .read(true)
        .write(true)
        .open(scratch.0.join("file"))
        .unwrap()
}

const OLD: i64 = 0x1111_1111_1111_1111;

#[test]
fn both_sides_see_what_the_other_writes() {
    needs!(Policy, FileMaps);
    let scratch = Scratch::empty("maps-both");
    let (g, other) = (guest(&scratch, Rights::Write), guest(&scratch, Rights::Write));
    let fd = open(&g, libc::O_RDWR);
    let before = g.domain.usage().memory as i64;
    let at = map(&g, 4 * PAGE, RW, fd);
    assert_eq!(g.domain.usage().memory as i64, before + 4 * PAGE, "maps count");
    assert_eq!(g.sys(libc::SYS_close, &[fd]), 0);
    assert_eq!(load(&g, at).unwrap(), OLD);
    store(&g, at + 8, 47).unwrap();
    assert_eq!(host_word(&scratch, 8), 47);
    host(&scratch)
        .write_all_at(&48i64.to_ne_bytes(), 3 * PAGE as u64)
        .unwrap();
    assert_eq!(load(&g, at + 3 * PAGE).unwrap(), 48);
    // Another domain, from the third page on.
    let fd = open(&other, libc::O_RDWR);
    let there = map_at(&other, 0, PAGE, RW, SHARED, fd, 3 * PAGE);
    assert_eq!(load(&other, there).unwrap(), 48);
    store(&other, there, 49).unwrap();
    assert_eq!(load(&g, at + 3 * PAGE).unwrap(), 49);
    // The host's own interface.
    let word = Ptr::<i64>::from_address((at + 3 * PAGE) as u64);
    assert_eq!(g.domain.memory().read(word).unwrap().into_inner_unchecked(), 49);
    g.domain.memory().write(word, 50).unwrap();
    assert_eq!(host_word(&scratch, 3 * PAGE as u64), 50);
    for flags in [libc::MS_SYNC, libc::MS_ASYNC] {
        assert_eq!(g.sys(libc::SYS_msync, &[at, 4 * PAGE, flags.into()]), 0);
    }
    assert_eq!(g.sys(libc::SYS_msync, &[at + 8, PAGE, 0]), errno(libc::EINVAL));
    assert_eq!(g.sys(libc::SYS_msync, &[at, 1 << 40, 0]), errno(libc::ENOMEM));
    // Gone again, and the file is as it was.
    assert_eq!(g.sys(libc::SYS_munmap, &[at, 4 * PAGE]), 0);
    assert_eq!(g.domain.usage().memory as i64, before);
    assert!(matches!(
        g.domain.memory().read(word),
        Err(MemoryError::Unmapped { .. })
    ));
    assert_eq!(host_word(&scratch, 8), 47);
}

/// What the domain was not granted it does not get by a map.
#[test]
fn rights_are_those_of_the_file() {
    needs!(Policy, FileMaps);
    let scratch = Scratch::empty("maps-rights");
    let eacces = errno(libc::EACCES);
    // A directory for reading: maps for reading, which never become more.
    let g = guest(&scratch, Rights::Read);
    let fd = open(&g, libc::O_RDONLY);
    assert_eq!(map_at(&g, 0, PAGE, RW, SHARED, fd, 0), eacces);
    assert_eq!(map_at(&g, 0, PAGE, libc::PROT_WRITE, SHARED, fd, 0), eacces);
    let at = map(&g, PAGE, READ, fd);
    let protect =
        |g: &Guest, at: i64, len: i64, rights: i32| g.sys(libc::SYS_mprotect, &[at, len, rights.into()]);
    assert_eq!(protect(&g, at, PAGE, RW), eacces);
    assert_eq!(protect(&g, at, PAGE, libc::PROT_READ | libc::PROT_EXEC), eacces);
    assert_eq!(protect(&g, at, PAGE, libc::PROT_NONE), 0);
    assert_eq!(protect(&g, at, PAGE, READ), 0);
    assert_eq!(load(&g, at).unwrap(), OLD);
    assert!(matches!(store(&g, at, 1), Err(CallError::Fault(_))));
    drop(g);
    // A directory for writing, and a descriptor that is not.
    let g = guest(&scratch, Rights::Write);
    let fd = open(&g, libc::O_RDONLY);
    assert_eq!(map_at(&g, 0, PAGE, RW, SHARED, fd, 0), eacces);
    // Memory of the domain's own before it: a change that the file refuses changes nothing.
    let own = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let before = map_at(&g, 0, 2 * PAGE, READ, own, -1, 0);
    let fixed = SHARED | libc::MAP_FIXED;
    assert_eq!(map_at(&g, before + PAGE, PAGE, READ, fixed, fd, 0), before + PAGE);
    assert_eq!(protect(&g, before, 2 * PAGE, RW), eacces);
    assert!(matches!(store(&g, before, 1), Err(CallError::Fault(_))));
    g.domain.reset().unwrap();
    let fd = open(&g, libc::O_WRONLY);
    assert_eq!(map_at(&g, 0, PAGE, libc::PROT_WRITE, SHARED, fd, 0), eacces);
    let fd = open(&g, libc::O_RDWR);
    for rights in [READ, RW, 0] {
        let executable = rights | libc::PROT_EXEC;
        assert_eq!(map_at(&g, 0, PAGE, executable, SHARED, fd, 0), eacces);
        let at = map(&g, PAGE, rights, fd);
        assert_eq!(protect(&g, at, PAGE, executable), eacces);
        assert_eq!(protect(&g, at, PAGE, RW), 0);
    }
    assert_eq!(host_word(&scratch, 0), OLD);
}

#[test]
fn what_cannot_be_mapped() {
    needs!(Policy, FileMaps);
    let scratch = Scratch::empty("maps-bad");
    let g = guest(&scratch, Rights::Write);
    let fd = open(&g, libc::O_RDWR);
    let [einval, enomem] = [libc::EINVAL, libc::ENOMEM].map(errno);
    assert_eq!(map_at(&g, 0, 0, RW, SHARED, fd, 0), einval);
    assert_eq!(map_at(&g, 0, PAGE, RW, SHARED, fd, 100), einval);
    assert_eq!(map_at(&g, 0, PAGE, RW, 0, fd, 0), einval);
    assert_eq!(map_at(&g, 0, PAGE, RW | 0x100, SHARED, fd, 0), einval);
    assert_eq!(map_at(&g, 0, 1 << 40, RW, SHARED, fd, 0), enomem);
    assert_eq!(map_at(&g, 0, PAGE, RW, SHARED, 99, 0), errno(libc::EBADF));
    // Nowhere but in the heap.
    for at in [0, 0x1000, 0x10_0000, 0x2000_0000, 0xA000_0000, 0xFFFF_F000] {
        let fixed = SHARED | libc::MAP_FIXED;
        assert_eq!(
            map_at(&g, at, PAGE, RW, fixed, fd, 0),
            errno(libc::EPERM),
            "{at:#x}"
        );
    }
    let at = map(&g, 2 * PAGE, RW, fd);
    let again = SHARED | libc::MAP_FIXED_NOREPLACE;
    assert_eq!(map_at(&g, at + PAGE, PAGE, RW, again, fd, 0), errno(libc::EEXIST));
    // What is no file.
    let [read, _] = g.pipe();
    assert_eq!(map_at(&g, 0, PAGE, READ, SHARED, read, 0), errno(libc::ENODEV));
    let directory = g.sys(libc::SYS_open, &[g.text("/d"), 0, 0]);
    assert_eq!(
        map_at(&g, 0, PAGE, READ, SHARED, directory, 0),
        errno(libc::ENODEV)
    );
    assert_eq!(host_word(&scratch, 0), OLD);
}

/// In the place of memory, and memory in its place.
#[test]
fn maps_replace_and_are_replaced() {
    needs!(Policy, FileMaps);
    let scratch = Scratch::empty("maps-replace");
    let g = guest(&scratch, Rights::Write);
    let fd = open(&g, libc::O_RDWR);
    let anonymous = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let before = g.domain.usage().memory as i64;
    let at = map_at(&g, 0, 4 * PAGE, RW, anonymous, -1, 0);
    for page in 0..4 {
        store(&g, at + page * PAGE, page).unwrap();
    }
    // The file's third page over the second of memory.
    let fixed = SHARED | libc::MAP_FIXED;
    assert_eq!(map_at(&g, at + PAGE, PAGE, RW, fixed, fd, 2 * PAGE), at + PAGE);
    let words = |g: &Guest| [0, 1, 2, 3].map(|page| load(g, at + page * PAGE).unwrap());
    assert_eq!(words(&g), [0, OLD, 2, 3]);
    assert_eq!(g.domain.usage().memory as i64, before + 4 * PAGE);
    store(&g, at + PAGE, 5).unwrap();
    assert_eq!(host_word(&scratch, 2 * PAGE as u64), 5);
    // Memory is dropped, what is in the file stays.
    let drop_all = [at, 4 * PAGE, libc::MADV_DONTNEED.into()];
    assert_eq!(g.sys(libc::SYS_madvise, &drop_all), 0);
    assert_eq!(words(&g), [0, 5, 0, 0]);
    // Rights of all of it at once.
    for rights in [0, READ, RW] {
        assert_eq!(g.sys(libc::SYS_mprotect, &[at, 4 * PAGE, rights.into()]), 0);
    }
    store(&g, at + PAGE, 6).unwrap();
    // Memory over it.
    let fixed = anonymous | libc::MAP_FIXED;
    assert_eq!(map_at(&g, at, 4 * PAGE, RW, fixed, -1, 0), at);
    assert_eq!(words(&g), [0; 4]);
    store(&g, at + PAGE, 7).unwrap();
    assert_eq!(host_word(&scratch, 2 * PAGE as u64), 6);
    assert_eq!(g.domain.usage().memory as i64, before + 4 * PAGE);
}

#[test]
fn maps_grow_and_shrink() {
    needs!(Policy, FileMaps);
    let scratch = Scratch::empty("maps-grow");
    let g = guest(&scratch, Rights::Write);
    let fd = open(&g, libc::O_RDWR);
    let before = g.domain.usage().memory as i64;
    let at = map(&g, PAGE, RW, fd);
    let remap = |at: i64, from: i64, to: i64, flags: i32| {
        g.sys(libc::SYS_mremap, &[at, from * PAGE, to * PAGE, flags.into()])
    };
    assert_eq!(remap(at, 1, 4, 0), errno(libc::ENOMEM));
    let to = remap(at, 1, 4, libc::MREMAP_MAYMOVE);
    assert!(to > 0 && to != at);
    store(&g, to + 3 * PAGE, 9).unwrap();
    assert_eq!(host_word(&scratch, 3 * PAGE as u64), 9);
    assert_eq!(load(&g, to).unwrap(), OLD);
    assert_eq!(g.domain.usage().memory as i64, before + 4 * PAGE);
    assert_eq!(remap(to, 4, 2, 0), to);
    assert_eq!(g.domain.usage().memory as i64, before + 2 * PAGE);
    let gone = Ptr::<i64>::from_address(at as u64);
    assert!(g.domain.memory().read(gone).is_err(), "where it was is nothing");
    let gone = Ptr::<i64>::from_address((to + 2 * PAGE) as u64);
    assert!(g.domain.memory().read(gone).is_err());
}

/// Somebody makes the file shorter: what was there is a fault of the domain, and an error for the host and the kernel.
#[test]
fn a_file_that_gets_shorter_ends_the_call_and_no_more() {
    needs!(Policy, FileMaps, Faults);
    let scratch = Scratch::empty("maps-shorter");
    let g = guest(&scratch, Rights::Write);
    let fd = open(&g, libc::O_RDWR);
    let at = map(&g, 4 * PAGE, RW, fd);
    store(&g, at + 2 * PAGE, 1).unwrap();
    host(&scratch).set_len(PAGE as u64).unwrap();
    let gone = at + 2 * PAGE;
    let word = Ptr::<i64>::from_address(gone as u64);
    assert!(matches!(
        g.domain.memory().read(word),
        Err(MemoryError::Unmapped { .. })
    ));
    assert!(g.domain.memory().write(word, 1).is_err());
    assert!(g.domain.memory().read_vec(word, 100).is_err());
    // The kernel on the domain's behalf, and the policy itself.
    let [_, write] = g.pipe();
    let efault = errno(libc::EFAULT);
    assert_eq!(g.sys(libc::SYS_write, &[write, gone, 8]), efault);
    assert_eq!(g.sys(libc::SYS_pread64, &[fd, gone, 8, 0]), efault);
    assert_eq!(g.sys(libc::SYS_open, &[gone, 0, 0]), efault);
    assert_eq!(g.sys(libc::SYS_pipe, &[gone]), efault);
    let futex = [gone, libc::FUTEX_WAIT.into(), 0, 0];
    assert_eq!(g.sys(libc::SYS_futex, &futex), efault);
    assert_eq!(load(&g, at).unwrap(), OLD, "the first page is there");
    for access in [Access::Read, Access::Write] {
        let failed = match access {
            Access::Read => load(&g, gone).map(drop),
            _ => store(&g, gone, 1),
        };
        match failed {
            Err(CallError::Fault(fault)) => {
                assert_eq!(
                    fault.kind,
                    FaultKind::BadAccess {
                        address: gone as u64,
                        access
                    }
                );
            }
            other => panic!("{other:?}"),
        }
        // The map goes with a reset.
        g.domain.reset().unwrap();
        assert!(g.domain.memory().read(word).is_err());
        let fd = open(&g, libc::O_RDWR);
        assert_eq!(map_at(&g, at, 4 * PAGE, RW, SHARED | libc::MAP_FIXED, fd, 0), at);
    }
    // It gets longer again, and the domain made it so.
    let fd = open(&g, libc::O_RDWR);
    assert_eq!(g.sys(libc::SYS_ftruncate, &[fd, 4 * PAGE]), 0);
    assert_eq!(load(&g, gone).unwrap(), 0);
}

/// What a reset zeroes is the domain's memory and nobody's file.
#[test]
fn a_reset_takes_maps_away_and_leaves_the_file() {
    needs!(Policy, FileMaps);
    let scratch = Scratch::empty("maps-reset");
    let whole = |word: i64| {
        let bytes = std::fs::read(scratch.0.join("file")).unwrap();
        let words = bytes
            .chunks_exact(8)
            .map(|w| i64::from_ne_bytes(w.try_into().unwrap()));
        assert_eq!(words.filter(|&w| w == word).count(), 1);
        assert_eq!(bytes.iter().filter(|&&b| b == 0x11).count(), bytes.len() - 8);
    };
    let g = guest(&scratch, Rights::Write);
    assert_eq!(g.sys(libc::SYS_getpid, &[]), 1);
    let fresh = g.domain.usage().memory;
    // One map is taken away by itself, many at once.
    for maps in [1, 20] {
        let fd = open(&g, libc::O_RDWR);
        let all: Vec<i64> = (0..maps).map(|_| map(&g, 4 * PAGE, RW, fd)).collect();
        for &at in &all {
            store(&g, at + PAGE, 1000 + maps).unwrap();
        }
        g.domain.reset().unwrap();
        assert_eq!(g.domain.usage().memory, fresh);
        for &at in &all {
            let word = Ptr::<i64>::from_address(at as u64);
            assert!(g.domain.memory().read(word).is_err());
        }
        whole(1000 + maps);
    }
    // After a checkpoint, whose memory a map has replaced.
    let anonymous = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let at = map_at(&g, 0, 8 * PAGE, RW, anonymous, -1, 0);
    store(&g, at + PAGE, 7).unwrap();
    g.domain.checkpoint().unwrap();
    let fd = open(&g, libc::O_RDWR);
    assert_eq!(map_at(&g, at, 4 * PAGE, RW, SHARED | libc::MAP_FIXED, fd, 0), at);
    store(&g, at + PAGE, 2000).unwrap();
    let drop_all = [at, 8 * PAGE, libc::MADV_DONTNEED.into()];
    assert_eq!(g.sys(libc::SYS_madvise, &drop_all), 0);
    assert_eq!(load(&g, at + PAGE).unwrap(), 2000);
    match g.domain.checkpoint() {
        Err(SnapshotError::Held(held)) => assert!(held.contains("maps of files"), "{held}"),
        other => panic!("{other:?}"),
    }
    g.domain.reset().unwrap();
    assert_eq!(load(&g, at + PAGE).unwrap(), 7);
    store(&g, at + PAGE, 8).unwrap();
    whole(2000);
    // The domain's end.
    let fd = open(&g, libc::O_RDWR);
    map(&g, 4 * PAGE, RW, fd);
    drop(g);
    whole(2000);
}

/// A pool's next user finds nothing of a map, and the file is as the last one left it.
#[test]
fn pools_hand_no_map_on() {
    needs!(Policy, FileMaps);
    let scratch = Scratch::empty("maps-pool");
    let monitor = policy(&scratch, Rights::Write).start().unwrap();
    let module = support::module("syscall");
    let make = move || module.start(Imports::new().policy(monitor.clone()));
    let pool = ringfence::Pool::new(1, make);
    for user in 0..3 {
        let member = pool.take().unwrap();
        let domain: &Domain = &member;
        let call = domain.func("system_call").unwrap();
        let g = Guest {
            domain: domain.clone(),
            call,
        };
        let fd = open(&g, libc::O_RDWR);
        let at = map(&g, 4 * PAGE, RW, fd);
        assert_eq!(load(&g, at).unwrap(), if user == 0 { OLD } else { user });
        store(&g, at, user + 1).unwrap();
        drop((g, member));
        assert_eq!(host_word(&scratch, 0), user + 1);
    }
}

/// The memory limit holds for maps, and room on disk that a map can fill counts.
#[test]
fn maps_count() {
    needs!(Policy, FileMaps, OnLimit, Limits);
    let scratch = Scratch::empty("maps-count");
    let raised = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let may = raised.clone();
    let policy = policy(&scratch, Rights::Write)
        .disk_limit(100 << 10)
        .stdin(Stream::Null);
    let imports =
        Imports::new()
            .policy(policy.start().unwrap())
            .on_limit(move |_, hit: &LimitHit| match hit {
                LimitHit::Memory { wanted, used, .. } if may.load(std::sync::atomic::Ordering::Relaxed) => {
                    OnLimit::Raise(wanted + used)
                }
                _ => OnLimit::Keep,
            });
    let mut options: DomainOptions = support::options();
    options.memory_limit = 32 << 20;
    let module = support::module("syscall");
    let domain = Domain::instantiate(&[module], imports, &options).unwrap();
    let call = domain.func("system_call").unwrap();
    let g = Guest { domain, call };
    let fd = open(&g, libc::O_RDWR);
    let much = 40 << 20;
    assert_eq!(map_at(&g, 0, much, RW, SHARED, fd, 0), errno(libc::ENOMEM));
    raised.store(true, std::sync::atomic::Ordering::Relaxed);
    let at = map(&g, much, RW, fd);
    assert_eq!(g.sys(libc::SYS_munmap, &[at, much]), 0);
    let disk = || g.domain.usage().disk;
    assert_eq!(disk(), 0, "the file has its room");
    // A file of holes, which the host has made.
    host(&scratch).set_len(1 << 20).unwrap();
    let part = map(&g, 10 * PAGE, RW, fd);
    assert!(part > 0);
    assert_eq!(disk(), 10 * PAGE as u64);
    assert_eq!(map_at(&g, 0, 1 << 20, RW, SHARED, fd, 0), errno(libc::EDQUOT));
    // Who cannot write fills no holes.
    let reader = open(&g, libc::O_RDONLY);
    map(&g, 1 << 20, READ, reader);
    assert_eq!(disk(), 10 * PAGE as u64);
}

/// Two processes and one word: a waiter is woken by whoever has the file, unless it asks for its own process only.
#[test]
fn words_in_a_map_wake_other_processes() {
    needs!(Policy, FileMaps);
    let scratch = Scratch::empty("maps-wake");
    let g = guest(&scratch, Rights::Write);
    let fd = open(&g, libc::O_RDWR);
    let at = map(&g, PAGE, RW, fd);
    store(&g, at, 0).unwrap();
    let file = host(&scratch);
    // SAFETY: a new map of the whole first page, of which one word is used, as an atomic.
    let word = unsafe {
        use std::os::fd::AsRawFd;
        let page = libc::mmap(
            std::ptr::null_mut(),
            PAGE as usize,
            RW,
            SHARED,
            file.as_raw_fd(),
            0,
        );
        assert_ne!(page, libc::MAP_FAILED);
        page as u64
    };
    let waiter = std::thread::spawn(move || {
        // SAFETY: waits on the word above, without a time-out.
        unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAIT, 0, 0) }
    });
    // Until it waits, nobody is woken; a call of the process's own kind never wakes it.
    loop {
        let own = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
        assert_eq!(g.sys(libc::SYS_futex, &[at, own.into(), 1]), 0);
        if g.sys(libc::SYS_futex, &[at, libc::FUTEX_WAKE.into(), 1]) == 1 {
            break;
        }
        std::thread::yield_now();
    }
    assert_eq!(waiter.join().unwrap(), 0);
}
