//! `inotify`: names below granted directories are watched, and nothing else is.

mod support;

use ringfence::policy::{Policy, Rights};
use std::ffi::CStr;
use std::os::unix::fs::symlink;
use support::guest::{Guest, Scratch, errno};

/// The names and masks of the events that have come.
fn events(g: &Guest, fd: i64) -> Vec<(u32, String)> {
    let at = g.buffer(4096);
    let len = g.sys(libc::SYS_read, &[fd, at, 4096]);
    assert!(len > 0, "{len}");
    let bytes = g.read_words(at, len as usize / 8 + 1);
    let bytes: Vec<u8> = bytes
        .iter()
        .flat_map(|w| w.to_ne_bytes())
        .take(len as usize)
        .collect();
    let mut found = Vec::new();
    let mut rest = bytes.as_slice();
    while rest.len() >= 16 {
        let word = |at: usize| u32::from_ne_bytes(rest[at..at + 4].try_into().unwrap());
        let (mask, room) = (word(4), word(12) as usize);
        let name = CStr::from_bytes_until_nul(&rest[16..16 + room]).map_or("", |n| n.to_str().unwrap());
        found.push((mask, name.to_owned()));
        rest = &rest[16 + room..];
    }
    found
}

#[test]
fn what_happens_below_a_granted_directory() {
    needs!(Policy);
    let scratch = Scratch::new("watching");
    let outside = Scratch::new("watched-outside");
    let inside = |name: &str| scratch.0.join(name);
    symlink(&outside.0, inside("out")).unwrap();
    let policy = || Policy::new().dir(&scratch.0, "/d", Rights::Read);
    let g = Guest::new(policy().clocks(true));
    let fd = g.sys(libc::SYS_inotify_init1, &[libc::IN_NONBLOCK.into()]);
    assert!(fd >= 0, "{fd}");
    let add = |name: &str, mask: u32| g.sys(libc::SYS_inotify_add_watch, &[fd, g.text(name), mask.into()]);
    let made = libc::IN_CREATE | libc::IN_DELETE;
    let watch = add("/d", made);
    assert!(watch > 0, "{watch}");
    assert!(add("/d/file", libc::IN_MODIFY) > watch);
    for (name, error) in [
        ("/d/out", libc::EACCES),
        ("/d/out/file", libc::EACCES),
        ("/d/../etc", libc::ENOENT),
        ("/etc", libc::ENOENT),
        ("/d/none", libc::ENOENT),
    ] {
        assert_eq!(add(name, made), errno(error), "{name}");
    }
    // The link itself is neither a file nor a directory.
    assert_eq!(add("/d/out", made | libc::IN_DONT_FOLLOW), errno(libc::EACCES));
    let at = g.buffer(64);
    assert_eq!(g.sys(libc::SYS_read, &[fd, at, 64]), errno(libc::EAGAIN));
    assert_eq!(g.sys(libc::SYS_write, &[fd, at, 64]), errno(libc::EBADF));
    std::fs::write(inside("new"), "x").unwrap();
    std::fs::write(inside("file"), "other").unwrap();
    std::fs::write(outside.0.join("file"), "other").unwrap();
    let poll = g.words(&[fd | i64::from(libc::POLLIN) << 32]);
    assert_eq!(g.sys(libc::SYS_poll, &[poll, 1, -1]), 1);
    let found = events(&g, fd);
    assert_eq!(found[0], (libc::IN_CREATE, "new".to_owned()));
    assert!(
        found[1..].iter().all(|(mask, _)| *mask == libc::IN_MODIFY),
        "{found:?}"
    );
    assert_eq!(g.sys(libc::SYS_inotify_rm_watch, &[fd, watch]), 0);
    assert_eq!(g.sys(libc::SYS_inotify_rm_watch, &[fd, 99]), errno(libc::EINVAL));
    let ignored = events(&g, fd);
    assert_eq!(ignored, [(libc::IN_IGNORED, String::new())]);
    // Bounded: the kernel's room for them is the host user's.
    let mut left = 2000;
    while add("/d/file", libc::IN_MODIFY) > 0 && left > 0 {
        left -= 1;
    }
    assert_eq!(
        add("/d/file", libc::IN_MODIFY),
        errno(libc::ENOSPC),
        "{left} left"
    );
    let more = std::iter::repeat_with(|| g.sys(libc::SYS_inotify_init, &[]));
    let more: Vec<i64> = more.take_while(|fd| *fd >= 0).collect();
    assert_eq!(more.len(), 7);
    // It tells when: without clocks there is none.
    assert_eq!(
        Guest::new(policy()).sys(libc::SYS_inotify_init, &[]),
        errno(libc::EPERM)
    );
}
