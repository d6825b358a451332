//! A host that closes what a policy has opened for a domain, and opens files of its own that get the numbers: the domain gets nothing of
//! them. One test, for it looks at all numbers of the process.

mod support;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use ringfence::policy::{Policy, Rights};
use support::guest::{Guest, Scratch, errno};

fn numbers() -> BTreeSet<i32> {
    let list = std::fs::read_dir("/proc/self/fd").unwrap();
    let number = |e: std::io::Result<std::fs::DirEntry>| e.unwrap().file_name().to_str()?.parse().ok();
    let mut all: BTreeSet<i32> = list.filter_map(number).collect();
    // The list's own.
    // SAFETY: asks only.
    all.retain(|&n| unsafe { libc::fcntl(n, libc::F_GETFD) } >= 0);
    all
}

/// What `make` opens in the host, besides what it gives.
fn opened<T>(make: impl FnOnce() -> T) -> (T, Vec<i32>) {
    let before = numbers();
    let made = make();
    (made, numbers().difference(&before).copied().collect())
}

fn made(fd: i64) -> OwnedFd {
    assert!(fd >= 0);
    // SAFETY: the kernel has just made it.
    unsafe { OwnedFd::from_raw_fd(fd as i32) }
}

/// Puts a file of the host's at a number that is not the host's.
fn take(number: i32, file: &(impl AsRawFd + ?Sized)) {
    // SAFETY: what a host does that closes what is not its own.
    unsafe { assert_eq!(libc::dup3(file.as_raw_fd(), number, libc::O_CLOEXEC), number) };
}

fn give_up(number: i32) {
    // SAFETY: taken above, and left alone by everybody since.
    unsafe { assert_eq!(libc::close(number), 0, "{number} was closed by somebody else") };
}

/// Files of the host's, and what they were before a domain could get at them.
struct Hosts {
    /// The one that the domain may read, opened for both, at a position.
    same: File,
    counter: OwnedFd,
    set: OwnedFd,
    timer: OwnedFd,
    pipe: [OwnedFd; 2],
    directory: OwnedFd,
}

impl Hosts {
    fn new(scratch: &Scratch) -> Hosts {
        let mut same = File::options()
            .read(true)
            .write(true)
            .open(scratch.0.join("file"))
            .unwrap();
        same.seek(std::io::SeekFrom::Start(5)).unwrap();
        let mut pipe = [0; 2];
        // SAFETY: integers, and an array of ours.
        let (counter, set, timer) = unsafe {
            assert_eq!(libc::pipe2(pipe.as_mut_ptr(), libc::O_NONBLOCK), 0);
            (
                made(libc::eventfd(7, libc::EFD_NONBLOCK).into()),
                made(libc::epoll_create1(0).into()),
                made(libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_NONBLOCK).into()),
            )
        };
        let pipe = pipe.map(|fd| made(fd.into()));
        let mut event = libc::epoll_event { events: 1, u64: 7 };
        // SAFETY: descriptors and a structure of ours.
        unsafe {
            let (set, member) = (set.as_raw_fd(), counter.as_raw_fd());
            assert_eq!(
                libc::epoll_ctl(set, libc::EPOLL_CTL_ADD, member, &raw mut event),
                0
            );
        }
        let hosts = Hosts {
            same,
            counter,
            set,
            timer,
            pipe,
            directory: File::open(&scratch.0).unwrap().into(),
        };
        hosts.tell(b"of the host's");
        hosts
    }

    fn tell(&self, bytes: &[u8]) {
        let mut end = File::from(self.pipe[1].try_clone().unwrap());
        end.write_all(bytes).unwrap();
    }

    fn all(&self) -> [&dyn AsRawFd; 7] {
        let [read, write] = &self.pipe;
        [
            &self.same,
            &self.counter,
            &self.set,
            &self.timer,
            read,
            write,
            &self.directory,
        ]
    }

    /// Nobody has read, written, changed or moved anything.
    fn are_as_before(mut self, scratch: &Scratch) {
        assert_eq!(self.same.stream_position().unwrap(), 5);
        assert_eq!(
            std::fs::read(scratch.0.join("file")).unwrap(),
            b"0123456789abcdef"
        );
        let mut word = [0; 8];
        File::from(self.counter.try_clone().unwrap())
            .read_exact(&mut word)
            .unwrap();
        assert_eq!(u64::from_ne_bytes(word), 7);
        File::from(self.counter.try_clone().unwrap())
            .write_all(&1u64.to_ne_bytes())
            .unwrap();
        let mut event = libc::epoll_event { events: 0, u64: 0 };
        // SAFETY: one structure of ours.
        let ready = unsafe { libc::epoll_wait(self.set.as_raw_fd(), &raw mut event, 1, 0) };
        let (events, data) = (event.events, event.u64);
        assert_eq!((ready, events, data), (1, 1, 7));
        // SAFETY: fills a structure of ours.
        let left = unsafe {
            let mut left: libc::itimerspec = std::mem::zeroed();
            assert_eq!(libc::timerfd_gettime(self.timer.as_raw_fd(), &raw mut left), 0);
            left
        };
        assert_eq!(
            (left.it_value.tv_sec, left.it_value.tv_nsec),
            (0, 0),
            "nobody has set it"
        );
        let mut held = [0; 64];
        let mut end = File::from(self.pipe[0].try_clone().unwrap());
        let len = end.read(&mut held).unwrap();
        assert_eq!(&held[..len], b"of the host's");
        for file in self.all() {
            // SAFETY: asks only.
            let flags = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFL) };
            assert_eq!(flags & libc::O_APPEND, 0);
        }
    }
}

/// Everything that a domain does with a descriptor; each answer.
fn deeds(g: &Guest, fd: i64) -> Vec<(&'static str, i64)> {
    let at = g.words(&[1; 8]);
    let vector = g.words(&[at, 8]);
    let other = g.sys(libc::SYS_eventfd2, &[0, 0]);
    let set = g.sys(libc::SYS_epoll_create1, &[0]);
    let event = g.words(&[1, 1]);
    let poll = g.words(&[fd | 1 << 32]);
    let n = |call: i32| i64::from(call);
    let deeds: [(&str, i64, &[i64]); 30] = [
        ("read", libc::SYS_read, &[fd, at, 8]),
        ("write", libc::SYS_write, &[fd, at, 8]),
        ("pread", libc::SYS_pread64, &[fd, at, 8, 0]),
        ("pwrite", libc::SYS_pwrite64, &[fd, at, 8, 0]),
        ("readv", libc::SYS_readv, &[fd, vector, 1]),
        ("writev", libc::SYS_writev, &[fd, vector, 1]),
        ("preadv", libc::SYS_preadv, &[fd, vector, 1, 0]),
        ("pwritev", libc::SYS_pwritev, &[fd, vector, 1, 0]),
        ("lseek", libc::SYS_lseek, &[fd, 0, n(libc::SEEK_END)]),
        ("fstat", libc::SYS_fstat, &[fd, g.buffer(144)]),
        (
            "statx",
            libc::SYS_statx,
            &[fd, g.text(""), n(libc::AT_EMPTY_PATH), 0xFFF, g.buffer(256)],
        ),
        ("ftruncate", libc::SYS_ftruncate, &[fd, 3]),
        ("fallocate", libc::SYS_fallocate, &[fd, 0, 0, 100]),
        ("fchmod", libc::SYS_fchmod, &[fd, 0]),
        ("utimensat", libc::SYS_utimensat, &[fd, 0, 0, 0]),
        ("fsync", libc::SYS_fsync, &[fd]),
        ("flock", libc::SYS_flock, &[fd, n(libc::LOCK_SH | libc::LOCK_NB)]),
        (
            "append",
            libc::SYS_fcntl,
            &[fd, n(libc::F_SETFL), n(libc::O_APPEND)],
        ),
        ("getfl", libc::SYS_fcntl, &[fd, n(libc::F_GETFL)]),
        ("getdents", libc::SYS_getdents64, &[fd, g.buffer(1024), 1024]),
        ("mmap", libc::SYS_mmap, &[0, 4096, 1, n(libc::MAP_SHARED), fd, 0]),
        (
            "private",
            libc::SYS_mmap,
            &[0, 4096, 1, n(libc::MAP_PRIVATE), fd, 0],
        ),
        (
            "timer",
            libc::SYS_timerfd_settime,
            &[fd, 0, g.words(&[0, 0, 1000, 0]), 0],
        ),
        (
            "member",
            libc::SYS_epoll_ctl,
            &[set, n(libc::EPOLL_CTL_ADD), fd, event],
        ),
        (
            "set",
            libc::SYS_epoll_ctl,
            &[fd, n(libc::EPOLL_CTL_ADD), other, event],
        ),
        ("wait", libc::SYS_epoll_wait, &[fd, g.buffer(48), 4, 0]),
        ("shutdown", libc::SYS_shutdown, &[fd, n(libc::SHUT_RDWR)]),
        (
            "recvfrom",
            libc::SYS_recvfrom,
            &[fd, at, 8, n(libc::MSG_DONTWAIT), 0, 0],
        ),
        ("ioctl", libc::SYS_ioctl, &[fd, libc::FIONREAD as i64, at]),
        ("poll", libc::SYS_poll, &[poll, 1, 0]),
    ];
    let done = deeds.map(|(name, number, args)| (name, g.sys(number, args)));
    let told = g.read_words(poll, 1)[0] >> 48;
    let done = done.map(|(name, value)| (name, if name == "poll" { told } else { value }));
    for fd in [other, set] {
        assert_eq!(g.sys(libc::SYS_close, &[fd]), 0);
    }
    done.to_vec()
}

/// A deed has failed because the descriptor is none, or because no descriptor of that kind does it.
fn has_failed(name: &str, value: i64) -> bool {
    match name {
        "poll" => value == i64::from(libc::POLLNVAL),
        _ => [
            libc::EBADF,
            libc::EINVAL,
            libc::ESPIPE,
            libc::ENOTSOCK,
            libc::ENOTDIR,
            libc::ENODEV,
            libc::EROFS,
        ]
        .contains(&-(value as i32)),
    }
}

/// Makes a descriptor of some kind in the domain.
type Make = fn(&Guest) -> i64;

const KINDS: [(&str, Make); 9] = [
    ("file", |g| {
        g.sys(libc::SYS_open, &[g.text("/d/file"), libc::O_RDWR.into()])
    }),
    ("for reading", |g| g.sys(libc::SYS_open, &[g.text("/d/file"), 0])),
    ("directory", |g| g.sys(libc::SYS_open, &[g.text("/d"), 0])),
    ("pipe's reader", |g| {
        let [read, write] = g.pipe();
        assert_eq!(g.sys(libc::SYS_close, &[write]), 0);
        read
    }),
    ("pipe's writer", |g| {
        let [read, write] = g.pipe();
        assert_eq!(g.sys(libc::SYS_close, &[read]), 0);
        write
    }),
    ("socket", |g| {
        let at = g.words(&[0]);
        let kind = i64::from(libc::SOCK_STREAM);
        assert_eq!(
            g.sys(libc::SYS_socketpair, &[libc::AF_UNIX.into(), kind, 0, at]),
            0
        );
        let both = g.read_words(at, 1)[0];
        assert_eq!(g.sys(libc::SYS_close, &[both >> 32]), 0);
        both & 0xFFFF_FFFF
    }),
    ("counter", |g| {
        g.sys(libc::SYS_eventfd2, &[0, libc::EFD_NONBLOCK.into()])
    }),
    ("timer", |g| {
        g.sys(
            libc::SYS_timerfd_create,
            &[libc::CLOCK_MONOTONIC.into(), libc::TFD_NONBLOCK.into()],
        )
    }),
    ("set", |g| g.sys(libc::SYS_epoll_create1, &[0])),
];

fn guest(scratch: &Scratch) -> Guest {
    Guest::new(Policy::new().clocks(true).dir(&scratch.0, "/d", Rights::Write))
}

#[test]
fn files_that_get_the_numbers_of_a_policys_are_left_alone() {
    needs!(Policy);
    let scratch = Scratch::new("taken");
    let g = guest(&scratch);
    // What the list of files takes for the first time is no descriptor of the domain's.
    let _ = opened(|| ());
    for (what, make) in KINDS {
        for at in 0..7 {
            let (fd, host) = opened(|| make(&g));
            assert!(fd >= 0 && host.len() == 1, "{what}: {fd}, {host:?}");
            let hosts = Hosts::new(&scratch);
            take(host[0], hosts.all()[at]);
            for (name, value) in deeds(&g, fd) {
                assert!(has_failed(name, value), "{what}, {at}: {name} gave {value}");
            }
            // A copy is the same open file, and both are closed without harm.
            let copy = g.sys(libc::SYS_dup, &[fd]);
            assert!(copy >= 0);
            assert_eq!(g.sys(libc::SYS_read, &[copy, g.buffer(8), 8]), errno(libc::EBADF));
            for fd in [fd, copy] {
                assert_eq!(g.sys(libc::SYS_close, &[fd]), 0);
            }
            give_up(host[0]);
            hosts.are_as_before(&scratch);
        }
    }
    // The same number in the hands of another domain: it is that one's.
    let other = guest(&scratch);
    for (what, make) in KINDS {
        let (fd, host) = opened(|| make(&g));
        give_up(host[0]);
        let (theirs, number) = opened(|| make(&other));
        assert_eq!(number, host, "{what}");
        for (name, value) in deeds(&g, fd) {
            assert!(has_failed(name, value), "{what}: {name} gave {value}");
        }
        assert_eq!(g.sys(libc::SYS_close, &[fd]), 0);
        let buffer = other.buffer(144);
        assert_eq!(other.sys(libc::SYS_fstat, &[theirs, buffer]), 0, "{what}");
        assert_eq!(other.sys(libc::SYS_close, &[theirs]), 0);
    }
    // A granted directory, and what a reset gives back.
    let (g, mut host) = opened(|| guest(&scratch));
    let real = scratch.0.canonicalize().unwrap();
    let is = |n: i32| std::fs::read_link(format!("/proc/self/fd/{n}")).is_ok_and(|path| path == real);
    host.retain(|&n| is(n));
    assert_eq!(host.len(), 1, "the directory");
    let secret = Scratch::new("taken-secret");
    std::fs::write(secret.0.join("secret"), "s").unwrap();
    take(host[0], &File::open(&secret.0).unwrap());
    for (number, args) in [
        (libc::SYS_open, [g.text("/d/secret"), 0]),
        (libc::SYS_stat, [g.text("/d/secret"), g.buffer(144)]),
        (libc::SYS_unlink, [g.text("/d/secret"), 0]),
        (libc::SYS_mkdir, [g.text("/d/new"), 0o755]),
        (libc::SYS_chdir, [g.text("/d"), 0]),
    ] {
        assert_eq!(g.sys(number, &args), errno(libc::EBADF), "{number}");
    }
    g.domain.reset().unwrap();
    drop(g);
    give_up(host[0]);
    assert_eq!(std::fs::read(secret.0.join("secret")).unwrap(), b"s");
}
