//! Datagrams: sent to addresses that are granted, received from those, and from nobody else; and pairs of sockets.

mod support;

use ringfence::policy::Policy;
use std::net::{SocketAddr, UdpSocket};
use support::guest::{Guest, errno};

fn socket() -> UdpSocket {
    UdpSocket::bind("127.0.0.1:0").unwrap()
}

/// A guest that may exchange datagrams with the socket, and a descriptor of its own, bound to the port that is told.
fn guest(peer: &UdpSocket) -> (Guest, i64, SocketAddr) {
    let g = Guest::new(Policy::new().connect(peer.local_addr().unwrap()));
    let fd = datagrams(&g);
    let any = g.address("0.0.0.0:0".parse().unwrap());
    assert_eq!(g.sys(libc::SYS_bind, &[fd, any, 16]), 0);
    let (name, len) = (g.buffer(16), g.words(&[16]));
    assert_eq!(g.sys(libc::SYS_getsockname, &[fd, name, len]), 0);
    assert_eq!(g.read_words(len, 1)[0] as u32, 16);
    let port = (g.read_words(name, 1)[0] >> 16) as u16;
    (g, fd, ([127, 0, 0, 1], u16::from_be(port)).into())
}

fn datagrams(g: &Guest) -> i64 {
    let kind = libc::SOCK_DGRAM | libc::SOCK_NONBLOCK;
    let fd = g.sys(libc::SYS_socket, &[libc::AF_INET.into(), kind.into(), 0]);
    assert!(fd >= 0, "{fd}");
    fd
}

/// A `msghdr` with two buffers of four bytes at `data`, a name and control messages.
fn header(g: &Guest, data: i64, name: i64, control: i64) -> i64 {
    let vectors = g.words(&[data, 4, data + 4, 4]);
    g.words(&[name, 16, vectors, 2, data, control, 0])
}

#[test]
fn both_ways_with_an_address_and_connected() {
    needs!(Policy);
    let peer = socket();
    let (g, fd, own) = guest(&peer);
    let to = g.address(peer.local_addr().unwrap());
    let data = g.text("abcdefgh");
    let mut bytes = [0; 16];
    let mut came = || {
        let (n, from) = peer.recv_from(&mut bytes).unwrap();
        assert_eq!(from, own);
        String::from_utf8_lossy(&bytes[..n]).into_owned()
    };
    assert_eq!(g.sys(libc::SYS_sendto, &[fd, data, 5, 0, to, 16]), 5);
    assert_eq!(came(), "abcde");
    let message = header(&g, data, to, 0);
    assert_eq!(g.sys(libc::SYS_sendmsg, &[fd, message, 0]), 8);
    assert_eq!(came(), "abcdefgh");
    assert_eq!(g.sys(libc::SYS_write, &[fd, data, 1]), errno(libc::EDESTADDRREQ));
    // Back: each call takes one, and tells whom it is from.
    for text in ["one", "two", "three, and more than fits", "four"] {
        peer.send_to(text.as_bytes(), own).unwrap();
    }
    let (to, name, len) = (g.buffer(16), g.buffer(16), g.words(&[16]));
    let word = |text: &[u8; 8]| i64::from_ne_bytes(*text);
    assert_eq!(g.sys(libc::SYS_recvfrom, &[fd, to, 8, 0, name, len]), 3);
    assert_eq!(g.read_words(to, 1)[0], word(b"one\0\0\0\0\0"));
    assert_eq!(
        g.read_words(name, 1)[0] >> 16 & 0xFFFF,
        i64::from(peer.local_addr().unwrap().port().to_be())
    );
    assert_eq!(g.sys(libc::SYS_read, &[fd, to, 8]), 3);
    assert_eq!(g.read_words(to, 1)[0], word(b"two\0\0\0\0\0"));
    let message = header(&g, to, name, 100);
    assert_eq!(g.sys(libc::SYS_recvmsg, &[fd, message, 0]), 8);
    assert_eq!(g.read_words(to, 1)[0], word(b"three, a"));
    let told = g.read_words(message, 7);
    assert_eq!(
        (told[1] as u32, told[5], told[6] as i32),
        (16, 0, libc::MSG_TRUNC)
    );
    assert_eq!(
        g.sys(libc::SYS_recvfrom, &[fd, to, 2, libc::MSG_TRUNC.into(), 0, 0]),
        4,
        "its length"
    );
    assert_eq!(
        g.sys(libc::SYS_recvfrom, &[fd, to, 8, 0, 0, 0]),
        errno(libc::EAGAIN)
    );
    // Connected: by read and write.
    let to_peer = g.address(peer.local_addr().unwrap());
    assert_eq!(g.sys(libc::SYS_connect, &[fd, to_peer, 16]), 0);
    assert_eq!(g.sys(libc::SYS_getpeername, &[fd, name, len]), 0);
    assert_eq!(g.sys(libc::SYS_write, &[fd, data, 2]), 2);
    assert_eq!(came(), "ab");
    peer.send_to(b"last", own).unwrap();
    assert_eq!(g.sys(libc::SYS_read, &[fd, to, 8]), 4);
}

/// To nobody but whom was granted, from wherever the domain has its numbers.
#[test]
fn nobody_else_is_reached() {
    needs!(Policy);
    let (peer, other) = (socket(), socket());
    other.set_nonblocking(true).unwrap();
    let (g, fd, _) = guest(&peer);
    let (data, stranger) = (g.text("abcdefgh"), g.address(other.local_addr().unwrap()));
    let eacces = errno(libc::EACCES);
    assert_eq!(g.sys(libc::SYS_sendto, &[fd, data, 5, 0, stranger, 16]), eacces);
    let message = header(&g, data, stranger, 0);
    assert_eq!(g.sys(libc::SYS_sendmsg, &[fd, message, 0]), eacces);
    assert_eq!(g.sys(libc::SYS_connect, &[fd, stranger, 16]), eacces);
    // Descriptors and interfaces are handed over by control messages.
    let to = g.address(peer.local_addr().unwrap());
    let message = header(&g, data, to, 24);
    assert_eq!(g.sys(libc::SYS_sendmsg, &[fd, message, 0]), errno(libc::EINVAL));
    // A port of its own, an address of its own, a stream.
    let fresh = datagrams(&g);
    for at in ["0.0.0.0:5353", "127.0.0.1:0", "127.0.0.1:5353"] {
        let at = g.address(at.parse().unwrap());
        assert_eq!(g.sys(libc::SYS_bind, &[fresh, at, 16]), eacces);
    }
    let any = g.address("0.0.0.0:0".parse().unwrap());
    assert_eq!(g.sys(libc::SYS_bind, &[g.socket(0), any, 16]), eacces);
    // Nothing is granted: no socket.
    let none = Guest::new(Policy::new());
    let made = none.sys(
        libc::SYS_socket,
        &[libc::AF_INET.into(), libc::SOCK_DGRAM.into(), 0],
    );
    assert_eq!(made, eacces);
    assert!(other.recv(&mut [0; 8]).is_err());
}

/// What strangers send is dropped before the domain sees any of it.
#[test]
fn strangers_are_not_heard() {
    needs!(Policy);
    let (peer, stranger) = (socket(), socket());
    let (g, fd, own) = guest(&peer);
    let to = g.words(&[0, 0]);
    let calls: [(i64, Vec<i64>); 4] = [
        (libc::SYS_recvfrom, vec![fd, to, 8, 0, 0, 0]),
        (libc::SYS_recvfrom, vec![fd, to, 8, libc::MSG_PEEK.into(), 0, 0]),
        (libc::SYS_read, vec![fd, to, 8]),
        (libc::SYS_recvmsg, vec![fd, header(&g, to, 0, 0), 0]),
    ];
    for (number, args) in &calls {
        for _ in 0..3 {
            stranger.send_to(b"secretly", own).unwrap();
        }
        assert_eq!(g.sys(*number, args), errno(libc::EAGAIN));
        assert_eq!(g.read_words(to, 2), [0, 0], "{number}");
    }
    // A connection is no way round: what was there before stays a stranger's.
    stranger.send_to(b"secretly", own).unwrap();
    let name = g.address(peer.local_addr().unwrap());
    assert_eq!(g.sys(libc::SYS_connect, &[fd, name, 16]), 0);
    assert_eq!(g.sys(libc::SYS_read, &[fd, to, 8]), errno(libc::EAGAIN));
    assert_eq!(g.read_words(to, 2), [0, 0]);
    // Between them, whom it may hear.
    let (g, fd, own) = guest(&peer);
    let to = g.words(&[0, 0]);
    for text in ["secret 1", "secret 2"] {
        stranger.send_to(text.as_bytes(), own).unwrap();
        peer.send_to(b"welcome!", own).unwrap();
    }
    for _ in 0..2 {
        assert_eq!(g.sys(libc::SYS_recvfrom, &[fd, to, 8, 0, 0, 0]), 8);
        assert_eq!(g.read_words(to, 1), [i64::from_ne_bytes(*b"welcome!")]);
    }
    assert_eq!(
        g.sys(libc::SYS_recvfrom, &[fd, to, 8, 0, 0, 0]),
        errno(libc::EAGAIN)
    );
}

/// `socketpair` reaches nobody else, by whatever else sockets can do.
#[test]
fn pairs_reach_each_other() {
    needs!(Policy);
    let peer = socket();
    let g = Guest::new(Policy::new().connect(peer.local_addr().unwrap()));
    let pair = |kind: i32| {
        let at = g.words(&[0]);
        let kind = kind | libc::SOCK_NONBLOCK;
        assert_eq!(
            g.sys(libc::SYS_socketpair, &[libc::AF_UNIX.into(), kind.into(), 0, at]),
            0
        );
        let both = g.read_words(at, 1)[0];
        [both & 0xFFFF_FFFF, both >> 32]
    };
    let (data, to) = (g.text("abcdefgh"), g.words(&[0, 0]));
    let unix = g.words(&[libc::AF_UNIX as i64 | 0x61_0000, 0]);
    for kind in [libc::SOCK_STREAM, libc::SOCK_DGRAM, libc::SOCK_SEQPACKET] {
        let [a, b] = pair(kind);
        assert_eq!(g.sys(libc::SYS_read, &[b, to, 8]), errno(libc::EAGAIN));
        assert_eq!(g.sys(libc::SYS_write, &[a, data, 3]), 3);
        let message = header(&g, data, 0, 0);
        assert_eq!(g.sys(libc::SYS_sendmsg, &[a, message, 0]), 8);
        // A stream has no pieces.
        let first = if kind == libc::SOCK_STREAM { 11 } else { 3 };
        assert_eq!(g.sys(libc::SYS_recvfrom, &[b, to, 16, 0, 0, 0]), first);
        assert_eq!(g.sys(libc::SYS_sendto, &[b, data, 2, 0, 0, 0]), 2);
        assert_eq!(g.sys(libc::SYS_read, &[a, to, 8]), 2);
        // Neither a name nor a stranger's, nor a descriptor beside the bytes.
        let granted = g.address(peer.local_addr().unwrap());
        assert!(g.sys(libc::SYS_connect, &[a, granted, 16]) < 0);
        assert_eq!(
            g.sys(libc::SYS_connect, &[a, unix, 16]),
            errno(libc::EAFNOSUPPORT)
        );
        assert!(g.sys(libc::SYS_sendto, &[a, data, 2, 0, granted, 16]) < 0);
        assert_eq!(
            g.sys(libc::SYS_sendto, &[a, data, 2, 0, unix, 16]),
            errno(libc::EAFNOSUPPORT)
        );
        assert!(g.sys(libc::SYS_bind, &[a, unix, 16]) < 0);
        let rights = header(&g, data, 0, 24);
        assert_eq!(g.sys(libc::SYS_sendmsg, &[a, rights, 0]), errno(libc::EINVAL));
        assert_eq!(g.sys(libc::SYS_close, &[b]), 0);
        let after = g.sys(libc::SYS_write, &[a, data, 1]);
        // What the other end had not read is lost.
        let gone = [libc::EPIPE, libc::ECONNREFUSED, libc::ECONNRESET].map(errno);
        assert!(gone.contains(&after), "{after}");
        assert_eq!(g.sys(libc::SYS_close, &[a]), 0);
    }
    let at = g.words(&[0]);
    for (family, kind, protocol, wrong) in [
        (libc::AF_INET, libc::SOCK_STREAM, 0, libc::EACCES),
        (libc::AF_NETLINK, libc::SOCK_RAW, 0, libc::EACCES),
        (libc::AF_UNIX, libc::SOCK_RAW, 0, libc::EINVAL),
        (libc::AF_UNIX, libc::SOCK_STREAM, 1, libc::EACCES),
    ] {
        let args = [family.into(), kind.into(), protocol, at];
        assert_eq!(g.sys(libc::SYS_socketpair, &args), errno(wrong));
    }
    let unix = [libc::AF_UNIX.into(), libc::SOCK_STREAM.into(), 0, 16];
    assert_eq!(g.sys(libc::SYS_socketpair, &unix), errno(libc::EFAULT));
    assert!(peer.set_nonblocking(true).is_ok() && peer.recv(&mut [0; 8]).is_err());
}
