//! Descriptors of domains. One test in a program of its own, for it looks at all descriptors of the process.

mod support;

use std::io::{Read, Seek};
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use ringfence::policy::{Policy, Rights};
use support::guest::{Guest, Scratch, errno};

/// The host's descriptors, and the file that each is.
fn descriptors() -> Vec<(i32, PathBuf)> {
    let mut all: Vec<_> = std::fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|e| {
            let e = e.unwrap();
            let number = e.file_name().to_str()?.parse().ok()?;
            Some((number, std::fs::read_link(e.path()).ok()?))
        })
        .filter(|(_, path)| !path.starts_with("/proc"))
        .collect();
    all.sort();
    all
}

#[test]
fn descriptors_are_the_domains_own() {
    needs!(Policy);
    let scratch = Scratch::new("own");
    let policy = || Policy::new().dir(&scratch.0, "/d", Rights::Write);
    // The watchdog and whatever else there is once.
    drop(Guest::new(policy()));
    let before = descriptors();
    {
        let mut host = std::fs::File::options()
            .read(true)
            .write(true)
            .open(scratch.0.join("file"))
            .unwrap();
        let with_ours = descriptors();
        let guest = Guest::new(policy());
        let n = i64::from(host.as_raw_fd());
        let buffer = guest.buffer(64);
        for (what, args) in [
            (libc::SYS_read, vec![n, buffer, 4]),
            (libc::SYS_write, vec![n, buffer, 4]),
            (libc::SYS_lseek, vec![n, 0, 0]),
            (libc::SYS_dup, vec![n]),
            (libc::SYS_dup2, vec![n, 0]),
            (libc::SYS_fcntl, vec![n, libc::F_GETFD.into(), 0]),
            (libc::SYS_ftruncate, vec![n, 0]),
            (libc::SYS_fchdir, vec![n]),
            (libc::SYS_ioctl, vec![n, libc::FIONREAD as i64, buffer]),
            (libc::SYS_mmap, vec![0, 4096, 1, 2, n, 0]),
        ] {
            assert_eq!(guest.sys(what, &args), errno(libc::EBADF), "{what}");
        }
        for n in (-3..4096).chain([i64::MAX, i64::MIN, 1 << 32]) {
            assert_eq!(guest.sys(libc::SYS_close, &[n]), errno(libc::EBADF), "{n}");
        }
        let ours = descriptors();
        assert!(
            with_ours.iter().all(|d| ours.contains(d)),
            "{with_ours:?} {ours:?}"
        );
        host.rewind().unwrap();
        let mut text = String::new();
        host.read_to_string(&mut text).unwrap();
        assert_eq!(text, "0123456789abcdef");
        // As many as it may have; then all go with it, those of pipes too.
        let name = guest.text("/d/file");
        for i in 0..60 {
            assert_eq!(guest.sys(libc::SYS_open, &[name, 0, 0]), i);
        }
        assert_eq!(guest.pipe(), [60, 61]);
        assert_eq!(guest.sys(libc::SYS_open, &[name, 0, 0]), 62);
        let room = guest.words(&[0]);
        assert_eq!(guest.sys(libc::SYS_pipe, &[room]), errno(libc::EMFILE));
        assert_eq!(guest.sys(libc::SYS_open, &[name, 0, 0]), 63);
        assert_eq!(guest.sys(libc::SYS_open, &[name, 0, 0]), errno(libc::EMFILE));
        let most = descriptors().len();
        assert!(most >= with_ours.len() + 64);
        guest.domain.reset().unwrap();
        assert!(descriptors().len() <= most - 64, "a reset closes them");
        assert_eq!(guest.sys(libc::SYS_open, &[guest.text("/d/file"), 0, 0]), 0);
    }
    assert_eq!(descriptors(), before, "all are closed when the domain goes");
}
