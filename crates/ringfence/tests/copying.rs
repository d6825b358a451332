//! `sendfile` and `copy_file_range`: what they move, what it counts, and when they end.

mod support;

use std::io::Read;
use std::net::TcpListener;
use std::time::Duration;

use ringfence::FaultKind;
use ringfence::policy::{Captured, Policy, Rights, Stream};
use support::guest::{Guest, Scratch, errno};

const BLOCK: i64 = 4096;

/// A file of so many bytes, no two neighbours of which are the same.
fn large(scratch: &Scratch, bytes: usize) -> Vec<u8> {
    let content: Vec<u8> = (0..bytes).map(|i| (i % 251) as u8).collect();
    std::fs::write(scratch.0.join("large"), &content).unwrap();
    content
}

fn open(g: &Guest, name: &str, flags: i32) -> i64 {
    let fd = g.sys(libc::SYS_open, &[g.text(name), flags.into(), 0o644]);
    assert!(fd >= 0, "{name}: {fd}");
    fd
}

#[test]
fn files_are_sent() {
    needs!(Policy);
    let scratch = Scratch::new("copying");
    let content = large(&scratch, 700_000);
    let g = Guest::new(Policy::new().dir(&scratch.0, "/d", Rights::Write));
    let from = open(&g, "/d/large", libc::O_RDONLY);
    let to = open(&g, "/d/new", libc::O_CREAT | libc::O_RDWR);
    let used = g.domain.usage().disk;
    // At the descriptor's position, more than there is; then nothing.
    assert_eq!(g.sys(libc::SYS_sendfile, &[to, from, 0, i64::MAX]), 700_000);
    assert_eq!(g.sys(libc::SYS_sendfile, &[to, from, 0, 1]), 0);
    assert_eq!(std::fs::read(scratch.0.join("new")).unwrap(), content);
    assert_eq!(g.domain.usage().disk - used, 700_000 + BLOCK as u64);
    // At one of the domain's own, which moves in its place.
    let at = g.words(&[699_990]);
    assert_eq!(g.sys(libc::SYS_lseek, &[from, 5, 0]), 5);
    assert_eq!(g.sys(libc::SYS_sendfile, &[to, from, at, 4]), 4);
    assert_eq!(g.sys(libc::SYS_sendfile, &[to, from, at, 400]), 6);
    assert_eq!(g.read_words(at, 1), [700_000]);
    assert_eq!(g.sys(libc::SYS_lseek, &[from, 0, 1]), 5);
    let now = std::fs::read(scratch.0.join("new")).unwrap();
    assert_eq!(now[700_000..], content[699_990..]);
    // Through a pipe, as much as it takes.
    let [read, write] = g.pipe();
    let out = g.buffer(16);
    assert_eq!(g.sys(libc::SYS_sendfile, &[write, from, 0, 16]), 16);
    assert_eq!(g.sys(libc::SYS_read, &[read, out, 16]), 16);
    let words: Vec<u8> = g
        .read_words(out, 2)
        .iter()
        .flat_map(|w| w.to_ne_bytes())
        .collect();
    assert_eq!(words, content[5..21]);
    let nonblocking = libc::O_NONBLOCK.into();
    g.sys(libc::SYS_fcntl, &[write, libc::F_SETFL.into(), nonblocking]);
    let sent = g.sys(libc::SYS_sendfile, &[write, from, 0, 600_000]);
    assert!((1..600_000).contains(&sent), "{sent}");
    assert_eq!(
        g.sys(libc::SYS_sendfile, &[write, from, 0, 600_000]),
        errno(libc::EAGAIN)
    );
}

#[test]
fn files_are_sent_by_sockets() {
    needs!(Policy);
    let scratch = Scratch::empty("copying-socket");
    let content = large(&scratch, 3_000_000);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let g = Guest::new(
        Policy::new()
            .dir(&scratch.0, "/d", Rights::Read)
            .connect(listener.local_addr().unwrap()),
    );
    let (socket, mut peer) = g.connected(&listener);
    let from = open(&g, "/d/large", libc::O_RDONLY);
    let got = std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let mut got = Vec::new();
            peer.read_to_end(&mut got).unwrap();
            got
        });
        assert_eq!(
            g.sys(libc::SYS_sendfile, &[socket, from, 0, 3_000_000]),
            3_000_000
        );
        assert_eq!(g.sys(libc::SYS_close, &[socket]), 0);
        reader.join().unwrap()
    });
    assert!(got == content);
}

#[test]
fn ranges_are_copied() {
    needs!(Policy);
    let scratch = Scratch::new("ranges");
    let content = large(&scratch, 600_000);
    let g = Guest::new(Policy::new().dir(&scratch.0, "/d", Rights::Write));
    let from = open(&g, "/d/large", libc::O_RDONLY);
    let to = open(&g, "/d/new", libc::O_CREAT | libc::O_RDWR);
    let copy = |args: &[i64]| g.sys(libc::SYS_copy_file_range, args);
    assert_eq!(copy(&[from, 0, to, 0, 1 << 40, 0]), 600_000);
    assert_eq!(std::fs::read(scratch.0.join("new")).unwrap(), content);
    let used = g.domain.usage().disk;
    let (read, written) = (g.words(&[10]), g.words(&[1_000_000]));
    assert_eq!(copy(&[from, read, to, written, 20, 0]), 20);
    assert_eq!(
        [g.read_words(read, 1)[0], g.read_words(written, 1)[0]],
        [30, 1_000_020]
    );
    // The gap counts, too.
    assert_eq!((g.domain.usage().disk - used) as i64, BLOCK + 400_000 + 20);
    let now = std::fs::read(scratch.0.join("new")).unwrap();
    assert_eq!(now[1_000_000..], content[10..30]);
    let einval = errno(libc::EINVAL);
    assert_eq!(copy(&[from, 0, to, 0, 1, 1]), einval);
    assert!(copy(&[from, g.words(&[-9]), to, 0, 1, 0]) < 0);
    assert!(copy(&[from, g.words(&[0]), to, g.words(&[-9]), 1, 0]) < 0);
    assert_eq!(copy(&[from, 0, to, 0, 1, 0]), 0, "at its end");
    assert_eq!(copy(&[from, 0x1000, to, 0, 1, 0]), errno(libc::EFAULT));
    assert_eq!(copy(&[from, -4, to, 0, 1, 0]), errno(libc::EFAULT));
    assert_eq!(copy(&[from, 0, from, 0, 1, 0]), errno(libc::EBADF));
    let directory = open(&g, "/d", libc::O_DIRECTORY);
    assert_eq!(copy(&[from, 0, directory, 0, 1, 0]), errno(libc::EISDIR));
    let [_, pipe] = g.pipe();
    assert_eq!(copy(&[from, 0, pipe, 0, 1, 0]), einval);
}

#[test]
fn what_is_refused() {
    needs!(Policy);
    let scratch = Scratch::new("copying-refused");
    let policy = Policy::new()
        .dir(&scratch.0, "/d", Rights::Write)
        .disk_limit(10_000)
        .stdin(Stream::Bytes(b"some".to_vec()))
        .stdout(Stream::Capture(Captured::default()));
    let g = Guest::new(policy);
    large(&scratch, 50_000);
    let send = |args: &[i64]| g.sys(libc::SYS_sendfile, args);
    let from = open(&g, "/d/large", libc::O_RDONLY);
    let file = open(&g, "/d/file", libc::O_RDWR);
    let directory = open(&g, "/d", libc::O_DIRECTORY);
    let [read, write] = g.pipe();
    let counter = g.sys(libc::SYS_eventfd2, &[8, 0]);
    let einval = errno(libc::EINVAL);
    // To where the kernel would wait, or nothing of the kernel's is; and from what is no file.
    for to in [1, directory, counter] {
        assert_eq!(send(&[to, from, 0, 8]), einval, "{to}");
    }
    for other in [0, directory, read, counter] {
        assert_eq!(send(&[file, other, 0, 8]), einval, "{other}");
    }
    assert_eq!(send(&[from, file, 0, 8]), errno(libc::EBADF), "for reading only");
    assert_eq!(send(&[read, from, 0, 8]), errno(libc::EBADF));
    for bad in [-1, 77, i64::MAX] {
        assert_eq!(send(&[bad, from, 0, 8]), errno(libc::EBADF));
        assert_eq!(send(&[file, bad, 0, 8]), errno(libc::EBADF));
    }
    assert_eq!(send(&[write, from, -4, 8]), errno(libc::EFAULT));
    assert_eq!(send(&[write, from, g.words(&[-8]), 8]), einval);
    // No more than may be put on disk.
    let room = 10_000 - g.domain.usage().disk as i64 - BLOCK;
    assert!(room > 0);
    assert_eq!(send(&[file, from, 0, 50_000]), room);
    assert_eq!(send(&[file, from, 0, 50_000]), errno(libc::EDQUOT));
    let at = g.words(&[0]);
    assert_eq!(
        g.sys(libc::SYS_copy_file_range, &[from, at, file, at, 8, 0]),
        errno(libc::EDQUOT)
    );
    assert_eq!(g.domain.usage().disk, 10_000);
    assert_eq!(
        std::fs::metadata(scratch.0.join("file")).unwrap().len() as i64,
        room.max(16)
    );
    // Nobody reads any more.
    assert_eq!(g.sys(libc::SYS_close, &[read]), 0);
    assert_eq!(send(&[write, from, 0, 8]), errno(libc::EPIPE));
}

/// What waits ends with the call: a pipe that is full, and a file that is as long as nobody can wait for.
#[test]
fn sending_ends_with_the_call() {
    needs!(Policy);
    let scratch = Scratch::new("copying-ends");
    let host = std::fs::File::create(scratch.0.join("holes")).unwrap();
    host.set_len(1 << 40).unwrap();
    let policy = Policy::new().dir(&scratch.0, "/d", Rights::Read);
    let g = Guest::new(policy);
    let holes = open(&g, "/d/holes", libc::O_RDONLY);
    let [_read, write] = g.pipe();
    g.domain.set_time_limit(Some(Duration::from_millis(40))).unwrap();
    let error = g
        .raw(libc::SYS_sendfile, &[write, holes, 0, 1 << 40])
        .unwrap_err();
    assert!(
        matches!(error.fault().map(|f| &f.kind), Some(FaultKind::TimeLimit)),
        "{error}"
    );
}
