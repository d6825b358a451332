//! How much a domain may put on disk.

mod support;

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use ringfence::policy::{Policy, Rights};
use ringfence::{Imports, LimitHit, OnLimit};
use support::Start as _;
use support::guest::{Guest, Scratch, errno};

const BLOCK: i64 = 4096;

fn guest(scratch: &Scratch, limit: u64) -> Guest {
    Guest::new(
        Policy::new()
            .dir(&scratch.0, "/d", Rights::Write)
            .disk_limit(limit),
    )
}

fn open(guest: &Guest, name: &str, flags: i32) -> i64 {
    guest.sys(libc::SYS_open, &[guest.text(name), flags.into(), 0o644])
}

#[test]
fn what_is_written_counts() {
    needs!(Policy);
    let scratch = Scratch::new("disk-written");
    let g = guest(&scratch, 100_000);
    let used = || g.domain.usage().disk as i64;
    let at = g.buffer(60_000);
    let fd = open(&g, "/d/new", libc::O_CREAT | libc::O_RDWR);
    assert_eq!((fd, used()), (0, BLOCK), "a name takes a block");
    assert_eq!(g.sys(libc::SYS_write, &[fd, at, 60_000]), 60_000);
    assert_eq!(used(), 2 * BLOCK + 60_000, "and so does the first write");
    assert_eq!(g.sys(libc::SYS_write, &[fd, at, 8]), 8);
    assert_eq!(used(), 2 * BLOCK + 60_008, "one that goes on does not");
    assert_eq!(g.sys(libc::SYS_pwrite64, &[fd, at, 8, 100]), 8);
    assert_eq!(g.sys(libc::SYS_pwrite64, &[fd, at, 8, 108]), 8);
    assert_eq!(used(), 3 * BLOCK + 60_024, "in the middle, twice");
    // The position is where it was: behind the first writes. What fits is written, then nothing.
    let room = 100_000 - used() - BLOCK;
    assert_eq!(g.sys(libc::SYS_write, &[fd, at, 60_000]), room);
    assert_eq!(g.sys(libc::SYS_write, &[fd, at, 1]), errno(libc::EDQUOT));
    let vector = g.words(&[at, 4, at, 4]);
    assert_eq!(g.sys(libc::SYS_writev, &[fd, vector, 2]), errno(libc::EDQUOT));
    assert_eq!(g.sys(libc::SYS_pwritev, &[fd, vector, 2, 0]), errno(libc::EDQUOT));
    assert_eq!(used(), 100_000);
    let size = std::fs::metadata(scratch.0.join("new")).unwrap().len() as i64;
    assert_eq!(size, 60_008 + room);
    // Nothing comes back, by whatever the domain or a reset does.
    assert_eq!(g.sys(libc::SYS_ftruncate, &[fd, 0]), 0);
    assert_eq!(g.sys(libc::SYS_unlink, &[g.text("/d/new")]), 0);
    assert_eq!(g.sys(libc::SYS_write, &[fd, at, 1]), errno(libc::EDQUOT));
    g.domain.reset().unwrap();
    assert_eq!(used(), 100_000);
    assert_eq!(
        open(&g, "/d/new", libc::O_CREAT | libc::O_RDWR),
        errno(libc::EDQUOT)
    );
    assert!(
        open(&g, "/d/file", libc::O_CREAT | libc::O_RDWR) >= 0,
        "it is there already"
    );
    // Pipes and devices are not on disk.
    let [_read, write] = g.pipe();
    let null = open(&g, "/dev/null", libc::O_WRONLY);
    for fd in [write, null] {
        assert_eq!(g.sys(libc::SYS_write, &[fd, g.buffer(64), 64]), 64);
    }
}

/// Each way to have the disk give room, or to make a file longer, without writing as much.
/// One thread moves the position while another writes: a jump that came between the look at the position and the write would
/// make a hole that nobody counts. One hole is larger than all that the writes count besides.
#[test]
fn no_jump_comes_between_the_look_and_the_write() {
    needs!(Policy);
    const HOLE: i64 = 1 << 28;
    const ROUNDS: i64 = 20_000;
    let scratch = Scratch::new("disk-jump");
    let g = guest(&scratch, 1 << 50);
    let at = g.buffer(1);
    let fd = open(&g, "/d/new", libc::O_CREAT | libc::O_WRONLY);
    let round = AtomicI64::new(1);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while let to @ 1.. = HOLE * round.load(Ordering::Relaxed) {
                assert_eq!(g.sys(libc::SYS_lseek, &[fd, to, libc::SEEK_SET.into()]), to);
            }
        });
        for i in 1..=ROUNDS {
            round.store(i, Ordering::Relaxed);
            assert_eq!(g.sys(libc::SYS_write, &[fd, at, 1]), 1);
        }
        round.store(0, Ordering::Relaxed);
    });
    let size = std::fs::metadata(scratch.0.join("new")).unwrap().len();
    let used = g.domain.usage().disk;
    assert!(used >= size, "a file of {size} bytes, and {used} counted");
}

#[test]
fn what_is_allocated_counts() {
    needs!(Policy);
    let scratch = Scratch::new("disk-allocated");
    let g = guest(&scratch, 1 << 20);
    let path = g.text("/d/file");
    let fd = open(&g, "/d/file", libc::O_RDWR);
    let at = g.buffer(16);
    let far = 1i64 << 40;
    let keep = i64::from(libc::FALLOC_FL_KEEP_SIZE);
    let zero = i64::from(libc::FALLOC_FL_ZERO_RANGE);
    for (what, number, args) in [
        ("fallocate", libc::SYS_fallocate, vec![fd, 0, 0, far]),
        (
            "fallocate, a little, far away",
            libc::SYS_fallocate,
            vec![fd, 0, far, 1],
        ),
        (
            "fallocate behind the end",
            libc::SYS_fallocate,
            vec![fd, keep, far, 2 << 20],
        ),
        (
            "fallocate of zeros",
            libc::SYS_fallocate,
            vec![fd, zero, 0, 2 << 20],
        ),
        ("ftruncate", libc::SYS_ftruncate, vec![fd, far]),
        ("truncate", libc::SYS_truncate, vec![path, far]),
        ("pwrite", libc::SYS_pwrite64, vec![fd, at, 1, far]),
        ("pwritev", libc::SYS_pwritev, vec![fd, g.words(&[at, 1]), 1, far]),
    ] {
        assert_eq!(g.sys(number, &args), errno(libc::EDQUOT), "{what}");
    }
    assert_eq!(g.sys(libc::SYS_lseek, &[fd, far, libc::SEEK_SET.into()]), far);
    assert_eq!(g.sys(libc::SYS_write, &[fd, at, 1]), errno(libc::EDQUOT));
    for (args, want) in [
        ([fd, 0, 0, 0], libc::EINVAL),
        ([fd, 0, -1, 1], libc::EINVAL),
        ([fd, 0, i64::MAX, i64::MAX], libc::EINVAL),
    ] {
        assert_eq!(g.sys(libc::SYS_fallocate, &args), errno(want));
    }
    assert_eq!(g.sys(libc::SYS_ftruncate, &[fd, -1]), errno(libc::EINVAL));
    assert_eq!(g.sys(libc::SYS_pwrite64, &[fd, at, 1, -1]), errno(libc::EINVAL));
    assert_eq!(std::fs::metadata(scratch.0.join("file")).unwrap().len(), 16);
    assert_eq!(g.domain.usage().disk, 0, "what failed does not count");
    // Names and whatever else makes the disk give a block, one after the other until there are no more.
    let mut ways = [0; 4];
    let end = (0..).find_map(|i| {
        let way = i % ways.len();
        let name = g.text(&format!("/d/n{i}"));
        let result = match way {
            0 => g.sys(libc::SYS_mkdir, &[name, 0o755]),
            1 => g.sys(libc::SYS_link, &[path, name]),
            2 => {
                let flags = i64::from(libc::O_CREAT | libc::O_WRONLY);
                let fd = g.sys(libc::SYS_open, &[name, flags, 0o644]);
                if fd >= 0 {
                    g.sys(libc::SYS_close, &[fd])
                } else {
                    fd
                }
            }
            _ => {
                let flags = i64::from(libc::O_TMPFILE | libc::O_WRONLY);
                let fd = g.sys(libc::SYS_open, &[g.text("/d"), flags, 0o600]);
                if fd >= 0 {
                    g.sys(libc::SYS_close, &[fd])
                } else {
                    fd
                }
            }
        };
        ways[way] += 1;
        (result != 0).then_some((i, result))
    });
    assert_eq!(end, Some((256, errno(libc::EDQUOT))), "{ways:?}");
}

#[test]
fn the_host_may_give_more() {
    needs!(Policy);
    let scratch = Scratch::new("disk-more");
    let seen = Arc::<Mutex<Vec<LimitHit>>>::default();
    let monitor = Policy::new()
        .dir(&scratch.0, "/d", Rights::Write)
        .disk_limit(5000)
        .start()
        .unwrap();
    let told = seen.clone();
    let imports = Imports::new().policy(monitor).on_limit(move |_, hit| {
        told.lock().unwrap().push(*hit);
        match hit {
            LimitHit::Disk { limit: 5000, .. } => OnLimit::Raise(6000),
            _ => OnLimit::Keep,
        }
    });
    let domain = support::module("syscall").start(imports).unwrap();
    let call = domain.func("system_call").unwrap();
    let g = Guest { domain, call };
    let fd = open(&g, "/d/file", libc::O_WRONLY);
    let at = g.buffer(4096);
    assert_eq!(g.sys(libc::SYS_write, &[fd, at, 904]), 904);
    assert_eq!(
        g.sys(libc::SYS_write, &[fd, at, 1500]),
        1000,
        "after one question"
    );
    assert_eq!(g.sys(libc::SYS_write, &[fd, at, 500]), errno(libc::EDQUOT));
    let hit = |wanted, used, limit| LimitHit::Disk { wanted, used, limit };
    assert_eq!(
        *seen.lock().unwrap(),
        [hit(1500, 5000, 5000), hit(500, 6000, 6000)]
    );
}
