//! Messages of sockets, with their addresses.

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::span::Span;
use crate::sys::{Outcome, outcome};

/// What has come.
#[derive(Debug, Default)]
pub struct Received {
    /// How many bytes.
    pub len: i64,
    /// Whom it is from, if the socket tells: a `sockaddr`.
    pub name: Vec<u8>,
    /// `msg_flags`.
    pub flags: i32,
}

/// A `msghdr` of these vectors.
fn header(vectors: &mut [libc::iovec]) -> libc::msghdr {
    // SAFETY: all-zero is a value of the type.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = vectors.as_mut_ptr();
    header.msg_iovlen = vectors.len() as _;
    header
}

fn vectors(spans: &[Span]) -> Vec<libc::iovec> {
    let vector = |s: &Span| libc::iovec {
        iov_base: s.address() as *mut libc::c_void,
        iov_len: s.len() as usize,
    };
    spans.iter().map(vector).collect()
}

/// `sendmsg` from the domain's memory.
pub fn send(fd: BorrowedFd<'_>, spans: &[Span], to: Option<&[u8]>, flags: i32) -> Outcome {
    let mut vectors = vectors(spans);
    let mut header = header(&mut vectors);
    if let Some(to) = to {
        header.msg_name = to.as_ptr().cast_mut().cast();
        header.msg_namelen = to.len() as u32;
    }
    // SAFETY: header, vectors and address are ours, and what the vectors name lies in the domain's window.
    outcome(unsafe { libc::syscall(libc::SYS_sendmsg, fd.as_raw_fd(), &raw const header, flags) })
}

/// `recvmsg` into the domain's memory, without an address.
pub fn receive(fd: BorrowedFd<'_>, spans: &[Span], flags: i32) -> Outcome {
    let mut vectors = vectors(spans);
    let mut header = header(&mut vectors);
    // SAFETY: as above.
    outcome(unsafe { libc::syscall(libc::SYS_recvmsg, fd.as_raw_fd(), &raw mut header, flags) })
}

/// `recvmsg` into memory of ours.
pub fn receive_copy(fd: BorrowedFd<'_>, to: &mut [u8], flags: i32) -> Outcome<Received> {
    let mut vectors = [libc::iovec {
        iov_base: to.as_mut_ptr().cast(),
        iov_len: to.len(),
    }];
    let mut name = [0u8; 128];
    let mut header = header(&mut vectors);
    header.msg_name = name.as_mut_ptr().cast();
    header.msg_namelen = name.len() as u32;
    // SAFETY: all of it is ours.
    let len = outcome(unsafe { libc::syscall(libc::SYS_recvmsg, fd.as_raw_fd(), &raw mut header, flags) })?;
    Ok(Received {
        len,
        name: name[..name.len().min(header.msg_namelen as usize)].to_vec(),
        flags: header.msg_flags,
    })
}

/// `bind` to an address of ours.
pub fn bind(fd: BorrowedFd<'_>, name: &[u8]) -> Outcome {
    // SAFETY: the address is ours and as long as we say.
    outcome(unsafe { libc::syscall(libc::SYS_bind, fd.as_raw_fd(), name.as_ptr(), name.len()) })
}

/// `getsockname`, or `getpeername`.
pub fn name(fd: BorrowedFd<'_>, peer: bool) -> Outcome<Vec<u8>> {
    let number = if peer {
        libc::SYS_getpeername
    } else {
        libc::SYS_getsockname
    };
    let (mut name, mut len) = ([0u8; 128], 128u32);
    // SAFETY: both are ours.
    outcome(unsafe { libc::syscall(number, fd.as_raw_fd(), name.as_mut_ptr(), &raw mut len) })?;
    Ok(name[..name.len().min(len as usize)].to_vec())
}

/// `accept4`, non-blocking: the connection, and whom it is with.
pub fn accept(fd: BorrowedFd<'_>) -> Outcome<(OwnedFd, Vec<u8>)> {
    let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    let (mut name, mut len) = ([0u8; 128], 128u32);
    // SAFETY: both are ours.
    let made = outcome(unsafe {
        libc::syscall(
            libc::SYS_accept4,
            fd.as_raw_fd(),
            name.as_mut_ptr(),
            &raw mut len,
            flags,
        )
    })?;
    // SAFETY: the kernel has just made it for us.
    let made = unsafe { OwnedFd::from_raw_fd(made as i32) };
    Ok((made, name[..name.len().min(len as usize)].to_vec()))
}

/// `socketpair`, non-blocking.
pub fn pair(kind: i32) -> Outcome<[OwnedFd; 2]> {
    let kind = kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    let mut fds = [0i32; 2];
    // SAFETY: the array is ours and has room for two.
    outcome(unsafe { libc::syscall(libc::SYS_socketpair, libc::AF_UNIX, kind, 0, fds.as_mut_ptr()) })?;
    // SAFETY: the kernel has just made both for us.
    Ok(fds.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }))
}
