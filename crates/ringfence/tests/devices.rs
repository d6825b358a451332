//! Devices of domains. One test in a program of its own, for it looks at all descriptors of the process.

mod support;

use ringfence::policy::Policy;
use support::guest::{Guest, errno};

/// The usual devices, which the monitor answers itself: they are there without any directory, and do the same.
#[test]
fn devices_are_made_by_the_monitor() {
    needs!(Policy);
    let guest = Guest::new(Policy::new().randomness(true).descriptors(8));
    let hosts = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let before = hosts();
    let open = |name: &str, flags: i32| guest.sys(libc::SYS_open, &[guest.text(name), flags.into(), 0]);
    let page = guest.sys(libc::SYS_mmap, &[0, 4 << 20, 3, 0x22, -1, 0]);
    assert!(page > 0);
    let word = |at: i64| guest.read_words(at, 1)[0] as u64;
    let null = open("//dev/./null", libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC);
    assert!(null >= 0, "{null}");
    assert_eq!(guest.sys(libc::SYS_write, &[null, page, 4 << 20]), 4 << 20);
    assert_eq!(guest.sys(libc::SYS_read, &[null, page, 100]), 0);
    assert_eq!(guest.sys(libc::SYS_lseek, &[null, 5, libc::SEEK_END.into()]), 0);
    assert_eq!(
        guest.sys(libc::SYS_fcntl, &[null, libc::F_GETFL.into(), 0]),
        libc::O_RDWR.into()
    );
    assert_eq!(guest.sys(libc::SYS_ftruncate, &[null, 0]), errno(libc::EINVAL));
    assert_eq!(guest.sys(libc::SYS_fstat, &[null, page]), 0);
    assert_eq!(word(page + 24) as u32, libc::S_IFCHR | 0o666);
    assert_eq!(word(page + 40), libc::makedev(1, 3));

    let zero = open("/dev/zero", libc::O_RDONLY);
    assert_eq!(guest.sys(libc::SYS_read, &[zero, page, 4 << 20]), 4 << 20);
    assert_eq!((word(page + 24), word(page + 40)), (0, 0));
    assert_eq!(guest.sys(libc::SYS_write, &[zero, page, 8]), errno(libc::EBADF));
    assert_eq!(
        guest.sys(libc::SYS_read, &[zero, -4096, 4096]),
        errno(libc::EFAULT)
    );
    assert!(guest.sys(libc::SYS_mmap, &[0, 4096, 3, libc::MAP_PRIVATE.into(), zero, 0]) > 0);
    let shared = [0, 4096, 3, libc::MAP_SHARED.into(), zero, 0];
    assert_eq!(guest.sys(libc::SYS_mmap, &shared), errno(libc::ENODEV));

    let random = open("/dev/urandom", libc::O_RDONLY);
    assert_eq!(guest.sys(libc::SYS_read, &[random, page, 64]), 64);
    assert!((0..8).any(|i| word(page + 8 * i) != 0));

    let there = [guest.text("/dev/null"), libc::R_OK as i64 | i64::from(libc::W_OK)];
    assert_eq!(guest.sys(libc::SYS_access, &there), 0);
    assert_eq!(guest.sys(libc::SYS_stat, &[guest.text("/dev/zero"), page]), 0);
    assert_eq!(
        open("/dev/null", libc::O_CREAT | libc::O_EXCL),
        errno(libc::EEXIST)
    );
    assert_eq!(open("/dev/null", libc::O_DIRECTORY), errno(libc::ENOTDIR));
    for other in [
        "/dev",
        "/dev/null/x",
        "/dev/../dev/null",
        "/dev/tty",
        "/dev/mem",
        "/dev/nullx",
    ] {
        assert_eq!(open(other, 0), errno(libc::ENOENT), "{other}");
    }
    assert_eq!(
        guest.sys(libc::SYS_unlink, &[guest.text("/dev/null")]),
        errno(libc::ENOENT)
    );
    assert_eq!(hosts(), before, "nothing of the host's was opened");

    // Without randomness there is none by that name either.
    let guest = Guest::new(Policy::new());
    let open = |name: &str| guest.sys(libc::SYS_open, &[guest.text(name), 0, 0]);
    assert_eq!(
        (open("/dev/urandom"), open("/dev/random")),
        (errno(libc::ENOENT), errno(libc::ENOENT))
    );
    assert!(open("/dev/null") >= 0);
}
