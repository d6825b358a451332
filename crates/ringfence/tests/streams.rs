//! Inherited streams have directions and no positions. One test in a program of its own, for it exchanges the standard
//! streams of the process.

mod support;

use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use ringfence::policy::Policy;
use support::guest::{Guest, Scratch, errno};

/// Puts `fd` in a standard stream's place until it is dropped.
struct Exchanged {
    number: i32,
    old: OwnedFd,
}

impl Exchanged {
    fn new(number: i32, fd: i32) -> Exchanged {
        // SAFETY: descriptors only; the test is the only one in its process.
        unsafe {
            let old = OwnedFd::from_raw_fd(libc::dup(number));
            assert_eq!(libc::dup2(fd, number), number);
            Exchanged { number, old }
        }
    }
}

impl Drop for Exchanged {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { libc::dup2(self.old.as_raw_fd(), self.number) };
    }
}

/// A terminal: the side of whoever types and reads, and that of the program.
fn terminal() -> (std::fs::File, std::fs::File) {
    // SAFETY: both descriptors are new.
    unsafe {
        let (mut outside, mut inside) = (0, 0);
        let null = std::ptr::null_mut();
        assert_eq!(
            libc::openpty(&raw mut outside, &raw mut inside, null, null.cast(), null.cast()),
            0
        );
        (
            std::fs::File::from_raw_fd(outside),
            std::fs::File::from_raw_fd(inside),
        )
    }
}

#[test]
fn streams_have_directions_and_no_positions() {
    needs!(Policy);
    let scratch = Scratch::new("streams");
    let open = |name: &str| {
        let mut options = std::fs::File::options();
        options.read(true).write(true).create(true).truncate(false);
        options.open(scratch.0.join(name)).unwrap()
    };
    let mut input = open("file");
    input.seek(SeekFrom::Start(4)).unwrap(); // the host has read as much
    let mut output = open("log");
    output.write_all(b"host's\n").unwrap();
    let (mut keyboard, screen) = terminal();
    keyboard.write_all(b"secret\n").unwrap();
    let held = [
        Exchanged::new(0, input.as_raw_fd()),
        Exchanged::new(1, output.as_raw_fd()),
        Exchanged::new(2, screen.as_raw_fd()),
    ];
    let guest = Guest::new(Policy::new().inherit_streams().clocks(true).disk_limit(10));
    let at = guest.buffer(4096);
    let vector = guest.words(&[at, 4]);
    let refused = |what: &str, number: i64, args: &[i64], want: i32| {
        assert_eq!(guest.sys(number, args), errno(want), "{what}");
    };
    // Through a second descriptor of the domain's for the same stream, too.
    let again = guest.sys(libc::SYS_dup, &[1]);
    assert_eq!(again, 3);
    for fd in [1, 2, again] {
        refused("read", libc::SYS_read, &[fd, at, 4], libc::EBADF);
        refused("readv", libc::SYS_readv, &[fd, vector, 1], libc::EBADF);
        refused(
            "FIONREAD",
            libc::SYS_ioctl,
            &[fd, libc::FIONREAD as i64, at],
            libc::ENOTTY,
        );
        assert_eq!(
            guest.sys(libc::SYS_fcntl, &[fd, libc::F_GETFL.into(), 0]),
            libc::O_WRONLY.into()
        );
        let asked = guest.words(&[fd | i64::from(libc::POLLIN | libc::POLLPRI) << 32]);
        assert_eq!(guest.sys(libc::SYS_poll, &[asked, 1, 0]), 0, "poll tells of keys");
        let all = guest.sys(libc::SYS_epoll_create1, &[0]);
        let keys = guest.words(&[(libc::EPOLLIN | libc::EPOLLPRI | libc::EPOLLRDNORM).into(), 0]);
        let added = guest.sys(libc::SYS_epoll_ctl, &[all, libc::EPOLL_CTL_ADD.into(), fd, keys]);
        assert_eq!(
            added,
            if fd == 2 { 0 } else { errno(libc::EPERM) },
            "a file or a terminal"
        );
        assert_eq!(
            guest.sys(libc::SYS_epoll_wait, &[all, at, 8, 0]),
            0,
            "epoll tells of keys"
        );
        assert_eq!(guest.sys(libc::SYS_close, &[all]), 0);
        let set = guest.words(&[1 << fd]);
        let now = guest.words(&[0, 0]);
        assert_eq!(
            guest.sys(libc::SYS_select, &[8, set, 0, 0, now]),
            0,
            "select tells of keys"
        );
    }
    refused("write", libc::SYS_write, &[0, at, 4], libc::EBADF);
    refused("writev", libc::SYS_writev, &[0, vector, 1], libc::EBADF);
    assert_eq!(
        guest.sys(libc::SYS_fcntl, &[0, libc::F_GETFL.into(), 0]),
        libc::O_RDONLY.into()
    );
    let file = libc::SYS_sendfile;
    for fd in [0, 1, 2, again] {
        for (what, number, args, want) in [
            ("pread", libc::SYS_pread64, vec![fd, at, 4, 0], libc::ESPIPE),
            ("pwrite", libc::SYS_pwrite64, vec![fd, at, 4, 0], libc::ESPIPE),
            ("preadv", libc::SYS_preadv, vec![fd, vector, 1, 0], libc::ESPIPE),
            ("pwritev", libc::SYS_pwritev, vec![fd, vector, 1, 0], libc::ESPIPE),
            (
                "preadv2",
                libc::SYS_preadv2,
                vec![fd, vector, 1, 0, 0, 0],
                libc::ENOSYS,
            ),
            (
                "pwritev2",
                libc::SYS_pwritev2,
                vec![fd, vector, 1, 0, 0, 0],
                libc::ENOSYS,
            ),
            ("lseek", libc::SYS_lseek, vec![fd, 0, 0], libc::ESPIPE),
            ("lseek, no change", libc::SYS_lseek, vec![fd, 0, 1], libc::ESPIPE),
            ("ftruncate", libc::SYS_ftruncate, vec![fd, 0], libc::EINVAL),
            (
                "fallocate",
                libc::SYS_fallocate,
                vec![fd, 0, 0, 4096],
                libc::ESPIPE,
            ),
            (
                "mmap",
                libc::SYS_mmap,
                vec![0, 4096, 1, libc::MAP_PRIVATE.into(), fd, 0],
                libc::ENODEV,
            ),
            (
                "mmap shared",
                libc::SYS_mmap,
                vec![0, 4096, 3, libc::MAP_SHARED.into(), fd, 0],
                libc::ENODEV,
            ),
            ("sendfile", file, vec![1, fd, 0, 4], libc::EINVAL),
            ("splice", libc::SYS_splice, vec![fd, 0, 1, 0, 4, 0], libc::ENOSYS),
            ("tee", libc::SYS_tee, vec![fd, 1, 4, 0], libc::ENOSYS),
            (
                "copy_file_range",
                libc::SYS_copy_file_range,
                vec![fd, 0, 1, 0, 4, 0],
                libc::EINVAL,
            ),
            ("fchmod", libc::SYS_fchmod, vec![fd, 0o777], libc::EINVAL),
            ("futimens", libc::SYS_utimensat, vec![fd, 0, 0, 0], libc::EINVAL),
            (
                "flock",
                libc::SYS_flock,
                vec![fd, libc::LOCK_EX.into()],
                libc::EINVAL,
            ),
            ("fsync", libc::SYS_fsync, vec![fd], libc::EINVAL),
            ("fstatfs", libc::SYS_fstatfs, vec![fd, at], libc::ENOSYS),
            (
                "statx",
                libc::SYS_statx,
                vec![fd, guest.text(""), libc::AT_EMPTY_PATH.into(), 0xFFF, at],
                libc::ENOSYS,
            ),
            (
                "TIOCSTI",
                libc::SYS_ioctl,
                vec![fd, libc::TIOCSTI as i64, at],
                libc::ENOTTY,
            ),
            (
                "TCSETS",
                libc::SYS_ioctl,
                vec![fd, libc::TCSETS as i64, at],
                libc::ENOTTY,
            ),
        ] {
            refused(&format!("{what} of {fd}"), number, &args, want);
        }
        let append = [
            fd,
            libc::F_SETFL.into(),
            (libc::O_APPEND | libc::O_NONBLOCK).into(),
        ];
        guest.sys(libc::SYS_fcntl, &append);
        assert_eq!(guest.sys(libc::SYS_fstat, &[fd, at]), 0);
        let status = guest.read_words(at, 18);
        let mode = status[3] as u32 & libc::S_IFMT;
        assert_eq!(mode, if fd == 2 { libc::S_IFCHR } else { libc::S_IFIFO });
        assert_eq!(
            (status[0], status[1], status[6]),
            (0, 0, 0),
            "device, number and size"
        );
        assert_eq!(status[9..15], [0; 6], "times");
    }
    for host in [&input, &output, &screen] {
        // SAFETY: no pointers.
        let flags = unsafe { libc::fcntl(host.as_raw_fd(), libc::F_GETFL) };
        assert_eq!(
            flags & (libc::O_APPEND | libc::O_NONBLOCK),
            0,
            "the host's flags stay"
        );
    }
    // What was granted works, from where the host is.
    assert_eq!(guest.sys(libc::SYS_read, &[0, at, 4]), 4);
    assert_eq!(guest.read_words(at, 1)[0].to_ne_bytes()[..4], *b"4567");
    assert_eq!(guest.sys(libc::SYS_write, &[1, at, 4]), 4);
    assert_eq!(guest.sys(libc::SYS_write, &[2, at, 4]), 4);
    // A file of the host's is on disk, a terminal is not.
    assert_eq!(guest.sys(libc::SYS_write, &[again, at, 100]), 6);
    assert_eq!(guest.sys(libc::SYS_write, &[1, at, 1]), errno(libc::EDQUOT));
    assert_eq!(guest.domain.usage().disk, 10);
    assert_eq!(guest.sys(libc::SYS_write, &[2, at, 4]), 4);
    drop(held);
    let mut text = String::new();
    output.rewind().unwrap();
    output.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("host's\n4567"), "{text:?}");
    assert_eq!(text.len(), 7 + 10);
}
