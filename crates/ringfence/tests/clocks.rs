//! Without clocks a domain learns no time, by whatever call.

mod support;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ringfence::policy::{Policy, Rights, Stream};
use support::guest::{Guest, Scratch, errno};

fn policy(scratch: &Scratch) -> Policy {
    Policy::new()
        .dir(&scratch.0, "/d", Rights::Write)
        .randomness(true)
        .stdin(Stream::Inherit)
        .connect("127.0.0.1:9".parse().unwrap())
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// Every time of a file that the domain changes itself, by each call that shows them.
#[test]
fn times_of_files_are_not_shown() {
    needs!(Policy);
    let scratch = Scratch::new("clock-files");
    for clocks in [false, true] {
        let g = Guest::new(policy(&scratch).clocks(clocks));
        let at = g.buffer(256);
        let path = g.text("/d/file");
        let open = [path, libc::O_RDWR.into(), 0];
        let fd = g.sys(libc::SYS_open, &open);
        let dir = g.sys(libc::SYS_open, &[g.text("/d"), libc::O_DIRECTORY.into(), 0]);
        let nothing = g.text("");
        let empty = i64::from(libc::AT_EMPTY_PATH);
        assert!(fd > 0 && dir > 0);
        for touch in [
            (libc::SYS_utimensat, vec![fd, 0, 0, 0]),
            (
                libc::SYS_utimensat,
                vec![fd, 0, g.words(&[0, libc::UTIME_NOW, 0, libc::UTIME_NOW]), 0],
            ),
            (libc::SYS_utimensat, vec![libc::AT_FDCWD.into(), path, 0, 0]),
            (libc::SYS_write, vec![fd, at, 1]),
        ] {
            assert!(g.sys(touch.0, &touch.1) >= 0);
            for (what, number, args, times) in [
                ("fstat", libc::SYS_fstat, vec![fd, at], 9..15),
                ("fstat of a directory", libc::SYS_fstat, vec![dir, at], 9..15),
                ("stat", libc::SYS_stat, vec![path, at], 9..15),
                ("lstat", libc::SYS_lstat, vec![path, at], 9..15),
                (
                    "newfstatat",
                    libc::SYS_newfstatat,
                    vec![dir, g.text("file"), at, 0],
                    9..15,
                ),
                (
                    "newfstatat, empty",
                    libc::SYS_newfstatat,
                    vec![fd, nothing, at, empty],
                    9..15,
                ),
                (
                    "statx",
                    libc::SYS_statx,
                    vec![dir, g.text("file"), 0, 0xFFFF, at],
                    8..16,
                ),
                (
                    "statx, empty",
                    libc::SYS_statx,
                    vec![fd, nothing, empty, 0xFFFF, at],
                    8..16,
                ),
            ] {
                g.domain.memory().put_slice(&[0u8; 8]).unwrap();
                assert_eq!(g.sys(number, &args), 0, "{what}");
                let words = g.read_words(at, 32);
                assert_eq!(words[times].iter().any(|w| *w != 0), clocks, "{what}");
                assert!(words[..8].iter().any(|w| *w != 0), "{what}: the rest is told");
            }
        }
    }
}

/// A time-out is a clock. One of 0 does not wait, and none at all does not tell.
#[test]
fn there_are_no_time_outs() {
    needs!(Policy);
    let scratch = Scratch::empty("clock-waits");
    let g = Guest::new(policy(&scratch));
    let [read, write] = g.pipe();
    let at = g.buffer(8);
    let asked = g.words(&[read | i64::from(libc::POLLIN) << 32]);
    let set = || g.words(&[1 << read]);
    let time = |words: [i64; 2]| g.words(&words);
    let eperm = errno(libc::EPERM);
    assert_eq!(g.sys(libc::SYS_poll, &[asked, 1, 1]), eperm);
    assert_eq!(g.sys(libc::SYS_poll, &[asked, 1, 0]), 0);
    assert_eq!(g.sys(libc::SYS_ppoll, &[asked, 1, time([0, 1]), 0]), eperm);
    assert_eq!(g.sys(libc::SYS_select, &[8, set(), 0, 0, time([0, 1])]), eperm);
    assert_eq!(
        g.sys(libc::SYS_pselect6, &[8, set(), 0, 0, time([1, 0]), 0]),
        eperm
    );
    assert_eq!(g.sys(libc::SYS_pselect6, &[8, set(), 0, 0, time([0, 0]), 0]), 0);
    let all = g.sys(libc::SYS_epoll_create1, &[0]);
    assert_eq!(g.sys(libc::SYS_epoll_wait, &[all, g.buffer(12), 1, 1]), eperm);
    assert_eq!(
        g.sys(libc::SYS_epoll_pwait, &[all, g.buffer(12), 1, 1, 0, 8]),
        eperm
    );
    assert_eq!(g.sys(libc::SYS_epoll_wait, &[all, g.buffer(12), 1, 0]), 0);
    assert_eq!(g.sys(libc::SYS_timerfd_create, &[1, 0]), eperm);
    let word = g.words(&[7]);
    let wait = i64::from(libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG);
    assert_eq!(g.sys(libc::SYS_futex, &[word, wait, 7, time([0, 1000])]), eperm);
    assert_eq!(g.sys(libc::SYS_futex, &[word, wait, 8, 0]), errno(libc::EAGAIN));
    // Without a time-out all of them wait, for what can be had.
    assert_eq!(g.sys(libc::SYS_write, &[write, at, 8]), 8);
    assert_eq!(g.sys(libc::SYS_poll, &[asked, 1, -1]), 1);
    assert_eq!(g.sys(libc::SYS_select, &[8, set(), 0, 0, 0]), 1);
    // A wait for a word does not come back by itself either: slices of it would be ticks.
    g.domain.set_time_limit(Some(Duration::from_millis(60))).unwrap();
    let error = g.raw(libc::SYS_futex, &[word, wait, 7, 0]).unwrap_err();
    assert!(matches!(
        error.fault().map(|f| &f.kind),
        Some(ringfence::FaultKind::TimeLimit)
    ));
}

/// All system calls there are, with all that is granted but clocks: none puts anything into the domain's memory that looks like
/// the time, and none returns it.
#[test]
fn no_call_tells_the_time() {
    needs!(Policy);
    let scratch = Scratch::new("clock-all");
    let guest = || Guest::new(policy(&scratch));
    let mut g = guest();
    // By name, what should say so at once.
    for number in [
        libc::SYS_clock_gettime,
        libc::SYS_clock_getres,
        libc::SYS_gettimeofday,
        libc::SYS_time,
        libc::SYS_times,
        libc::SYS_getrusage,
        libc::SYS_nanosleep,
        libc::SYS_clock_nanosleep,
    ] {
        let at = g.buffer(256);
        assert_eq!(g.sys(number, &[at, at, at, at]), errno(libc::EPERM), "{number}");
        assert_eq!(g.sys(number, &[0, at, at, at]), errno(libc::EPERM), "{number}");
    }
    let ends = [
        libc::SYS_exit,
        libc::SYS_exit_group,
        libc::SYS_kill,
        libc::SYS_tkill,
        libc::SYS_tgkill,
    ];
    let kinds: [&[i64]; 8] = [
        // p: a buffer, f: a file, d: its directory, n: its name, s: a socket; other numbers are themselves.
        &[-1, -1, -1, -1, -1, -1],
        &[0, -1, -1, -1, -1, -1],
        &[-2, -1, 64, 0, -1, -1],
        &[-4, -1, -1, -1, 0, 0],
        &[-3, -4, -1, 0, -1, -1],
        &[-3, -4, 0, 0xFFFF, -1, -1],
        &[-5, 1, 4, -1, -1, -1],
        &[1, -1, 1, 0, -1, 0],
    ];
    for number in (0..470).filter(|n| !ends.contains(n)) {
        for kind in kinds {
            let at = g.buffer(4096);
            let file = g.sys(libc::SYS_open, &[g.text("/d/file"), libc::O_RDWR.into(), 0]);
            let dir = g.sys(libc::SYS_open, &[g.text("/d"), libc::O_DIRECTORY.into(), 0]);
            let socket = g.socket(0);
            let name = g.text("file");
            // Something just happened.
            g.sys(libc::SYS_utimensat, &[file, 0, 0, 0]);
            let args: Vec<i64> = kind
                .iter()
                .map(|a| match a {
                    -1 => at,
                    -2 => file,
                    -3 => dir,
                    -4 => name,
                    -5 => socket,
                    other => *other,
                })
                .collect();
            // Only this one may wait.
            g.domain.set_time_limit(Some(Duration::from_millis(50))).unwrap();
            let result = g.raw(number, &args);
            g.domain.set_time_limit(None).unwrap();
            let about = now() - 100..now() + 100;
            let Ok(value) = result else {
                g = guest();
                continue;
            };
            assert!(!about.contains(&(value as u64)), "{number}: {value}");
            let mut seen = g.read_words(at, 512);
            seen.iter_mut().for_each(|w| *w &= i64::MAX);
            for word in seen {
                let word = word as u64;
                let halves = [word & 0xFFFF_FFFF, word >> 32];
                let told = halves.iter().any(|h| about.contains(h));
                assert!(!told, "call {number}{args:x?} told the time");
            }
            for fd in [file, dir, socket] {
                g.sys(libc::SYS_close, &[fd]);
            }
        }
    }
    // Files that would.
    for name in [
        "/proc/uptime",
        "/proc/stat",
        "/proc/self/stat",
        "/dev/rtc",
        "/sys/class/rtc/rtc0/time",
    ] {
        assert_eq!(
            g.sys(libc::SYS_open, &[g.text(name), 0, 0]),
            errno(libc::ENOENT),
            "{name}"
        );
    }
    // `sysinfo` says how much memory there is, and nothing about since when.
    let at = g.buffer(112);
    assert_eq!(g.sys(libc::SYS_sysinfo, &[at]), 0);
    assert_eq!(g.read_words(at, 4), [0; 4]);
}
