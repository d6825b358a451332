//! Bytes on their way between a descriptor of the host's and a domain's memory.

use std::os::fd::{AsRawFd, BorrowedFd};

/// A range of a domain's memory. Whether anything is mapped there is for the back end and the kernel to find out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    address: u64,
    len: u64,
}

impl Span {
    /// The `len` bytes at `address`, which is the domain's own number. [`Space::transfer`](crate::Space::transfer) checks it.
    #[must_use]
    pub fn new(address: u64, len: u64) -> Span {
        Span { address, len }
    }

    /// The first byte.
    #[must_use]
    pub fn address(self) -> u64 {
        self.address
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(self) -> u64 {
        self.len
    }

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Its first `n` bytes (or all of them).
    #[must_use]
    pub fn first(self, n: u64) -> Span {
        Span {
            len: n.min(self.len),
            ..self
        }
    }

    /// Without its first `n` bytes (or all of them).
    #[must_use]
    pub fn skip(self, n: u64) -> Span {
        let n = n.min(self.len);
        Span {
            address: self.address + n,
            len: self.len - n,
        }
    }
}

/// Which system call moves the bytes. Those with one span take the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transfer {
    /// `read`, `readv`
    Read,
    /// `write`, `writev`
    Write,
    /// `pread64`, `preadv` from this offset
    ReadAt(u64),
    /// `pwrite64`, `pwritev` from this offset
    WriteAt(u64),
    /// `preadv2` at the stream's position, without waiting: `EAGAIN` where it would have to, `EOPNOTSUPP` where the kernel
    /// cannot tell
    ReadAtOnce,
    /// `pwritev2`, likewise
    WriteAtOnce,
    /// `getdents64`
    List,
    /// `recvfrom` without an address, with these flags
    Receive(u64),
    /// `sendto` without an address, with these flags
    Send(u64),
}

impl Transfer {
    /// Whether the domain's memory is written.
    #[must_use]
    pub fn fills(self) -> bool {
        matches!(
            self,
            Transfer::Read
                | Transfer::ReadAt(_)
                | Transfer::ReadAtOnce
                | Transfer::List
                | Transfer::Receive(_)
        )
    }
}

/// Lets the kernel move the bytes, at the addresses as they are.
///
/// # Errors
/// The errno.
///
/// # Safety
/// The spans lie in memory that the host has no references into, and that it lets a stranger read or write.
pub unsafe fn direct(how: Transfer, fd: BorrowedFd<'_>, spans: &[Span]) -> Result<i64, i32> {
    let fd = fd.as_raw_fd();
    // No address, for the socket calls.
    let one = |number: libc::c_long, s: &Span, extra: u64| {
        // SAFETY: the caller answers for the span.
        outcome(unsafe { libc::syscall(number, fd, s.address, s.len, extra, 0usize, 0usize) })
    };
    let many = |number: libc::c_long, vectors: &[libc::iovec], low: i64, high: i64, flags: i32| {
        // SAFETY: the vectors are ours; the caller answers for what they name.
        outcome(unsafe { libc::syscall(number, fd, vectors.as_ptr(), vectors.len(), low, high, flags) })
    };
    let vector = |s: &Span| libc::iovec {
        iov_base: s.address as *mut libc::c_void,
        iov_len: s.len as usize,
    };
    let at_once = |number| match spans {
        [one] => many(number, &[vector(one)], -1, -1, libc::RWF_NOWAIT),
        several => {
            let vectors: Vec<_> = several.iter().map(vector).collect();
            many(number, &vectors, -1, -1, libc::RWF_NOWAIT)
        }
    };
    let (single, vectored, offset) = match how {
        Transfer::Read => (libc::SYS_read, libc::SYS_readv, 0),
        Transfer::Write => (libc::SYS_write, libc::SYS_writev, 0),
        Transfer::ReadAt(offset) => (libc::SYS_pread64, libc::SYS_preadv, offset),
        Transfer::WriteAt(offset) => (libc::SYS_pwrite64, libc::SYS_pwritev, offset),
        Transfer::ReadAtOnce => return at_once(libc::SYS_preadv2),
        Transfer::WriteAtOnce => return at_once(libc::SYS_pwritev2),
        Transfer::List => (libc::SYS_getdents64, 0, 0),
        Transfer::Receive(flags) => (libc::SYS_recvfrom, 0, flags),
        Transfer::Send(flags) => (libc::SYS_sendto, 0, flags),
    };
    match spans {
        [span] => one(single, span, offset),
        _ if vectored == 0 => Err(libc::EINVAL),
        several => {
            let vectors: Vec<_> = several.iter().map(vector).collect();
            many(vectored, &vectors, offset as i64, 0, 0)
        }
    }
}

fn outcome(result: libc::c_long) -> Result<i64, i32> {
    if result == -1 {
        // SAFETY: errno is this thread's own.
        Err(unsafe { *libc::__errno_location() })
    } else {
        Ok(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::{AsFd, FromRawFd, OwnedFd};

    fn file() -> OwnedFd {
        // SAFETY: a C string; a fresh descriptor.
        unsafe {
            let fd = libc::memfd_create(c"transfer".as_ptr(), libc::MFD_CLOEXEC);
            assert!(fd >= 0);
            OwnedFd::from_raw_fd(fd)
        }
    }

    fn span(bytes: &mut [u8]) -> Span {
        Span::new(bytes.as_mut_ptr() as u64, bytes.len() as u64)
    }

    /// As the system call of that name would: one span or several, at the position or elsewhere.
    #[test]
    fn bytes_arrive_where_they_belong() {
        let file = file();
        let go = |how, spans: &[Span]| {
            // SAFETY: the spans are arrays of the test's own, which nobody looks at meanwhile.
            unsafe { direct(how, file.as_fd(), spans) }
        };
        let (mut a, mut b) = (*b"one ", *b"two three");
        assert_eq!(go(Transfer::Write, &[span(&mut a), span(&mut b)]), Ok(13));
        let (mut x, mut y) = ([0; 3], [0; 6]);
        assert_eq!(go(Transfer::ReadAt(4), &[span(&mut x), span(&mut y)]), Ok(9));
        assert_eq!((&x, &y), (b"two", b" three"));
        assert_eq!(
            go(Transfer::Read, &[span(&mut x)]),
            Ok(0),
            "the position is at the end"
        );
        assert_eq!(go(Transfer::WriteAt(1), &[span(&mut { *b"NE" })]), Ok(2));
        let mut all = [0; 13];
        assert_eq!(go(Transfer::ReadAt(0), &[span(&mut all)]), Ok(13));
        assert_eq!(&all, b"oNE two three");
        let one = span(&mut all);
        assert_eq!((one.first(4).len(), one.skip(20).len()), (4, 0));
        assert_eq!(one.skip(4).address(), one.address() + 4);
    }

    #[test]
    fn what_the_kernel_refuses_is_its_errno() {
        let file = file();
        let mut byte = [0];
        let spans = [span(&mut byte)];
        let go = |how, spans: &[Span]| {
            // SAFETY: as above; the kernel refuses the other ranges.
            unsafe { direct(how, file.as_fd(), spans) }
        };
        assert_eq!(go(Transfer::Write, &[Span::new(8, 8)]), Err(libc::EFAULT));
        assert_eq!(go(Transfer::List, &spans), Err(libc::ENOTDIR));
        assert_eq!(go(Transfer::Receive(0), &spans), Err(libc::ENOTSOCK));
        assert_eq!(
            go(Transfer::List, &[spans[0], spans[0]]),
            Err(libc::EINVAL),
            "takes one span"
        );
        assert!(Transfer::ReadAtOnce.fills() && !Transfer::WriteAtOnce.fills());
    }
}
