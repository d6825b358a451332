//! Large transfers end with the call's time limit, and are whole when nothing ends them.

mod support;

use std::time::Duration;

use ringfence::FaultKind;
use ringfence::policy::{Policy, Rights, Stream};
use support::guest::{Guest, Scratch};

const LARGE: i64 = 700 << 20;

/// Processor time of this thread.
fn time() -> Duration {
    // SAFETY: the structure is ours.
    unsafe {
        let mut now: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut now);
        Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
    }
}

/// With a limit of 20 ms a call may take 22 by the processor's time; the margin is for a loaded machine's clock. Without
/// slices each takes a second or so.
#[track_caller]
fn ends(guest: &Guest, what: &str, number: i64, args: &[i64]) {
    guest
        .domain
        .set_time_limit(Some(Duration::from_millis(20)))
        .unwrap();
    let begin = time();
    let error = guest.raw(number, args).expect_err(what);
    let took = time() - begin;
    assert!(
        matches!(error.fault().map(|f| &f.kind), Some(FaultKind::TimeLimit)),
        "{what}: {error}"
    );
    assert!(took < Duration::from_millis(150), "{what}: {took:?}");
    guest.domain.set_time_limit(None).unwrap();
    guest.domain.reset().unwrap();
}

#[test]
fn large_transfers_end_with_the_limit() {
    needs!(Policy);
    let scratch = Scratch::new("large");
    let sparse = std::fs::File::create(scratch.0.join("sparse")).unwrap();
    sparse.set_len(LARGE as u64).unwrap();
    let policy = Policy::new()
        .dir(&scratch.0, "/d", Rights::Write)
        .randomness(true)
        .stdin(Stream::Bytes(vec![0; 256 << 20]));
    let guest = Guest::new(policy.disk_limit(u64::MAX));
    let open = |name: &str, flags: i32| {
        let fd = guest.sys(libc::SYS_open, &[guest.text(name), flags.into(), 0o644]);
        assert!(fd > 0, "{name}: {fd}");
        fd
    };
    let room = || {
        let at = guest.sys(libc::SYS_mmap, &[0, LARGE, 3, 0x22, -1, 0]);
        assert!(at > 0);
        at
    };
    let private = libc::MAP_PRIVATE.into();
    let fd = open("/d/sparse", libc::O_RDONLY);
    ends(&guest, "mmap", libc::SYS_mmap, &[0, LARGE, 3, private, fd, 0]);
    let fd = open("/d/sparse", libc::O_RDONLY);
    ends(&guest, "read", libc::SYS_read, &[fd, room(), LARGE]);
    let fd = open("/d/sparse", libc::O_RDONLY);
    ends(&guest, "pread", libc::SYS_pread64, &[fd, room(), LARGE, 0]);
    let fd = open("/d/sparse", libc::O_RDONLY);
    let at = room();
    let many: Vec<i64> = (0..700).flat_map(|i| [at + (i << 20), 1 << 20]).collect();
    ends(&guest, "readv", libc::SYS_readv, &[fd, guest.words(&many), 700]);
    for (what, number) in [("write", libc::SYS_write), ("pwrite", libc::SYS_pwrite64)] {
        let fd = open("/d/new", libc::O_CREAT | libc::O_TRUNC | libc::O_WRONLY);
        ends(&guest, what, number, &[fd, room(), LARGE, 0]);
    }
    let fd = open("/d/new", libc::O_CREAT | libc::O_TRUNC | libc::O_WRONLY);
    let at = room();
    let many: Vec<i64> = (0..700).flat_map(|i| [at + (i << 20), 1 << 20]).collect();
    ends(&guest, "writev", libc::SYS_writev, &[fd, guest.words(&many), 700]);
    let from = open("/d/sparse", libc::O_RDONLY);
    let to = open("/d/new", libc::O_CREAT | libc::O_TRUNC | libc::O_WRONLY);
    ends(&guest, "sendfile", libc::SYS_sendfile, &[to, from, 0, LARGE]);
    // What lies behind it cannot be part of it.
    let half = LARGE / 2;
    let at = room();
    assert_eq!(guest.sys(libc::SYS_munmap, &[at + half, half]), 0);
    let behind = guest.sys(libc::SYS_mmap, &[at + half, 4096, 1, 0x22, -1, 0]);
    assert_eq!(behind, at + half);
    let moves = libc::MREMAP_MAYMOVE.into();
    ends(
        &guest,
        "mremap",
        libc::SYS_mremap,
        &[at, half, half + 4096, moves],
    );
    let fd = open("/dev/zero", libc::O_RDONLY);
    ends(&guest, "zeros", libc::SYS_read, &[fd, room(), LARGE]);
    let fd = open("/dev/urandom", libc::O_RDONLY);
    ends(&guest, "random bytes", libc::SYS_read, &[fd, room(), LARGE]);
    ends(&guest, "prepared bytes", libc::SYS_read, &[0, room(), LARGE]);
}

#[test]
fn large_transfers_are_whole() {
    needs!(Policy);
    let scratch = Scratch::empty("whole");
    let bytes: Vec<u8> = (0..3u32 << 20).map(|i| (i / 7 * 31) as u8).collect();
    std::fs::write(scratch.0.join("file"), &bytes).unwrap();
    let policy = Policy::new().dir(&scratch.0, "/d", Rights::Write);
    let guest = Guest::new(policy.randomness(true));
    let open = |name: &str, flags: i32| guest.sys(libc::SYS_open, &[guest.text(name), flags.into(), 0o644]);
    let len = bytes.len() as i64;
    let at = guest.sys(libc::SYS_mmap, &[0, 2 * len, 3, 0x22, -1, 0]);
    let fd = open("/d/file", libc::O_RDONLY);
    assert_eq!(guest.sys(libc::SYS_read, &[fd, at, len + 1]), len);
    let mut seen = vec![0; bytes.len()];
    let window = |at: i64, to: &mut [u8]| {
        for (i, word) in guest.read_words(at, to.len() / 8).iter().enumerate() {
            to[8 * i..8 * i + 8].copy_from_slice(&word.to_ne_bytes());
        }
    };
    window(at, &mut seen);
    assert!(seen == bytes);
    // In odd pieces, with a hole in the vector, from an odd place.
    let vector = guest.words(&[at + len, 700_001, 0, 0, at + len + 700_001, 1_000_000, at, 0]);
    assert_eq!(guest.sys(libc::SYS_preadv, &[fd, vector, 4, 11]), 1_700_001);
    let mut part = vec![0; 1_700_000];
    window(at + len, &mut part);
    assert!(part == bytes[11..1_700_011]);
    let new = open("/d/new", libc::O_CREAT | libc::O_WRONLY);
    assert_eq!(guest.sys(libc::SYS_write, &[new, at, len]), len);
    assert_eq!(
        guest.sys(libc::SYS_pwritev, &[new, guest.words(&[at, len]), 1, len]),
        len
    );
    let written = std::fs::read(scratch.0.join("new")).unwrap();
    assert!(written == [bytes.clone(), bytes.clone()].concat());
    // Up to what cannot be touched: what went before is told.
    let page = guest.sys(libc::SYS_mmap, &[0, 1 << 20, 3, 0x22, -1, 0]);
    assert_eq!(guest.sys(libc::SYS_munmap, &[page + (512 << 10), 512 << 10]), 0);
    assert_eq!(guest.sys(libc::SYS_pread64, &[fd, page, 1 << 20, 0]), 512 << 10);
    assert_eq!(guest.sys(libc::SYS_getrandom, &[at, len, 0]), len);
    let private = guest.sys(libc::SYS_mmap, &[0, len, 1, libc::MAP_PRIVATE.into(), fd, 0]);
    window(private, &mut seen);
    assert!(seen == bytes);
}
