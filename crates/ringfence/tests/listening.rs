//! Waiting for connections: at addresses that are granted, and nowhere else.

mod support;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use ringfence::policy::Policy;
use ringfence::{CallError, FaultKind};
use support::guest::{Guest, errno};

const ANY: &str = "127.0.0.1:0";

fn at(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// Where a socket of the guest's is bound.
fn bound(g: &Guest, fd: i64) -> SocketAddr {
    let (name, len) = (g.buffer(16), g.words(&[16]));
    assert_eq!(g.sys(libc::SYS_getsockname, &[fd, name, len]), 0);
    let port = (g.read_words(name, 1)[0] >> 16) as u16;
    ([127, 0, 0, 1], u16::from_be(port)).into()
}

/// A socket of the guest's that waits at a free port.
fn listening(g: &Guest, flags: i32) -> (i64, SocketAddr) {
    let fd = g.socket(flags);
    assert_eq!(g.sys(libc::SYS_bind, &[fd, g.address(at(ANY)), 16]), 0);
    assert_eq!(g.sys(libc::SYS_listen, &[fd, 8]), 0);
    (fd, bound(g, fd))
}

#[test]
fn connections_come_to_a_granted_address() {
    needs!(Policy);
    let g = Guest::new(Policy::new().listen(at(ANY)).descriptors(5));
    let (fd, address) = listening(&g, libc::SOCK_NONBLOCK);
    assert_eq!(g.sys(libc::SYS_accept, &[fd, 0, 0]), errno(libc::EAGAIN));
    let mut peer = TcpStream::connect(address).unwrap();
    let poll = g.words(&[fd | i64::from(libc::POLLIN) << 32]);
    assert_eq!(g.sys(libc::SYS_poll, &[poll, 1, -1]), 1);
    let (name, len) = (g.buffer(16), g.words(&[16]));
    let bad = i64::from(libc::SOCK_DGRAM);
    assert_eq!(
        g.sys(libc::SYS_accept4, &[fd, name, len, bad]),
        errno(libc::EINVAL)
    );
    let made = g.sys(libc::SYS_accept4, &[fd, name, len, libc::SOCK_CLOEXEC.into()]);
    assert!(made > fd, "{made}");
    let port = u16::from_be((g.read_words(name, 1)[0] >> 16) as u16);
    assert_eq!(port, peer.local_addr().unwrap().port());
    let data = g.text("hello");
    assert_eq!(g.sys(libc::SYS_write, &[made, data, 5]), 5);
    let mut bytes = [0; 5];
    peer.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"hello");
    peer.write_all(b"back").unwrap();
    assert_eq!(g.sys(libc::SYS_read, &[made, data, 5]), 4);
    // With no number left nobody is taken from the queue.
    let mut more = Vec::new();
    while let fd @ 0.. = g.sys(libc::SYS_dup, &[made]) {
        more.push(fd);
    }
    let _second = TcpStream::connect(address).unwrap();
    assert_eq!(g.sys(libc::SYS_accept, &[fd, 0, 0]), errno(libc::EMFILE));
    assert_eq!(g.sys(libc::SYS_close, &[more[0]]), 0);
    assert_eq!(g.sys(libc::SYS_poll, &[poll, 1, -1]), 1);
    assert_eq!(g.sys(libc::SYS_accept, &[fd, 0, 0]), more[0]);
    // To accept is not to connect.
    let other = TcpListener::bind(ANY).unwrap();
    assert_eq!(g.sys(libc::SYS_close, &[more[0]]), 0);
    let to = g.address(other.local_addr().unwrap());
    assert_eq!(
        g.sys(libc::SYS_connect, &[g.socket(0), to, 16]),
        errno(libc::EACCES)
    );
}

#[test]
fn nowhere_else() {
    needs!(Policy);
    let free = TcpListener::bind(ANY).unwrap().local_addr().unwrap();
    let eacces = errno(libc::EACCES);
    for (policy, granted) in [
        (Policy::new().listen(free), true),
        (Policy::new().connect(free), false),
    ] {
        let g = Guest::new(policy);
        for address in ["0.0.0.0:0", ANY, "127.0.0.2:0", "0.0.0.0:80"] {
            let fd = g.socket(0);
            assert_eq!(
                g.sys(libc::SYS_bind, &[fd, g.address(at(address)), 16]),
                eacces,
                "{address}"
            );
            // The kernel would choose a port of all addresses.
            assert_eq!(g.sys(libc::SYS_listen, &[fd, 8]), eacces);
            assert_eq!(g.sys(libc::SYS_accept, &[fd, 0, 0]), errno(libc::EINVAL));
            assert_eq!(g.sys(libc::SYS_close, &[fd]), 0);
        }
        let fd = g.socket(0);
        let result = g.sys(libc::SYS_bind, &[fd, g.address(free), 16]);
        assert_eq!(result, if granted { 0 } else { eacces });
        assert_eq!(g.sys(libc::SYS_listen, &[fd, 8]), result);
    }
    let g = Guest::new(Policy::new());
    assert_eq!(
        g.sys(
            libc::SYS_socket,
            &[libc::AF_INET.into(), libc::SOCK_STREAM.into(), 0]
        ),
        eacces
    );
}

/// Nobody comes: the call's limit ends the wait.
#[test]
fn waiting_ends_with_the_call() {
    needs!(Policy);
    let g = Guest::new(Policy::new().listen(at(ANY)));
    let (fd, _) = listening(&g, 0);
    g.domain.set_time_limit(Some(Duration::from_millis(30))).unwrap();
    match g.raw(libc::SYS_accept, &[fd, 0, 0]) {
        Err(CallError::Fault(fault)) => assert!(matches!(fault.kind, FaultKind::TimeLimit), "{fault}"),
        other => panic!("{other:?}"),
    }
}
