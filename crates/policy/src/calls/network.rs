//! Sockets, and whom they reach: the addresses that are granted.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Arc;

use crate::calls::context::Context;
use crate::calls::files;
use crate::sys::{self, Outcome, Plain};
use crate::table::{Held, Kind};

pub(super) fn socket(cx: Context<'_>) -> Outcome {
    let [family, kind, protocol, ..] = cx.args;
    if cx.state.policy.connect.is_empty() && cx.state.policy.listen.is_empty() {
        return Err(libc::EACCES);
    }
    let flags = (libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK) as u64;
    let base = (kind & !flags) as i32;
    if !matches!(family as i32, libc::AF_INET | libc::AF_INET6)
        || !matches!(base, libc::SOCK_STREAM | libc::SOCK_DGRAM)
        || !matches!(protocol as i32, 0 | libc::IPPROTO_TCP | libc::IPPROTO_UDP)
    {
        return Err(libc::EACCES);
    }
    let nonblocking = kind & libc::SOCK_NONBLOCK as u64 != 0;
    let fd = Held::new(sys::socket(family, kind & 0xF, protocol)?)?;
    let open = match base {
        libc::SOCK_STREAM => Kind::Socket(fd, nonblocking.into()),
        _ => Kind::Datagram(fd, nonblocking.into()),
    };
    cx.state
        .table
        .add(Arc::new(open), 0, kind & libc::SOCK_CLOEXEC as u64 != 0)
}

/// `socketpair`: two ends that are connected to each other, and to nothing else. Descriptors do not travel: no message has any.
pub(super) fn pair(cx: Context<'_>) -> Outcome {
    let [family, kind, protocol, pointer, ..] = cx.args;
    let flags = (libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK) as u64;
    let base = (kind & !flags) as i32;
    if family as i32 != libc::AF_UNIX || protocol as u32 != 0 {
        return Err(libc::EACCES);
    }
    if !matches!(base, libc::SOCK_STREAM | libc::SOCK_DGRAM | libc::SOCK_SEQPACKET) {
        return Err(libc::EINVAL);
    }
    let nonblocking = kind & libc::SOCK_NONBLOCK as u64 != 0;
    let [first, second] = sys::message::pair(base)?;
    let ends = [Held::new(first)?, Held::new(second)?].map(|fd| Kind::Socket(fd, nonblocking.into()));
    files::both(cx, ends, pointer, kind & libc::SOCK_CLOEXEC as u64 != 0)
}

/// The host's descriptor of a socket.
pub(super) fn socket_of(open: &Kind) -> Outcome<BorrowedFd<'_>> {
    match open {
        Kind::Socket(fd, _) | Kind::Datagram(fd, _) => fd.fd(),
        _ => Err(libc::ENOTSOCK),
    }
}

/// An address that a call names, copied once: what is checked is what is used.
fn name(cx: Context<'_>, pointer: u64, len: u64) -> Outcome<Vec<u8>> {
    let len = len as u32 as usize;
    if !(8..=128).contains(&len) {
        return Err(libc::EINVAL);
    }
    cx.memory.get_bytes(pointer, len)
}

/// Whom a call wants to reach: an address that is granted, and nothing in it that was not looked at.
pub(super) fn granted_name(cx: Context<'_>, pointer: u64, len: u64) -> Outcome<Vec<u8>> {
    let bytes = name(cx, pointer, len)?;
    if !granted(cx, address(&bytes).ok_or(libc::EAFNOSUPPORT)?) {
        return Err(libc::EACCES);
    }
    Ok(checked_part(bytes))
}

/// A name without what was not checked: flow and scope.
fn checked_part(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes[0] == libc::AF_INET6 as u8 {
        bytes[4..8].fill(0);
        bytes.truncate(28);
        bytes[24..].fill(0);
    }
    bytes
}

/// Whether the address is one that the domain may exchange something with. One of IPv4 may be written as one of IPv6.
pub(super) fn granted(cx: Context<'_>, address: SocketAddr) -> bool {
    let address = SocketAddr::new(address.ip().to_canonical(), address.port());
    cx.state.policy.connect.contains(&address)
}

/// Whether the domain may wait for connections at the address.
fn may_listen(cx: Context<'_>, address: SocketAddr) -> bool {
    let ip = address.ip().to_canonical();
    let at =
        |to: &SocketAddr| to.ip().to_canonical() == ip && (to.port() == 0 || to.port() == address.port());
    cx.state.policy.listen.iter().any(at)
}

/// Puts an address where a call wants it: as much as there is room for, and how long it is.
pub(super) fn put_name(cx: Context<'_>, bytes: &[u8], pointer: u64, len: u64) -> Outcome<()> {
    let room = u32::from_ne_bytes(cx.memory.get(len)?) as usize;
    cx.memory.put(pointer, &bytes[..bytes.len().min(room)])?;
    cx.memory.put(len, &(bytes.len() as u32).to_ne_bytes())
}

/// The address in a `sockaddr`.
pub(super) fn address(bytes: &[u8]) -> Option<SocketAddr> {
    let family = i32::from(u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?));
    let port = u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?);
    match family {
        libc::AF_INET => {
            let ip: [u8; 4] = bytes.get(4..8)?.try_into().ok()?;
            Some((Ipv4Addr::from(ip), port).into())
        }
        libc::AF_INET6 => {
            let ip: [u8; 16] = bytes.get(8..24)?.try_into().ok()?;
            Some((Ipv6Addr::from(ip), port).into())
        }
        _ => None,
    }
}

pub(super) fn connect(cx: Context<'_>) -> Outcome {
    let open = cx.open(0)?;
    let fd = socket_of(&open)?;
    let bytes = granted_name(cx, cx.args[1], cx.args[2])?;
    match sys::connect(fd, &bytes) {
        Err(libc::EINPROGRESS) if open.waits() => {
            cx.ready(fd, libc::POLLOUT)?;
            match sys::socket_option(fd, libc::SOL_SOCKET as u64, libc::SO_ERROR as u64)? {
                0 => Ok(0),
                errno => Err(errno as i32),
            }
        }
        other => other,
    }
}

/// `bind` to where the domain may wait for connections; and of a datagram socket to any port of any address, as resolvers do before
/// they ask: what comes there from others than those granted is dropped.
pub(super) fn bind(cx: Context<'_>) -> Outcome {
    let open = cx.open(0)?;
    let fd = socket_of(&open)?;
    let bytes = name(cx, cx.args[1], cx.args[2])?;
    let at = address(&bytes).ok_or(libc::EAFNOSUPPORT)?;
    let allowed = match *open {
        Kind::Datagram(..) => at.ip().is_unspecified() && at.port() == 0,
        _ => may_listen(cx, at),
    };
    if !allowed {
        return Err(libc::EACCES);
    }
    sys::message::bind(fd, &checked_part(bytes))
}

/// `listen`, where the socket is bound to an address at which the domain may wait.
pub(super) fn listen(cx: Context<'_>) -> Outcome {
    let open = cx.open(0)?;
    let fd = socket_of(&open)?;
    // One that is not bound would get a port now; of one it has been given `getsockname` tells which.
    let bound = address(&sys::message::name(fd, false)?).filter(|at| at.port() != 0);
    if !bound.is_some_and(|at| may_listen(cx, at)) {
        return Err(libc::EACCES);
    }
    sys::plain(Plain::Listen, [fd.as_raw_fd() as u64, cx.args[1], 0, 0])
}

/// `accept` and `accept4`.
pub(super) fn accept(cx: Context<'_>, number: libc::c_long) -> Outcome {
    let [_, pointer, len, flags, ..] = cx.args;
    let flags = if number == libc::SYS_accept4 {
        flags as i32
    } else {
        0
    };
    if flags & !(libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK) != 0 {
        return Err(libc::EINVAL);
    }
    let open = cx.open(0)?;
    let fd = socket_of(&open)?;
    // Before somebody is taken from the queue for whom there is no number.
    if cx.state.table.open() >= cx.state.table.limit() {
        return Err(libc::EMFILE);
    }
    let (accepted, name) = loop {
        match sys::message::accept(fd) {
            Err(libc::EAGAIN) if open.waits() => cx.ready(fd, libc::POLLIN)?,
            other => break other?,
        }
    };
    if pointer as u32 != 0 {
        put_name(cx, &name, pointer, len)?;
    }
    let nonblocking = flags & libc::SOCK_NONBLOCK != 0;
    let open = Arc::new(Kind::Socket(Held::new(accepted)?, nonblocking.into()));
    cx.state.table.add(open, 0, flags & libc::SOCK_CLOEXEC != 0)
}

/// `getsockname` and `getpeername`.
pub(super) fn own_name(cx: Context<'_>, number: libc::c_long) -> Outcome {
    let open = cx.open(0)?;
    let bytes = sys::message::name(socket_of(&open)?, number == libc::SYS_getpeername)?;
    put_name(cx, &bytes, cx.args[1], cx.args[2])?;
    Ok(0)
}

pub(super) fn shutdown(cx: Context<'_>) -> Outcome {
    let open = cx.open(0)?;
    let fd = socket_of(&open)?.as_raw_fd() as u64;
    sys::plain(Plain::Shutdown, [fd, cx.args[1], 0, 0])
}

/// Integer options that change nothing but the socket.
pub(super) fn option(cx: Context<'_>, number: libc::c_long) -> Outcome {
    let [fd, level, name, value, len, _] = cx.args;
    let open = cx.state.table.get(fd)?;
    let fd = socket_of(&open)?;
    let known = match level as i32 {
        libc::SOL_SOCKET => {
            matches!(
                name as i32,
                libc::SO_ERROR | libc::SO_KEEPALIVE | libc::SO_SNDBUF | libc::SO_RCVBUF | libc::SO_TYPE
            )
        }
        libc::IPPROTO_TCP => name as i32 == libc::TCP_NODELAY,
        libc::IPPROTO_IPV6 => name as i32 == libc::IPV6_V6ONLY,
        _ => false,
    };
    if !known {
        return Err(libc::ENOPROTOOPT);
    }
    if number == libc::SYS_setsockopt {
        if len as u32 != 4 {
            return Err(libc::EINVAL);
        }
        return sys::set_socket_option(fd, level, name, u32::from_ne_bytes(cx.memory.get(value)?));
    }
    if u32::from_ne_bytes(cx.memory.get(len)?) < 4 {
        return Err(libc::EINVAL);
    }
    let got = sys::socket_option(fd, level, name)?;
    cx.memory.put(value, &got.to_ne_bytes())?;
    cx.memory.put(len, &4u32.to_ne_bytes())?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let v4 = [2, 0, 0x1F, 0x90, 127, 0, 0, 1];
        assert_eq!(address(&v4), Some("127.0.0.1:8080".parse().unwrap()));
        let mut v6 = [0u8; 28];
        v6[0] = 10;
        v6[3] = 80;
        v6[23] = 1;
        assert_eq!(address(&v6), Some("[::1]:80".parse().unwrap()));
        assert_eq!(address(&[1, 0, 0, 0, 0, 0, 0, 0]), None);
        assert_eq!(address(&v4[..6]), None);
    }
}
