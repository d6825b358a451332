//! System calls as a hostile program makes them: what is not its own stays as it is.

mod support;

use std::io::Write;
use std::os::fd::AsRawFd;
use std::time::Duration;

use ringfence::policy::{Policy, Rights};
use ringfence_isa::window;
use support::guest::{Guest, Scratch, errno};

/// Buffers whose first part is mapped and whose second part is not: what the kernel can do it does, as for any process, and
/// what the monitor copies fails as a whole.
#[test]
fn buffers_that_straddle_an_end() {
    needs!(Policy);
    let scratch = Scratch::new("straddle");
    let guest = Guest::new(
        Policy::new()
            .clocks(true)
            .randomness(true)
            .dir(&scratch.0, "/d", Rights::Write),
    );
    let two = guest.sys(libc::SYS_mmap, &[0, 8192, 3, 0x22, -1, 0]);
    assert!(two > 0);
    assert_eq!(guest.sys(libc::SYS_mprotect, &[two + 4096, 4096, 0]), 0);
    let end = two + 4096;
    let fd = guest.sys(libc::SYS_open, &[guest.text("/d/file"), libc::O_RDWR.into(), 0]);
    assert_eq!(guest.sys(libc::SYS_read, &[fd, end - 6, 16]), 6);
    assert_eq!(guest.sys(libc::SYS_read, &[fd, end, 16]), errno(libc::EFAULT));
    assert_eq!(
        guest.sys(libc::SYS_pwrite64, &[fd, end, 16, 0]),
        errno(libc::EFAULT)
    );
    let [_read, write] = guest.pipe();
    assert_eq!(guest.sys(libc::SYS_write, &[write, end, 16]), errno(libc::EFAULT));
    let efault = errno(libc::EFAULT);
    let path = end - 4;
    let bytes: &[u8] = b"/d/f";
    let at = ringfence::Ptr::<u8>::from_address(path as u64);
    guest.domain.memory().write_slice(at, bytes).unwrap();
    for (what, args) in [
        (libc::SYS_open, vec![path, 0, 0]),
        (libc::SYS_fstat, vec![fd, end - 100]),
        (libc::SYS_stat, vec![guest.text("/d/file"), end - 100]),
        (libc::SYS_ioctl, vec![fd, libc::FIONREAD as i64, end - 2]),
        (libc::SYS_readv, vec![fd, end - 8, 1]),
        (libc::SYS_poll, vec![end - 4, 1, 0]),
        (libc::SYS_pipe, vec![end - 4]),
        (libc::SYS_clock_gettime, vec![0, end - 8]),
        (libc::SYS_nanosleep, vec![end - 8, 0]),
        (libc::SYS_select, vec![64, end - 4, 0, 0, 0]),
        (libc::SYS_uname, vec![end - 200]),
        (libc::SYS_fcntl, vec![fd, libc::F_GETLK.into(), end - 16]),
        (libc::SYS_futex, vec![end, 0, 0, 0]),
        (libc::SYS_getrandom, vec![end, 8, 0]),
    ] {
        assert_eq!(guest.sys(what, &args), efault, "{what}");
    }
    assert_eq!(guest.sys(libc::SYS_getcwd, &[end - 1, 4096]), efault);
    // A random number of bytes that ends in nothing: what there is room for.
    assert_eq!(guest.sys(libc::SYS_getrandom, &[end - 8, 64, 0]), 8);
    let map = |len: i64| guest.sys(libc::SYS_mmap, &[0, len, 3, 0x22, -1, 0]);
    for len in [5 << 30, (4 << 30) - 1, i64::MAX, -1, -4096] {
        assert_eq!(map(len), errno(libc::ENOMEM), "{len:#x}");
    }
    assert_eq!(map(0), errno(libc::EINVAL));
}

/// Every call with numbers that point everywhere: each comes back, or ends this domain only, and the host and its files are
/// as they were.
#[test]
fn every_call_with_wild_arguments() {
    needs!(Policy);
    let scratch = Scratch::new("wild");
    std::fs::create_dir_all(scratch.0.join("in")).unwrap();
    let mut host = std::fs::File::create_new(scratch.0.join("host")).unwrap();
    host.write_all(b"untouched").unwrap();
    let canary = vec![0xA5u8; 1 << 16];
    let policy = Policy::new()
        .dir(scratch.0.join("in"), "/", Rights::Write)
        .clocks(true)
        .randomness(true)
        .connect("127.0.0.1:9".parse().unwrap());
    let guest = Guest::new(policy);
    guest
        .domain
        .set_time_limit(Some(Duration::from_millis(20)))
        .unwrap();
    let base = guest.domain.memory().base() as i64;
    let wild = [
        0,
        1,
        8,
        -1,
        i64::MIN,
        i64::MAX,
        canary.as_ptr() as i64,
        base,
        base + i64::from(window::STUBS),
        base + i64::from(window::HEADER),
        base + 0xFFFF_FFF8,
        base + 0x4000_0000,
        0x1_0000_0000,
        host.as_raw_fd().into(),
    ];
    let mut state = 1u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize
    };
    let (mut back, mut ended) = (0, 0);
    for number in (-2..470).chain([512, 547, 1 << 30, i64::MAX]) {
        for round in 0..12 {
            let args: Vec<i64> = (0..6)
                .map(|i| match round {
                    0 => 0,
                    1 => -1,
                    2 => canary.as_ptr() as i64 + 8 * i,
                    _ => wild[random() % wild.len()],
                })
                .collect();
            match guest.raw(number, &args) {
                Ok(value) => {
                    assert!(value >= -4095, "{number} {args:x?}: {value}");
                    back += 1;
                }
                Err(_) => {
                    ended += 1;
                    guest.domain.reset().unwrap();
                }
            }
        }
    }
    assert!(
        back > 5000 && ended >= 24,
        "{back} came back, {ended} ended the call"
    );
    assert!(canary.iter().all(|b| *b == 0xA5));
    assert_eq!(std::fs::read(scratch.0.join("host")).unwrap(), b"untouched");
    host.write_all(b"!").unwrap();
    guest.domain.reset().unwrap();
    guest.domain.set_time_limit(None).unwrap();
    assert_eq!(guest.sys(libc::SYS_getpid, &[]), 1);
}
