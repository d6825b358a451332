//! System calls that wait: each ends with the call's time limit and by an interrupt from another thread; and what they do
//! when nobody ends them.

mod support;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

use ringfence::FaultKind;
use ringfence::policy::{Policy, Rights};
use support::guest::{Guest, Scratch, errno};

/// The call must not come back by itself; both ways of ending it must.
#[track_caller]
fn ends(guest: &Guest, what: &str, number: i64, args: &[i64]) {
    let begin = Instant::now();
    guest
        .domain
        .set_time_limit(Some(Duration::from_millis(40)))
        .unwrap();
    let error = guest.raw(number, args).expect_err(what);
    assert!(
        matches!(error.fault().map(|f| &f.kind), Some(FaultKind::TimeLimit)),
        "{what}: {error}"
    );
    // How late it ends is measured by `make bench-bounds`; by itself it would wait for an hour.
    assert!(begin.elapsed() >= Duration::from_millis(35), "{what}: too soon");
    guest.domain.set_time_limit(None).unwrap();
}

#[track_caller]
fn interrupted(guest: &Guest, what: &str, number: i64, args: &[i64]) {
    let error = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(40));
            guest.domain.interrupt().unwrap();
        });
        guest.raw(number, args).expect_err(what)
    });
    assert!(
        matches!(error.fault().map(|f| &f.kind), Some(FaultKind::Interrupted)),
        "{what}: {error}"
    );
}

/// Ends a call that `set_up` prepares in both ways, in a domain of its own each time: a domain that was ended takes no calls.
fn each(what: &str, policy: &Policy, set_up: impl Fn(&Guest) -> (i64, Vec<i64>)) {
    let guest = Guest::new(policy.clone());
    let (number, args) = set_up(&guest);
    ends(&guest, what, number, &args);
    guest.domain.reset().unwrap();
    let (number, args) = set_up(&guest);
    interrupted(&guest, what, number, &args);
    guest.domain.reset().unwrap();
    assert_eq!(guest.sys(libc::SYS_getpid, &[]), 1, "{what}: usable again");
}

#[test]
fn pipes_times_and_words() {
    needs!(Policy);
    let policy = Policy::new().clocks(true);
    each("read", &policy, |g| {
        let [read, _write] = g.pipe();
        (libc::SYS_read, vec![read, g.buffer(16), 16])
    });
    each("readv", &policy, |g| {
        let [read, _write] = g.pipe();
        let vector = g.words(&[g.buffer(16), 16]);
        (libc::SYS_readv, vec![read, vector, 1])
    });
    each("write", &policy, |g| {
        let [_read, write] = g.pipe();
        (libc::SYS_write, vec![write, g.buffer(1 << 20), 1 << 20])
    });
    each("poll", &policy, |g| {
        let [read, _write] = g.pipe();
        let fds = g.words(&[read | i64::from(libc::POLLIN) << 32]);
        (libc::SYS_poll, vec![fds, 1, -1])
    });
    each("ppoll without descriptors", &policy, |_| {
        (libc::SYS_ppoll, vec![0, 0, 0, 0])
    });
    each("epoll_wait", &policy, |g| {
        let set = g.sys(libc::SYS_epoll_create1, &[0]);
        let args = [set, libc::EPOLL_CTL_ADD.into(), g.pipe()[0], g.words(&[1, 0])];
        assert_eq!(g.sys(libc::SYS_epoll_ctl, &args), 0);
        (libc::SYS_epoll_wait, vec![set, g.buffer(12), 1, -1])
    });
    each("epoll_pwait of an empty set", &policy, |g| {
        let set = g.sys(libc::SYS_epoll_create1, &[0]);
        (libc::SYS_epoll_pwait, vec![set, g.buffer(12), 1, 3_600_000, 0, 8])
    });
    each("a counter's read", &policy, |g| {
        let fd = g.sys(libc::SYS_eventfd2, &[0, 0]);
        (libc::SYS_read, vec![fd, g.buffer(8), 8])
    });
    each("a counter's write", &policy, |g| {
        let fd = g.sys(libc::SYS_eventfd2, &[0, 0]);
        let most = g.words(&[-2]);
        assert_eq!(g.sys(libc::SYS_write, &[fd, most, 8]), 8);
        (libc::SYS_write, vec![fd, most, 8])
    });
    each("a timer's read", &policy, |g| {
        let fd = g.sys(libc::SYS_timerfd_create, &[1, 0]);
        let args = [fd, 0, g.words(&[0, 0, 3600, 0]), 0];
        assert_eq!(g.sys(libc::SYS_timerfd_settime, &args), 0);
        (libc::SYS_read, vec![fd, g.buffer(8), 8])
    });
    each("select", &policy, |g| {
        let [read, _write] = g.pipe();
        let set = g.words(&[1 << read]);
        (libc::SYS_select, vec![64, set, 0, 0, 0])
    });
    each("pselect6", &policy, |g| {
        let time = g.words(&[3600, 0]);
        (libc::SYS_pselect6, vec![0, 0, 0, 0, time, 0])
    });
    each("nanosleep", &policy, |g| {
        (libc::SYS_nanosleep, vec![g.words(&[3600, 0]), 0])
    });
    each("clock_nanosleep", &policy, |g| {
        let time = g.words(&[i64::MAX / 2, 0]);
        (
            libc::SYS_clock_nanosleep,
            vec![1, libc::TIMER_ABSTIME.into(), time, 0],
        )
    });
}

/// A wait for a word comes back now and then with `EINTR`, and its callers wait again.
#[test]
fn futexes() {
    needs!(Policy);
    let policy = Policy::new().clocks(true);
    let insisting = |guest: &mut Guest| guest.call = guest.domain.func("insist").unwrap();
    let mut guest = Guest::new(policy.clone());
    insisting(&mut guest);
    let word = guest.words(&[7]);
    let args = [word, i64::from(libc::FUTEX_WAIT), 7, 0];
    ends(&guest, "futex", libc::SYS_futex, &args);
    guest.domain.reset().unwrap();
    let word = guest.words(&[7]);
    let args = [word, i64::from(libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG), 7, 0];
    interrupted(&guest, "futex", libc::SYS_futex, &args);
    // Not for a word that has another value, nor after its time.
    guest.domain.reset().unwrap();
    let guest = Guest::new(policy);
    let word = guest.words(&[7]);
    assert_eq!(
        guest.sys(libc::SYS_futex, &[word, 0, 8, 0]),
        -i64::from(libc::EAGAIN)
    );
    let time = guest.words(&[0, 1000]);
    assert_eq!(
        guest.sys(libc::SYS_futex, &[word, 0, 7, time]),
        -i64::from(libc::ETIMEDOUT)
    );
}

#[test]
fn sockets() {
    needs!(Policy);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let policy = Policy::new().connect(address);
    let keep = std::sync::Mutex::new(Vec::new());
    for (what, number) in [("read", libc::SYS_read), ("recvfrom", libc::SYS_recvfrom)] {
        each(what, &policy, |g| {
            let (fd, peer) = g.connected(&listener);
            keep.lock().unwrap().push(peer);
            (number, vec![fd, g.buffer(16), 16, 0, 0, 0])
        });
    }
    each("recvfrom of all", &policy, |g| {
        let (fd, mut peer) = g.connected(&listener);
        peer.write_all(b"some").unwrap();
        keep.lock().unwrap().push(peer);
        (
            libc::SYS_recvfrom,
            vec![fd, g.buffer(16), 16, libc::MSG_WAITALL.into(), 0, 0],
        )
    });
    for (what, number) in [("write", libc::SYS_write), ("sendto", libc::SYS_sendto)] {
        each(what, &policy, |g| {
            let (fd, peer) = g.connected(&listener);
            keep.lock().unwrap().push(peer);
            (number, vec![fd, g.buffer(64 << 20), 64 << 20, 0, 0, 0])
        });
    }
}

/// A listener whose queue is full does not answer: the kernel tries again for two minutes.
#[test]
fn connections_that_nobody_takes() {
    needs!(Policy);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    // SAFETY: changes the queue of a listening socket of ours.
    assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 0) }, 0);
    let address = listener.local_addr().unwrap();
    let mut waiting = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(300)) {
        waiting.push(stream);
        assert!(waiting.len() < 100);
    }
    let policy = Policy::new().connect(address);
    each("connect", &policy, |g| {
        let fd = g.socket(0);
        (libc::SYS_connect, vec![fd, g.address(address), 16])
    });
    let guest = Guest::new(policy);
    let fd = guest.socket(libc::SOCK_NONBLOCK);
    let name = guest.address(address);
    let connect = |fd| guest.sys(libc::SYS_connect, &[fd, name, 16]);
    assert_eq!(connect(fd), -i64::from(libc::EINPROGRESS));
    assert_eq!(connect(fd), -i64::from(libc::EALREADY));
}

#[test]
fn locks_that_others_hold() {
    needs!(Policy);
    let scratch = Scratch::empty("locks");
    let file = std::fs::File::create(scratch.0.join("file")).unwrap();
    // SAFETY: locks a file of ours.
    assert_eq!(unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) }, 0);
    let mut lock: libc::flock = no_lock();
    lock.l_type = libc::F_WRLCK as i16;
    // SAFETY: the structure is ours.
    let locked = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) };
    assert_eq!(locked, 0);
    let policy = Policy::new().dir(&scratch.0, "/d", Rights::Write);
    let open = |g: &Guest| {
        let fd = g.sys(libc::SYS_open, &[g.text("/d/file"), libc::O_RDWR.into(), 0]);
        assert!(fd >= 0, "{fd}");
        fd
    };
    each("flock", &policy, |g| {
        (libc::SYS_flock, vec![open(g), libc::LOCK_EX.into()])
    });
    each("fcntl", &policy, |g| {
        // l_type and l_whence, start, length, pid
        let lock = g.words(&[libc::F_WRLCK.into(), 0, 0, 0]);
        (libc::SYS_fcntl, vec![open(g), libc::F_SETLKW.into(), lock])
    });
}

/// With the right to read only: locks that other readers may have too, and none that keeps the host out of its files.
#[test]
fn readers_lock_no_reader_out() {
    needs!(Policy);
    let scratch = Scratch::empty("shared");
    let path = scratch.0.join("file");
    let file = std::fs::File::create(&path).unwrap();
    let host = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(&path)
        .unwrap();
    // SAFETY: locks a file of ours.
    let try_lock = |kind: i32| unsafe { libc::flock(host.as_raw_fd(), kind | libc::LOCK_NB) };
    for rights in [Rights::Read, Rights::Write] {
        let guest = Guest::new(Policy::new().dir(&scratch.0, "/d", rights));
        let fd = guest.sys(libc::SYS_open, &[guest.text("/d/file"), libc::O_RDONLY.into(), 0]);
        assert!(fd >= 0, "{fd}");
        let flock = |kind: i32| guest.sys(libc::SYS_flock, &[fd, kind.into()]);
        let alone = flock(libc::LOCK_EX | libc::LOCK_NB);
        assert_eq!(
            alone,
            if rights == Rights::Read {
                errno(libc::EBADF)
            } else {
                0
            }
        );
        assert_eq!(
            try_lock(libc::LOCK_SH),
            if rights == Rights::Read { 0 } else { -1 }
        );
        assert_eq!(flock(libc::LOCK_UN), 0);
        // A conversion is no way around.
        assert_eq!(flock(libc::LOCK_SH | libc::LOCK_NB), 0);
        assert_eq!(try_lock(libc::LOCK_SH), 0);
        if rights == Rights::Read {
            for kind in [
                libc::LOCK_EX,
                libc::LOCK_EX | libc::LOCK_NB,
                libc::LOCK_EX | libc::LOCK_SH,
            ] {
                assert_eq!(flock(kind), errno(libc::EBADF), "{kind}");
            }
        }
        assert_eq!((try_lock(libc::LOCK_SH), flock(libc::LOCK_UN)), (0, 0));
        let fcntl = |kind: i32| {
            let lock = guest.words(&[kind.into(), 0, 0, 0]);
            guest.sys(libc::SYS_fcntl, &[fd, libc::F_SETLK.into(), lock])
        };
        assert_eq!(fcntl(libc::F_WRLCK), errno(libc::EBADF), "opened for reading");
        assert_eq!((fcntl(libc::F_RDLCK), fcntl(libc::F_UNLCK)), (0, 0));
        assert_eq!(try_lock(libc::LOCK_EX), 0);
        assert_eq!(try_lock(libc::LOCK_UN), 0);
    }
    drop(file);
}

fn no_lock() -> libc::flock {
    // SAFETY: numbers only.
    unsafe { std::mem::zeroed() }
}

/// A pipe with a name, which somebody put into a granted directory: opening it and reading from it.
#[test]
fn named_pipes() {
    needs!(Policy);
    let scratch = Scratch::empty("fifo");
    let path = scratch.0.join("fifo");
    let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: the name is ours.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    // Somebody holds it open, so that readers wait.
    let held = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(&path)
        .unwrap();
    let policy = Policy::new().dir(&scratch.0, "/d", Rights::Write);
    each("read", &policy, |g| {
        let fd = g.sys(libc::SYS_open, &[g.text("/d/fifo"), libc::O_RDWR.into(), 0]);
        (libc::SYS_read, vec![fd, g.buffer(16), 16])
    });
    drop(held);
}

#[test]
fn what_is_ready_is_told() {
    needs!(Policy);
    let guest = Guest::new(Policy::new().clocks(true));
    let [read, write] = guest.pipe();
    let errno = |e: i32| -i64::from(e);
    let select = |number: i64, n: i64, r: &[i64], w: &[i64], time: Option<[i64; 2]>| {
        let at = |words: &[i64]| if words.is_empty() { 0 } else { guest.words(words) };
        let (r_at, w_at) = (at(r), at(w));
        let t = time.map_or(0, |t| guest.words(&t));
        let result = guest.sys(number, &[n, r_at, w_at, 0, t, 0]);
        let back = |p, len| if p == 0 { vec![] } else { guest.read_words(p, len) };
        (result, back(r_at, r.len()), back(w_at, w.len()), back(t, 2))
    };
    for number in [libc::SYS_select, libc::SYS_pselect6] {
        let unit = if number == libc::SYS_select { 1 } else { 1000 };
        // Nothing to read, room to write: at once, though there is time.
        let (n, r, w, t) = select(number, 64, &[1 << read], &[1 << write], Some([60, 0]));
        assert_eq!((n, r, w), (1, vec![0], vec![1 << write]));
        assert!(
            (0..60).contains(&t[0]) && t[0] * 1_000_000 * unit + t[1] > 0,
            "the time that is left: {t:?}"
        );
        let begin = Instant::now();
        let (n, r, _, t) = select(number, 64, &[1 << read], &[], Some([0, 30_000 * unit]));
        assert_eq!((n, r, t), (0, vec![0], vec![0, 0]));
        assert!(begin.elapsed() >= Duration::from_millis(30));
        // Not looked at: beyond the number given.
        assert_eq!(select(number, read, &[1 << read], &[], Some([0, 0])).0, 0);
        assert_eq!(select(number, 64, &[1 << 50], &[], None).0, errno(libc::EBADF));
        assert_eq!(select(number, -1, &[], &[], None).0, errno(libc::EINVAL));
        assert_eq!(select(number, 0, &[], &[], Some([-1, 0])).0, errno(libc::EINVAL));
        assert_eq!(guest.sys(number, &[64, 8, 0, 0, 0, 0]), errno(libc::EFAULT));
        assert_eq!(guest.sys(number, &[64, 0, 0, 0, 8, 0]), errno(libc::EFAULT));
        // More descriptors than there can be: as many as there can be.
        assert_eq!(select(number, 1 << 20, &[0; 16], &[], Some([0, 0])).0, 0);
    }
    let (n, ..) = select(libc::SYS_pselect6, 0, &[], &[], Some([0, 1_000_000_000]));
    assert_eq!(n, errno(libc::EINVAL));
    let (n, ..) = select(libc::SYS_select, 0, &[], &[], Some([0, 1_000_001]));
    assert_eq!(n, 0, "microseconds may exceed a second");
    let text = guest.text("abc");
    assert_eq!(guest.sys(libc::SYS_write, &[write, text, 3]), 3);
    let (n, r, w, _) = select(libc::SYS_select, 64, &[1 << read], &[1 << write], None);
    assert_eq!((n, r, w), (2, vec![1 << read], vec![1 << write]));
    // The end of a pipe can be read.
    assert_eq!(guest.sys(libc::SYS_close, &[write]), 0);
    assert_eq!(guest.sys(libc::SYS_read, &[read, guest.buffer(8), 8]), 3);
    assert_eq!(select(libc::SYS_select, 64, &[1 << read], &[], None).0, 1);
}

#[test]
fn flags_are_the_domains_own() {
    needs!(Policy);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let guest = Guest::new(Policy::new().connect(listener.local_addr().unwrap()));
    let nonblocking = i64::from(libc::O_NONBLOCK);
    let flags = |fd| guest.sys(libc::SYS_fcntl, &[fd, libc::F_GETFL.into(), 0]);
    let set = |fd, flags| guest.sys(libc::SYS_fcntl, &[fd, libc::F_SETFL.into(), flags]);
    let [read, _write] = guest.pipe();
    let buffer = guest.buffer(16);
    assert_eq!(flags(read) & nonblocking, 0);
    assert_eq!(set(read, nonblocking), 0);
    assert_eq!(flags(read) & nonblocking, nonblocking);
    assert_eq!(
        guest.sys(libc::SYS_read, &[read, buffer, 16]),
        -i64::from(libc::EAGAIN)
    );
    assert_eq!(set(read, 0), 0);
    assert_eq!(flags(read) & nonblocking, 0);

    let (fd, mut peer) = guest.connected(&listener);
    assert_eq!(flags(fd) & nonblocking, 0);
    peer.write_all(b"hello").unwrap();
    let at = guest.buffer(16);
    assert_eq!(guest.sys(libc::SYS_read, &[fd, at, 16]), 5);
    let dont_wait = i64::from(libc::MSG_DONTWAIT);
    let received = guest.sys(libc::SYS_recvfrom, &[fd, at, 16, dont_wait, 0, 0]);
    assert_eq!(received, -i64::from(libc::EAGAIN));
    assert_eq!(guest.sys(libc::SYS_sendto, &[fd, at, 5, 0, 0, 0]), 5);
    let mut back = [0; 5];
    peer.read_exact(&mut back).unwrap();
    assert_eq!(&back, b"hello");
    drop(peer);
    assert_eq!(guest.sys(libc::SYS_recvfrom, &[fd, at, 16, 0, 0, 0]), 0);
    // Nobody listens any more.
    let address = listener.local_addr().unwrap();
    drop(listener);
    let fd = guest.socket(0);
    let name = guest.address(address);
    assert_eq!(
        guest.sys(libc::SYS_connect, &[fd, name, 16]),
        -i64::from(libc::ECONNREFUSED)
    );
}

/// Sleeps last as long as they should, not a slice more for each slice.
#[test]
fn a_sleep_is_as_long_as_it_should_be() {
    needs!(Policy);
    let guest = Guest::new(Policy::new().clocks(true));
    let time = guest.words(&[0, 200_000_000]);
    // It is cut into slices, and not made longer by them. A busy machine wakes late, but not each time.
    let exact = (0..100).any(|_| {
        let begin = Instant::now();
        assert_eq!(guest.sys(libc::SYS_nanosleep, &[time, 0]), 0);
        let took = begin.elapsed();
        assert!(took >= Duration::from_millis(200), "{took:?}");
        took < Duration::from_millis(208)
    });
    assert!(exact, "a hundred sleeps of 200 ms took 208 ms at least");
}
