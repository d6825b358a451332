//! What a policy refuses to grant, and what domains try to get beyond their grants.

mod support;

use std::os::unix::fs::symlink;
use std::path::Path;

use ringfence::policy::{Policy, PolicyError, Rights};
use support::guest::{Guest, Scratch, errno};

use Rights::{Read, Write};

fn start(grants: &[(&Path, &str, Rights)]) -> Result<(), PolicyError> {
    let mut policy = Policy::new();
    for (host, guest, rights) in grants {
        policy = policy.dir(host, guest, *rights);
    }
    policy.start().map(drop)
}

/// By the second name, what is for reading only could be written.
#[test]
fn one_directory_has_one_right() {
    let scratch = Scratch::empty("rights");
    let data = scratch.0.join("data");
    let deep = data.join("deep");
    let link = scratch.0.join("link");
    std::fs::create_dir_all(&deep).unwrap();
    symlink(&data, &link).unwrap();
    let dotted = scratch.0.join("data/./deep/..");
    for other in [&data, &link, &dotted] {
        for (first, second) in [(Read, Write), (Write, Read)] {
            let error = start(&[(&data, "/r", first), (other, "/w", second)]).unwrap_err();
            assert!(matches!(error, PolicyError::TwoRights { .. }), "{error}");
            let text = error.to_string();
            for part in [
                "/r\"",
                "/w\"",
                &*data.to_string_lossy(),
                &*other.to_string_lossy(),
            ] {
                assert!(text.contains(part), "no {part} in {text}");
            }
        }
        for same in [Read, Write] {
            start(&[(&data, "/r", same), (other, "/w", same)]).unwrap();
        }
    }
    let below = link.join("deep");
    let error = start(&[(&data, "/w", Write), (&below, "/r", Read)]).unwrap_err();
    assert!(matches!(error, PolicyError::WritableAround { .. }), "{error}");
    assert!(error.to_string().contains("\"/r\"") && error.to_string().contains("\"/w\""));
    start(&[(&data, "/r", Read), (&below, "/w", Write)]).unwrap();
}

#[test]
fn names_do_not_steer_whoever_reads_the_message() {
    let name = "/nowhere/\x1b[2J\r\n\u{202e}x";
    for error in [
        start(&[(Path::new(name), "/d", Read)]).unwrap_err(),
        start(&[(Path::new("/"), "\x1b[2J", Read)]).unwrap_err(),
        Policy::new().args(["\x1b\0"]).start().unwrap_err(),
        Policy::new().env("A\x1b\0", "").start().unwrap_err(),
    ] {
        let text = error.to_string();
        assert!(
            !text.contains(|c: char| c.is_control() || c == '\u{202e}'),
            "{text:?}"
        );
    }
    let scratch = Scratch::new("control");
    let odd = scratch.0.join("a\x1b[2J\n");
    std::fs::create_dir(&odd).unwrap();
    let error = start(&[(&odd, "/a", Read), (&odd, "/b", Write)]).unwrap_err();
    assert!(!error.to_string().contains(char::is_control), "{error:?}");
}

/// Traces show what the domain's pointers mean to it, and nothing about where its window lies.
#[test]
fn traces_have_neither_addresses_nor_control_characters() {
    needs!(Policy);
    let lines = std::sync::Arc::<std::sync::Mutex<Vec<String>>>::default();
    let sink = lines.clone();
    let g = Guest::new(Policy::new().trace(move |line| sink.lock().unwrap().push(line.to_owned())));
    let base = format!("{:#x}", g.domain.memory().base() >> 32);
    let at = g.buffer(64);
    let map = g.sys(libc::SYS_mmap, &[0, 4096, 3, 0x22, -1, 0]);
    g.sys(libc::SYS_munmap, &[map, 4096]);
    g.sys(libc::SYS_read, &[7, at, 64]);
    g.sys(libc::SYS_open, &[g.text("a\x1b[2J\n\u{202e}"), 0, 0]);
    g.sys(libc::SYS_fcntl, &[0, 99, at]);
    g.sys(9999, &[at, at]);
    g.sys(libc::SYS_writev, &[1, g.words(&[-8, 8]), 1]);
    let lines = lines.lock().unwrap();
    assert!(lines.len() >= 7, "{lines:?}");
    for line in lines.iter() {
        assert!(!line.contains(&base), "{line} shows {base}");
        assert!(
            !line.contains(|c: char| c.is_control() || c == '\u{202e}'),
            "{line:?}"
        );
    }
    let map = format!("= {:#x}", map as u32);
    assert!(lines.iter().any(|l| l.ends_with(&map)), "{map} in {lines:?}");
}

/// Names that lead elsewhere, on a host's directory that has all kinds of doors in it.
#[test]
fn doors_in_a_granted_directory_stay_shut() {
    needs!(Policy);
    let scratch = Scratch::new("doors");
    let inside = |name: &str| scratch.0.join("w").join(name);
    std::fs::create_dir_all(inside("sub")).unwrap();
    std::fs::create_dir(scratch.0.join("r")).unwrap();
    std::fs::write(scratch.0.join("r/file"), "for reading").unwrap();
    for (name, to) in [
        ("fds", "/proc/self/fd"),
        ("memory", "/proc/self/mem"),
        ("root", "/proc/self/root"),
        ("cwd", "/proc/self/cwd"),
        ("up", ".."),
        ("across", "../r/file"),
        ("loop", "loop"),
        ("null", "/dev/null"),
    ] {
        symlink(to, inside(name)).unwrap();
    }
    let _socket = std::os::unix::net::UnixListener::bind(inside("socket")).unwrap();
    let g = Guest::new(Policy::new().dir(scratch.0.join("w"), "/w", Write).dir(
        scratch.0.join("r"),
        "/r",
        Read,
    ));
    let open = |name: &str, flags: i32| g.sys(libc::SYS_open, &[g.text(name), flags.into(), 0o666]);
    for name in [
        "/w/fds/0",
        "/w/fds",
        "/w/memory",
        "/w/root/etc/passwd",
        "/w/cwd/Cargo.toml",
        "/w/up/file",
        "/w/across",
        "/w/loop",
        "/w/null",
        "/w/socket",
        "/proc/self/fd/0",
        "/proc/self/exe",
        "/w/../../../etc/passwd",
    ] {
        for flags in [
            libc::O_RDONLY,
            libc::O_RDWR,
            libc::O_PATH,
            libc::O_WRONLY | libc::O_TRUNC,
        ] {
            let fd = open(name, flags);
            // A link may lead to where the domain could go by itself, with that place's rights.
            let granted = name == "/w/across" && flags & (libc::O_ACCMODE | libc::O_TRUNC) == libc::O_RDONLY;
            assert_eq!(fd >= 0, granted, "{name} with {flags:#o}: {fd}");
        }
    }
    // A descriptor for looking only is not to be had: it would pass on what it cannot open.
    let fd = open("/r/file", libc::O_PATH);
    assert!(fd >= 0);
    let at = g.buffer(64);
    assert_eq!(g.sys(libc::SYS_read, &[fd, at, 64]), 11, "opened for reading");
    let nothing = g.text("");
    let names = |a: &str, b: &str| [g.text(a), g.text(b)];
    let empty = i64::from(libc::AT_EMPTY_PATH);
    let cwd = i64::from(libc::AT_FDCWD);
    for (what, number, args) in [
        (
            "link by descriptor",
            libc::SYS_linkat,
            vec![fd, nothing, cwd, g.text("/w/l"), empty],
        ),
        (
            "link out of reading",
            libc::SYS_link,
            names("/r/file", "/w/l").to_vec(),
        ),
        (
            "link into reading",
            libc::SYS_link,
            names("/w/sub", "/r/l").to_vec(),
        ),
        (
            "rename out of reading",
            libc::SYS_rename,
            names("/r/file", "/w/l").to_vec(),
        ),
        (
            "rename into reading",
            libc::SYS_rename,
            names("/w/sub", "/r/sub").to_vec(),
        ),
        (
            "exchange across",
            libc::SYS_renameat2,
            vec![
                cwd,
                g.text("/w/sub"),
                cwd,
                g.text("/r/file"),
                libc::RENAME_EXCHANGE.into(),
            ],
        ),
        (
            "whiteout",
            libc::SYS_renameat2,
            vec![
                cwd,
                g.text("/w/sub"),
                cwd,
                g.text("/w/s"),
                libc::RENAME_WHITEOUT.into(),
            ],
        ),
        ("chmod by descriptor", libc::SYS_fchmod, vec![fd, 0o777]),
        ("times by descriptor", libc::SYS_utimensat, vec![fd, 0, 0, 0]),
        (
            "times by name",
            libc::SYS_utimensat,
            vec![cwd, g.text("/r/file"), 0, 0],
        ),
        (
            "times through a link",
            libc::SYS_utimensat,
            vec![cwd, g.text("/w/across"), 0, 0],
        ),
        ("truncate", libc::SYS_truncate, vec![g.text("/r/file"), 0]),
        (
            "truncate through a link",
            libc::SYS_truncate,
            vec![g.text("/w/across"), 0],
        ),
        (
            "chmod through a link",
            libc::SYS_chmod,
            vec![g.text("/w/across"), 0o777],
        ),
        ("unlink", libc::SYS_unlink, vec![g.text("/r/file")]),
        ("symbolic link", libc::SYS_symlink, names("/etc", "/w/l").to_vec()),
        (
            "device",
            libc::SYS_mknod,
            vec![g.text("/w/dev"), (libc::S_IFCHR | 0o666).into(), 0x103],
        ),
        (
            "pipe by name",
            libc::SYS_mknod,
            vec![g.text("/w/fifo"), (libc::S_IFIFO | 0o666).into(), 0],
        ),
        (
            "openat2",
            libc::SYS_openat2,
            vec![cwd, g.text("/w/up"), g.words(&[0, 0, 0]), 24],
        ),
        (
            "name_to_handle_at",
            libc::SYS_name_to_handle_at,
            vec![cwd, g.text("/r/file"), at, at, 0],
        ),
        ("open_by_handle_at", libc::SYS_open_by_handle_at, vec![fd, at, 0]),
        ("unix socket", libc::SYS_socket, vec![libc::AF_UNIX.into(), 1, 0]),
        ("passing descriptors", libc::SYS_sendmsg, vec![fd, at, 0]),
        ("taking descriptors", libc::SYS_recvmsg, vec![fd, at, 0]),
        ("pidfd_getfd", libc::SYS_pidfd_getfd, vec![1, 0, 0]),
        ("memfd", libc::SYS_memfd_create, vec![g.text("x"), 0]),
        ("ring", libc::SYS_io_uring_setup, vec![8, at]),
        (
            "attribute",
            libc::SYS_setxattr,
            vec![g.text("/w/sub"), g.text("user.a"), at, 1, 0],
        ),
        (
            "mount",
            libc::SYS_mount,
            vec![g.text("/w"), g.text("/r"), 0, libc::MS_BIND as i64, 0],
        ),
    ] {
        let result = g.sys(number, &args);
        assert!((-4095..0).contains(&result), "{what}: {result}");
    }
    assert_eq!(std::fs::read(scratch.0.join("r/file")).unwrap(), b"for reading");
    assert!(std::fs::read_dir(scratch.0.join("r")).unwrap().count() == 1);
}

/// Addresses as only a hostile caller writes them.
#[test]
fn addresses_are_what_was_granted() {
    needs!(Policy);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let g = Guest::new(Policy::new().connect(address));
    let port = address.port().to_be_bytes();
    let connect = |bytes: &[u8]| {
        let at = g.domain.memory().put_slice(bytes).unwrap().leak().address() as i64;
        g.sys(libc::SYS_connect, &[g.socket(0), at, bytes.len() as i64])
    };
    let v4 = |family: u8, ip: [u8; 4], tail: usize| {
        let mut bytes = vec![family, 0, port[0], port[1]];
        bytes.extend(ip);
        bytes.resize(8 + tail, 0);
        bytes
    };
    let mut mapped = vec![10, 0, port[0], port[1]];
    mapped.resize(28, 0);
    mapped[18..20].fill(0xFF);
    mapped[20..24].copy_from_slice(&[127, 0, 0, 1]);
    let mut unix = vec![1, 0];
    unix.extend(b"\0abstract\0name");
    unix.resize(40, 0);
    for (what, bytes, want) in [
        ("another host", v4(2, [127, 0, 0, 2], 8), libc::EACCES),
        ("any", v4(2, [0; 4], 8), libc::EACCES),
        (
            "mapped, which is the same and not of the socket's family",
            mapped,
            libc::EAFNOSUPPORT,
        ),
        ("unspecified", v4(0, [127, 0, 0, 1], 8), libc::EAFNOSUPPORT),
        ("unix, with NULs in its name", unix, libc::EAFNOSUPPORT),
        ("too short", v4(2, [127, 0, 0, 1], 0)[..7].to_vec(), libc::EINVAL),
        ("cut off", v4(2, [127, 0, 0, 1], 0), libc::EINVAL),
        ("too long", v4(2, [127, 0, 0, 1], 200), libc::EINVAL),
    ] {
        assert_eq!(connect(&bytes), errno(want), "{what}");
    }
    assert_eq!(connect(&v4(2, [127, 0, 0, 1], 8)), 0);
}

/// A directory above the granted ones is in the monitor only: its name must not grow with each step.
#[test]
fn names_do_not_grow_without_bound() {
    needs!(Policy);
    let scratch = Scratch::new("grow");
    let g = Guest::new(Policy::new().dir(&scratch.0, "/a/b", Read));
    assert_eq!(g.sys(libc::SYS_chdir, &[g.text("/a")]), 0);
    let step = g.text(&"../a/".repeat(100));
    let mut results = (0..100).map(|_| g.sys(libc::SYS_chdir, &[step]));
    assert!(results.all(|r| r == 0 || r == errno(libc::ENAMETOOLONG)));
    let at = g.buffer(8192);
    let len = g.sys(libc::SYS_getcwd, &[at, 8192]);
    assert!((1..=4096).contains(&len), "{len}");
}
