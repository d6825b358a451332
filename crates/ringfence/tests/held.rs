//! Snapshots of domains whose policy holds something for them: refused, with the state unchanged, until it is given back.

mod support;

use ringfence::policy::{Policy, Rights, Stream};
use ringfence::{Domain, Imports, Snapshot, SnapshotError};
use support::Start as _;
use support::guest::{Guest, Scratch, errno};

fn refused(domain: &Domain, what: &str) {
    match domain.checkpoint() {
        Err(SnapshotError::Held(held)) => assert!(held.contains(what), "{held:?} for {what:?}"),
        other => panic!("{what}: {other:?}"),
    }
}

#[test]
fn a_snapshot_waits_for_descriptors_to_be_closed() {
    needs!(Policy);
    let scratch = Scratch::new("held");
    std::fs::write(scratch.0.join("file"), "abcdef").unwrap();
    std::fs::create_dir(scratch.0.join("sub")).unwrap();
    let policy = Policy::new()
        .dir(&scratch.0, "/d", Rights::Write)
        .stdin(Stream::Bytes(b"input".to_vec()))
        .stdout(Stream::Null)
        .stderr(Stream::Null);
    let guest = Guest::new(policy);
    let (name, buffer) = (guest.text("/d/file"), guest.buffer(16));
    let open = || {
        let fd = guest.sys(libc::SYS_open, &[name, libc::O_RDWR.into(), 0]);
        assert!(fd > 2, "{fd}");
        fd
    };
    let read = |fd, n| guest.sys(libc::SYS_read, &[fd, buffer, n]);
    let close = |fd| assert_eq!(guest.sys(libc::SYS_close, &[fd]), 0);

    // A file: refused, and it is as it was, its position too.
    let fd = open();
    assert_eq!(read(fd, 2), 2);
    refused(&guest.domain, "open descriptors");
    assert_eq!(guest.domain.usage().descriptors, 4, "with the three streams");
    assert_eq!(read(fd, 16), 4);
    // A duplicate of it keeps it open.
    let other = guest.sys(libc::SYS_dup, &[fd]);
    close(fd);
    refused(&guest.domain, "open descriptors");
    close(other);
    // A directory, a pipe, a duplicate in place of a stream.
    let sub = guest.text("/d/sub");
    let directory = guest.sys(libc::SYS_open, &[sub, libc::O_DIRECTORY.into(), 0]);
    refused(&guest.domain, "open descriptors");
    close(directory);
    let [from, to] = guest.pipe();
    close(from);
    refused(&guest.domain, "open descriptors");
    close(to);
    let fd = open();
    assert_eq!(guest.sys(libc::SYS_dup2, &[fd, 1]), 1);
    close(fd);
    refused(&guest.domain, "open descriptors");
    assert_eq!(guest.sys(libc::SYS_dup2, &[2, 1]), 1);
    // Where it is, and what mode its files have.
    let here = guest.buffer(64);
    assert!(guest.sys(libc::SYS_getcwd, &[here, 64]) > 0);
    assert_eq!(guest.sys(libc::SYS_chdir, &[sub]), 0);
    refused(&guest.domain, "directory");
    assert_eq!(guest.sys(libc::SYS_chdir, &[here]), 0);
    assert_eq!(guest.sys(libc::SYS_umask, &[0o077]), 0o022);
    refused(&guest.domain, "umask");
    assert_eq!(guest.sys(libc::SYS_umask, &[0o022]), 0o077);

    guest.domain.checkpoint().expect("everything was given back");
    // What is opened from now on goes with a reset.
    let fd = open();
    assert_eq!(read(0, 3), 3);
    guest.domain.reset().unwrap();
    assert_eq!(read(fd, 1), errno(libc::EBADF));
    assert_eq!(guest.domain.usage().descriptors, 3);
    assert_eq!(read(0, 16), 5, "from the beginning");
    // What was read from the standard input cannot be put back by a snapshot.
    refused(&guest.domain, "standard input");
    guest.domain.reset().unwrap();
    guest.domain.checkpoint().unwrap();
}

#[test]
fn an_image_of_a_domain_with_open_descriptors_is_refused() {
    needs!(Snapshots);
    let scratch = Scratch::new("snapshot");
    std::fs::write(scratch.0.join("file"), "abc").unwrap();
    let make = || {
        let monitor = Policy::new().dir(&scratch.0, "/d", Rights::Read).start().unwrap();
        support::module("syscall").start(Imports::new().policy(monitor))
    };
    let snapshot = |keep: bool| {
        Snapshot::new(make, move |d: &Domain| {
            let name = d.memory().put_c_string("/d/file")?;
            let call = d.func::<(i64, i64, i64, i64, i64, i64, i64), i64>("system_call")?;
            let at = name.ptr().address() as i64;
            let fd = call
                .call(libc::SYS_open, at, 0, 0, 0, 0, 0)?
                .into_inner_unchecked();
            assert!(fd >= 0, "{fd}");
            if !keep {
                assert_eq!(call.call(libc::SYS_close, fd, 0, 0, 0, 0, 0)?, 0);
            }
            Ok::<(), ringfence::Error>(())
        })
    };
    let refused = snapshot(true).map(drop);
    assert!(matches!(refused, Err(SnapshotError::Held(_))), "{refused:?}");
    snapshot(false).expect("closed in time");
}
