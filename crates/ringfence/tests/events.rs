//! Counters, timers and sets of descriptors: what they do as Linux does it, and what a hostile program gets.

mod support;

use std::net::TcpListener;

use ringfence::policy::{Captured, Policy, Rights, Stream};
use support::guest::{Guest, Scratch, errno};

const IN: u32 = libc::EPOLLIN as u32;
const OUT: u32 = libc::EPOLLOUT as u32;
const ADD: i32 = libc::EPOLL_CTL_ADD;
const CHANGE: i32 = libc::EPOLL_CTL_MOD;
const REMOVE: i32 = libc::EPOLL_CTL_DEL;

/// Where nothing of the domain's is, but its header, which cannot be written.
const NOWHERE: i64 = 0x1000;

fn put(g: &Guest, bytes: &[u8]) -> i64 {
    g.domain.memory().put_slice(bytes).unwrap().leak().address() as i64
}

fn counter(g: &Guest, count: i64, flags: i32) -> i64 {
    let fd = g.sys(libc::SYS_eventfd2, &[count, flags.into()]);
    assert!(fd >= 0, "{fd}");
    fd
}

fn set(g: &Guest) -> i64 {
    let fd = g.sys(libc::SYS_epoll_create1, &[libc::EPOLL_CLOEXEC.into()]);
    assert!(fd >= 0, "{fd}");
    fd
}

fn change(g: &Guest, set: i64, operation: i32, fd: i64, events: u32, data: u64) -> i64 {
    let event = put(g, &[&events.to_ne_bytes()[..], &data.to_ne_bytes()].concat());
    g.sys(libc::SYS_epoll_ctl, &[set, operation.into(), fd, event])
}

/// What is ready now.
fn ready(g: &Guest, set: i64) -> Vec<(u32, u64)> {
    let at = g.buffer(12 * 8);
    let n = g.sys(libc::SYS_epoll_wait, &[set, at, 8, 0]);
    assert!((0..=8).contains(&n), "{n}");
    let bytes: Vec<u8> = g
        .read_words(at, 12)
        .iter()
        .flat_map(|w| w.to_ne_bytes())
        .collect();
    let event = |b: &[u8]| {
        (
            u32::from_ne_bytes(b[..4].try_into().unwrap()),
            u64::from_ne_bytes(b[4..12].try_into().unwrap()),
        )
    };
    bytes.chunks_exact(12).take(n as usize).map(event).collect()
}

fn give(g: &Guest, fd: i64, count: u64) -> i64 {
    g.sys(libc::SYS_write, &[fd, put(g, &count.to_ne_bytes()), 8])
}

fn take(g: &Guest, fd: i64) -> Result<i64, i64> {
    let at = g.buffer(8);
    match g.sys(libc::SYS_read, &[fd, at, 8]) {
        8 => Ok(g.read_words(at, 1)[0]),
        other => Err(other),
    }
}

#[test]
fn counters_count() {
    needs!(Policy);
    let g = Guest::new(Policy::new());
    let (eagain, einval) = (errno(libc::EAGAIN), errno(libc::EINVAL));
    let fd = counter(&g, 5, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC);
    assert_eq!(
        g.sys(libc::SYS_fcntl, &[fd, libc::F_GETFD.into()]),
        libc::FD_CLOEXEC.into()
    );
    assert_eq!(take(&g, fd), Ok(5));
    assert_eq!(take(&g, fd), Err(eagain));
    assert_eq!([give(&g, fd, 2), give(&g, fd, 3)], [8, 8]);
    // A copy is the same counter.
    let copy = g.sys(libc::SYS_dup, &[fd]);
    assert_eq!(take(&g, copy), Ok(5));
    assert_eq!(give(&g, fd, u64::MAX), einval);
    assert_eq!(give(&g, fd, u64::MAX - 1), 8);
    assert_eq!(give(&g, fd, 1), eagain);
    assert_eq!(take(&g, fd), Ok(-2));
    for len in [0, 7] {
        assert_eq!(g.sys(libc::SYS_read, &[fd, g.buffer(8), len]), einval);
        assert_eq!(g.sys(libc::SYS_write, &[fd, g.buffer(8), len]), einval);
    }
    assert_eq!(g.sys(libc::SYS_write, &[fd, -8, 16]), errno(libc::EFAULT));
    assert_eq!(
        g.sys(libc::SYS_pread64, &[fd, g.buffer(8), 8, 0]),
        errno(libc::ESPIPE)
    );
    assert_eq!(g.sys(libc::SYS_lseek, &[fd, 0, 0]), errno(libc::ESPIPE));
    let semaphore = counter(&g, 2, libc::EFD_SEMAPHORE);
    let nonblocking = g.words(&[1]);
    assert_eq!(
        g.sys(libc::SYS_ioctl, &[semaphore, libc::FIONBIO as i64, nonblocking]),
        0
    );
    let flags = g.sys(libc::SYS_fcntl, &[semaphore, libc::F_GETFL.into()]);
    assert_eq!(flags, (libc::O_RDWR | libc::O_NONBLOCK).into());
    let taken = [(); 3].map(|()| take(&g, semaphore));
    assert_eq!(taken, [Ok(1), Ok(1), Err(eagain)]);
    assert_eq!(g.sys(libc::SYS_eventfd2, &[0, 2]), einval);
    assert_eq!(g.sys(libc::SYS_eventfd, &[7, -1]), semaphore + 1);
}

#[test]
fn sets_tell_what_is_ready() {
    needs!(Policy);
    let g = Guest::new(Policy::new());
    let [read, write] = g.pipe();
    let all = set(&g);
    assert_eq!(change(&g, all, ADD, read, IN, u64::MAX), 0);
    assert_eq!(change(&g, all, ADD, write, OUT, 7), 0);
    assert_eq!(ready(&g, all), [(OUT, 7)]);
    assert_eq!(g.sys(libc::SYS_write, &[write, g.buffer(4), 4]), 4);
    // Again and again, as long as it is so.
    for _ in 0..2 {
        let mut both = ready(&g, all);
        both.sort_unstable();
        assert_eq!(both, [(IN, u64::MAX), (OUT, 7)]);
    }
    assert_eq!(change(&g, all, REMOVE, write, 0, 0), 0);
    // Once for each time that more comes.
    let edge = IN | libc::EPOLLET as u32;
    assert_eq!(change(&g, all, CHANGE, read, edge, 1), 0);
    assert_eq!([ready(&g, all), ready(&g, all)], [vec![(IN, 1)], vec![]]);
    assert_eq!(g.sys(libc::SYS_write, &[write, g.buffer(4), 4]), 4);
    assert_eq!([ready(&g, all), ready(&g, all)], [vec![(IN, 1)], vec![]]);
    // Once, until it is asked for anew.
    let once = IN | libc::EPOLLONESHOT as u32;
    for data in [2, 3] {
        assert_eq!(change(&g, all, CHANGE, read, once, data), 0);
        assert_eq!([ready(&g, all), ready(&g, all)], [vec![(IN, data)], vec![]]);
    }
    // A set is ready when something in it is.
    assert_eq!(change(&g, all, CHANGE, read, IN, 4), 0);
    let asked = g.words(&[all | i64::from(libc::POLLIN) << 32]);
    assert_eq!(g.sys(libc::SYS_poll, &[asked, 1, -1]), 1);
    // The other end is closed; then this one is, and with it goes the member, unless there is a copy.
    assert_eq!(g.sys(libc::SYS_close, &[write]), 0);
    assert_eq!(ready(&g, all), [(IN | libc::EPOLLHUP as u32, 4)]);
    let copy = g.sys(libc::SYS_dup, &[read]);
    assert_eq!(g.sys(libc::SYS_close, &[read]), 0);
    assert_eq!(ready(&g, all).len(), 1);
    assert_eq!(g.sys(libc::SYS_close, &[copy]), 0);
    assert_eq!(ready(&g, all), []);
    // With the same number, another one.
    let again = counter(&g, 1, 0);
    assert_eq!(again, read);
    assert_eq!(change(&g, all, ADD, again, IN, 5), 0);
    assert_eq!(ready(&g, all), [(IN, 5)]);
    assert_eq!(g.sys(libc::SYS_epoll_create, &[1]), write);
}

#[test]
fn sets_of_sockets() {
    needs!(Policy);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let g = Guest::new(Policy::new().connect(listener.local_addr().unwrap()));
    let (fd, peer) = g.connected(&listener);
    let all = set(&g);
    let events = IN | OUT | libc::EPOLLRDHUP as u32;
    assert_eq!(change(&g, all, ADD, fd, events, 9), 0);
    assert_eq!(ready(&g, all), [(OUT, 9)]);
    drop(peer);
    assert_eq!(change(&g, all, CHANGE, fd, libc::EPOLLRDHUP as u32, 8), 0);
    let at = g.buffer(12);
    assert_eq!(g.sys(libc::SYS_epoll_wait, &[all, at, 1, -1]), 1);
    assert_eq!(
        ready(&g, all)[0].0 & libc::EPOLLRDHUP as u32,
        libc::EPOLLRDHUP as u32
    );
}

#[test]
fn what_a_set_refuses() {
    needs!(Policy);
    let scratch = Scratch::new("events");
    let g = Guest::new(
        Policy::new()
            .dir(&scratch.0, "/d", Rights::Write)
            .stdin(Stream::Null)
            .stdout(Stream::Capture(Captured::default())),
    );
    let all = set(&g);
    let fd = counter(&g, 0, 0);
    let file = g.sys(libc::SYS_open, &[g.text("/d/file"), 0, 0]);
    let directory = g.sys(libc::SYS_open, &[g.text("/d"), libc::O_DIRECTORY.into(), 0]);
    let zero = g.sys(libc::SYS_open, &[g.text("/dev/zero"), 0, 0]);
    assert!(file > 0 && directory > 0 && zero > 0);
    for always in [0, 1, file, directory, zero] {
        assert_eq!(
            change(&g, all, ADD, always, IN, 0),
            errno(libc::EPERM),
            "{always}"
        );
    }
    assert_eq!(change(&g, all, ADD, all, IN, 0), errno(libc::EINVAL));
    for (operation, wrong) in [
        (REMOVE, libc::ENOENT),
        (CHANGE, libc::ENOENT),
        (0, libc::EINVAL),
        (-1, libc::EINVAL),
    ] {
        assert_eq!(change(&g, all, operation, fd, IN, 0), errno(wrong), "{operation}");
    }
    assert_eq!(change(&g, all, ADD, fd, IN, 0), 0);
    assert_eq!(change(&g, all, ADD, fd, IN, 0), errno(libc::EEXIST));
    let copy = g.sys(libc::SYS_dup, &[fd]);
    assert_eq!(change(&g, all, ADD, copy, IN, 0), errno(libc::EEXIST));
    assert_eq!(change(&g, fd, ADD, all, IN, 0), errno(libc::EINVAL));
    assert_eq!(change(&g, file, ADD, fd, IN, 0), errno(libc::EINVAL));
    for bad in [-1, 63, 99, i64::MAX] {
        assert_eq!(change(&g, bad, ADD, fd, IN, 0), errno(libc::EBADF));
        assert_eq!(change(&g, all, ADD, bad, IN, 0), errno(libc::EBADF));
        assert_eq!(
            g.sys(libc::SYS_epoll_wait, &[bad, g.buffer(12), 1, 0]),
            errno(libc::EBADF)
        );
    }
    give(&g, fd, 1);
    for wild in [0, NOWHERE, -4] {
        let args = [all, CHANGE.into(), fd, wild];
        assert_eq!(
            g.sys(libc::SYS_epoll_ctl, &args),
            errno(libc::EFAULT),
            "{wild:#x}"
        );
        let args = [all, wild, 8, 0];
        assert_eq!(
            g.sys(libc::SYS_epoll_wait, &args),
            errno(libc::EFAULT),
            "{wild:#x}"
        );
    }
    for most in [0, -1, i64::from(i32::MIN), 1 << 32] {
        let args = [all, g.buffer(12), most, 0];
        assert_eq!(g.sys(libc::SYS_epoll_wait, &args), errno(libc::EINVAL), "{most}");
    }
    // More than there is room for: what is ready fits.
    let args = [all, g.buffer(12), i32::MAX.into(), 0];
    assert_eq!(g.sys(libc::SYS_epoll_wait, &args), 1);
    assert_eq!(
        g.sys(libc::SYS_epoll_wait, &[fd, g.buffer(12), 1, 0]),
        errno(libc::EINVAL)
    );
    assert_eq!(g.sys(libc::SYS_read, &[all, g.buffer(8), 8]), errno(libc::EINVAL));
    assert_eq!(g.sys(libc::SYS_epoll_create1, &[1]), errno(libc::EINVAL));
    assert_eq!(g.sys(libc::SYS_epoll_create, &[0]), errno(libc::EINVAL));
}

#[test]
fn there_are_so_many_and_no_more() {
    needs!(Policy);
    let g = Guest::new(Policy::new().descriptors(200));
    let made = (0..)
        .take_while(|_| g.sys(libc::SYS_epoll_create1, &[0]) >= 0)
        .count();
    assert_eq!(made, 64);
    assert_eq!(g.sys(libc::SYS_epoll_create1, &[0]), errno(libc::EMFILE));
    let made = (0..)
        .take_while(|_| g.sys(libc::SYS_eventfd2, &[0, 0]) >= 0)
        .count();
    assert_eq!(made, 200 - 64);
    assert_eq!(g.sys(libc::SYS_eventfd2, &[0, 0]), errno(libc::EMFILE));
    g.domain.reset().unwrap();
    assert_eq!(g.sys(libc::SYS_epoll_create1, &[0]), 0);
}

/// A set that is closed while somebody waits for it goes on for him, as in Linux.
#[test]
fn closed_while_somebody_waits() {
    needs!(Policy);
    let g = Guest::new(Policy::new());
    let (all, fd) = (set(&g), counter(&g, 0, 0));
    assert_eq!(change(&g, all, ADD, fd, IN, 3), 0);
    let at = g.buffer(12);
    let told = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| g.sys(libc::SYS_epoll_wait, &[all, at, 1, -1]));
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert_eq!(g.sys(libc::SYS_close, &[all]), 0);
        assert_eq!(give(&g, fd, 1), 8);
        waiting.join().unwrap()
    });
    // He may not have begun.
    assert!(told == 1 || told == errno(libc::EBADF), "{told}");
    assert_eq!(g.sys(libc::SYS_epoll_wait, &[all, at, 1, 0]), errno(libc::EBADF));
}

#[test]
fn timers_ring() {
    needs!(Policy);
    let g = Guest::new(Policy::new().clocks(true));
    let make = |clock: i32, flags: i32| g.sys(libc::SYS_timerfd_create, &[clock.into(), flags.into()]);
    let set_to = |fd: i64, flags: i32, words: [i64; 4], old: i64| {
        g.sys(
            libc::SYS_timerfd_settime,
            &[fd, flags.into(), g.words(&words), old],
        )
    };
    let einval = errno(libc::EINVAL);
    let fd = make(libc::CLOCK_MONOTONIC, libc::TFD_NONBLOCK);
    assert_eq!(fd, 0);
    assert_eq!(take(&g, fd), Err(errno(libc::EAGAIN)));
    let old = g.buffer(32);
    assert_eq!(set_to(fd, 0, [3, 4, 1000, 0], 0), 0);
    assert_eq!(g.sys(libc::SYS_timerfd_gettime, &[fd, old]), 0);
    let told = g.read_words(old, 4);
    assert_eq!(told[..2], [3, 4]);
    assert!((1..=1000).contains(&told[2]), "{told:?}");
    // Every nanosecond: as often as it was missed, at once.
    assert_eq!(set_to(fd, 0, [0, 1, 0, 1], old), 0);
    assert_eq!(g.read_words(old, 2), [3, 4]);
    let asked = g.words(&[fd | i64::from(libc::POLLIN) << 32]);
    assert_eq!(g.sys(libc::SYS_poll, &[asked, 1, -1]), 1);
    assert!(take(&g, fd).is_ok_and(|n| n >= 1));
    assert_eq!(set_to(fd, 0, [0; 4], 0), 0);
    assert_eq!(take(&g, fd), Err(errno(libc::EAGAIN)));
    // Whoever may wait waits; a time that has been is now.
    let waits = make(libc::CLOCK_REALTIME, 0);
    assert_eq!(set_to(waits, 0, [0, 0, 0, 1_000_000], 0), 0);
    assert_eq!(take(&g, waits), Ok(1));
    assert_eq!(set_to(waits, libc::TFD_TIMER_ABSTIME, [0, 0, 1, 0], 0), 0);
    let all = set(&g);
    assert_eq!(change(&g, all, ADD, waits, IN, 6), 0);
    let at = g.buffer(12);
    assert_eq!(g.sys(libc::SYS_epoll_wait, &[all, at, 1, -1]), 1);
    for words in [
        [0, -1, 0, 0],
        [0, 0, 0, 1_000_000_000],
        [-1, 0, 0, 0],
        [0, 0, i64::MIN, 0],
    ] {
        assert_eq!(set_to(fd, 0, words, 0), einval, "{words:?}");
    }
    assert_eq!(set_to(fd, -1, [0; 4], 0), einval);
    assert_eq!(set_to(all, 0, [0; 4], 0), einval);
    assert_eq!(set_to(77, 0, [0; 4], 0), errno(libc::EBADF));
    assert_eq!(give(&g, fd, 1), einval);
    for wild in [0, NOWHERE, -8] {
        let args = [fd, 0, wild, 0];
        assert_eq!(g.sys(libc::SYS_timerfd_settime, &args), errno(libc::EFAULT));
        assert_eq!(g.sys(libc::SYS_timerfd_gettime, &[fd, wild]), errno(libc::EFAULT));
    }
    // Those would wake the machine; the others are nobody's.
    for clock in [libc::CLOCK_REALTIME_ALARM, libc::CLOCK_BOOTTIME_ALARM] {
        assert_eq!(make(clock, 0), errno(libc::EPERM));
    }
    assert_eq!(make(libc::CLOCK_PROCESS_CPUTIME_ID, 0), einval);
    assert_eq!(make(libc::CLOCK_MONOTONIC, 1), einval);
}

/// A set in a set is ready when something in it is; no circles, and no chains that the kernel would have to walk for long.
#[test]
fn sets_in_sets_are_the_kernels_to_refuse() {
    needs!(Policy);
    let g = Guest::new(Policy::new());
    let [read, write] = g.pipe();
    let (outer, inner) = (set(&g), set(&g));
    assert_eq!(change(&g, inner, ADD, read, IN, 1), 0);
    assert_eq!(change(&g, outer, ADD, inner, IN, 2), 0);
    assert_eq!(ready(&g, outer), []);
    assert_eq!(g.sys(libc::SYS_write, &[write, g.buffer(4), 4]), 4);
    assert_eq!(
        (ready(&g, outer), ready(&g, inner)),
        (vec![(IN, 2)], vec![(IN, 1)])
    );
    assert_eq!(change(&g, inner, ADD, outer, IN, 3), errno(libc::ELOOP));
    let mut chain = outer;
    let refused = (0..20).find(|_| {
        let next = set(&g);
        let added = change(&g, next, ADD, chain, IN, 0);
        chain = next;
        added != 0
    });
    assert!(refused.is_some_and(|n| n < 10), "{refused:?}");
    // By a time in nanoseconds, or none.
    let at = g.buffer(12);
    let [empty, now] = [set(&g), g.words(&[0, 1])];
    assert_eq!(g.sys(libc::SYS_epoll_pwait2, &[outer, at, 1, 0, 0, 8]), 1);
    assert_eq!(
        g.sys(libc::SYS_epoll_pwait2, &[empty, at, 1, g.words(&[0, 0]), 0, 8]),
        0
    );
    assert_eq!(
        g.sys(libc::SYS_epoll_pwait2, &[empty, at, 1, now, 0, 8]),
        errno(libc::EPERM),
        "without clocks"
    );
    assert_eq!(
        g.sys(
            libc::SYS_epoll_pwait2,
            &[empty, at, 1, g.words(&[0, 1 << 40]), 0, 8]
        ),
        errno(libc::EINVAL)
    );
    let g = Guest::new(Policy::new().clocks(true));
    let (empty, at) = (set(&g), g.buffer(12));
    let short = g.words(&[0, 1000]);
    assert_eq!(g.sys(libc::SYS_epoll_pwait2, &[empty, at, 1, short, 0, 8]), 0);
}
