//! Connections to listed addresses.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::calls::context::Context;
use crate::slices::SLICE;
use crate::sys::{self, Outcome, Plain, Transfer};
use crate::table::Kind;

pub(super) fn socket(cx: Context<'_>) -> Outcome {
    let [family, kind, protocol, ..] = cx.args;
    if cx.state.policy.connect.is_empty() {
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
    let fd = sys::socket(family, kind & 0xF, protocol)?;
    cx.state.table.add(
        Arc::new(Kind::Socket(fd, nonblocking.into())),
        0,
        kind & libc::SOCK_CLOEXEC as u64 != 0,
    )
}

/// The address in a `sockaddr` that was copied out of the domain.
fn address(bytes: &[u8]) -> Option<SocketAddr> {
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
    let open = cx.state.table.get(cx.args[0])?;
    let Kind::Socket(fd, nonblocking) = &*open else {
        return Err(libc::ENOTSOCK);
    };
    let len = cx.args[2] as u32 as usize;
    if !(8..=128).contains(&len) {
        return Err(libc::EINVAL);
    }
    // Copied once: what is checked is what is used.
    let mut bytes = cx.memory.get_bytes(cx.args[1], len)?;
    let target = address(&bytes).ok_or(libc::EAFNOSUPPORT)?;
    if !cx.state.policy.connect.contains(&target) {
        return Err(libc::EACCES);
    }
    if target.is_ipv6() {
        // Flow and scope were not checked.
        bytes[4..8].fill(0);
        bytes.truncate(28);
        bytes[24..].fill(0);
    }
    match sys::connect(fd.as_fd(), &bytes) {
        Err(libc::EINPROGRESS) if !nonblocking.load(Ordering::Relaxed) => {
            cx.ready(fd.as_fd(), libc::POLLOUT)?;
            match sys::socket_option(fd.as_fd(), libc::SOL_SOCKET as u64, libc::SO_ERROR as u64)? {
                0 => Ok(0),
                errno => Err(errno as i32),
            }
        }
        other => other,
    }
}

/// `sendto` and `recvfrom` on connected sockets; addresses are neither taken nor given.
pub(super) fn transfer(cx: Context<'_>, number: libc::c_long) -> Outcome {
    let [fd, pointer, len, flags, address, _] = cx.args;
    let open = cx.state.table.get(fd)?;
    let Kind::Socket(fd, _) = &*open else {
        return Err(libc::ENOTSOCK);
    };
    let mut span = cx.memory.span(pointer, len, number != libc::SYS_sendto)?;
    let waits = open.waits() && flags & libc::MSG_DONTWAIT as u64 == 0;
    let (call, events, flags) = if number == libc::SYS_sendto {
        if address as u32 != 0 {
            return Err(libc::EACCES);
        }
        let allowed = (libc::MSG_DONTWAIT | libc::MSG_MORE | libc::MSG_EOR) as u64;
        (
            Transfer::Send,
            libc::POLLOUT,
            flags & allowed | libc::MSG_NOSIGNAL as u64,
        )
    } else {
        let allowed = (libc::MSG_PEEK | libc::MSG_WAITALL | libc::MSG_DONTWAIT) as u64;
        (Transfer::Recv, libc::POLLIN, flags & allowed)
    };
    // What is sent is sent as a whole; what is received only if that was asked for.
    let whole = waits
        && match call {
            Transfer::Send => true,
            _ => flags & libc::MSG_WAITALL as u64 != 0 && flags & libc::MSG_PEEK as u64 == 0,
        };
    let mut done = 0;
    loop {
        match sys::transfer(call, fd.as_fd(), span.first(SLICE), flags) {
            Err(libc::EAGAIN) if waits => {
                if let Err(errno) = cx.ready(fd.as_fd(), events) {
                    return if done > 0 { Ok(done) } else { Err(errno) };
                }
            }
            Err(_) if done > 0 => return Ok(done),
            Ok(n) => {
                done += n;
                span = span.skip(n as u64);
                // A datagram is one piece, and smaller than a slice.
                if !whole || n == 0 || span.len() == 0 || cx.going_on().is_err() {
                    return Ok(done);
                }
            }
            other => return other,
        }
    }
}

pub(super) fn shutdown(cx: Context<'_>) -> Outcome {
    match &*cx.state.table.get(cx.args[0])? {
        Kind::Socket(fd, _) => sys::plain(Plain::Shutdown, [fd.as_raw_fd() as u64, cx.args[1], 0, 0]),
        _ => Err(libc::ENOTSOCK),
    }
}

/// Integer options that change nothing but the socket.
pub(super) fn option(cx: Context<'_>, number: libc::c_long) -> Outcome {
    let [fd, level, name, value, len, _] = cx.args;
    let open = cx.state.table.get(fd)?;
    let Kind::Socket(fd, _) = &*open else {
        return Err(libc::ENOTSOCK);
    };
    let known = match level as i32 {
        libc::SOL_SOCKET => {
            matches!(
                name as i32,
                libc::SO_ERROR | libc::SO_KEEPALIVE | libc::SO_SNDBUF | libc::SO_RCVBUF | libc::SO_TYPE
            )
        }
        libc::IPPROTO_TCP => name as i32 == libc::TCP_NODELAY,
        _ => false,
    };
    if !known {
        return Err(libc::ENOPROTOOPT);
    }
    if number == libc::SYS_setsockopt {
        if len as u32 != 4 {
            return Err(libc::EINVAL);
        }
        return sys::set_socket_option(fd.as_fd(), level, name, u32::from_ne_bytes(cx.memory.get(value)?));
    }
    if u32::from_ne_bytes(cx.memory.get(len)?) < 4 {
        return Err(libc::EINVAL);
    }
    let got = sys::socket_option(fd.as_fd(), level, name)?;
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
