//! What a host and its worker share: a memory file with the window, what the domain may do with its pages, and the channels; and a
//! socket by which the host hands over files.

use crate::channel::Channels;
use ringfence_core::HostError;
use ringfence_runtime::backed;
use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Where the channels begin in the file.
pub(crate) const CHANNELS_AT: u64 = backed::MORE;
/// Size of the file, nearly all of it holes.
const SIZE: u64 = CHANNELS_AT + Channels::BYTES.next_multiple_of(4096) as u64;

/// An empty memory file.
pub(crate) fn memory_file(name: &CStr) -> Result<OwnedFd, HostError> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: a name that ends with NUL.
    let fd = unsafe { libc::memfd_create(name.as_ptr(), flags) };
    if fd < 0 {
        return Err(HostError::last("a memory file for the domain's process"));
    }
    // SAFETY: a fresh descriptor, ours.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The file that is shared, sealed against another size: behind every byte of it is a page, whatever the worker does.
pub(crate) fn file() -> Result<OwnedFd, HostError> {
    // SAFETY: asks only; all-zero is a value of the type.
    let limit = unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit);
        limit.rlim_cur
    };
    if limit < SIZE {
        return Err(HostError::FileSize { wanted: SIZE, limit });
    }
    let file = memory_file(c"ringfence-process")?;
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: our own file.
    let done = unsafe {
        libc::ftruncate(file.as_raw_fd(), SIZE as i64) == 0
            && libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) == 0
    };
    match done {
        true => Ok(file),
        false => Err(HostError::last("a memory file for the domain's process")),
    }
}

/// All zeroes again, for another worker.
pub(crate) fn empty(file: BorrowedFd<'_>) -> Result<(), HostError> {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: our own file.
    match unsafe { libc::fallocate(file.as_raw_fd(), mode, 0, SIZE as i64) } {
        0 => Ok(()),
        _ => Err(HostError::last("emptying the memory of a domain")),
    }
}

/// Two ends of a socket: the host's, which only sends, and the worker's, which only receives.
pub(crate) fn socket() -> Result<(OwnedFd, OwnedFd), HostError> {
    let mut ends = [-1; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    // SAFETY: room for two descriptors, which are ours then.
    let (host, worker) = unsafe {
        if libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) != 0 {
            return Err(HostError::last("a socket for the domain's process"));
        }
        libc::shutdown(ends[0], libc::SHUT_RD);
        (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1]))
    };
    Ok((host, worker))
}

/// Room for one descriptor beside a message, aligned.
#[repr(C, align(8))]
struct Control([u8; 64]);

/// A message of one byte, with room for a descriptor.
fn message(byte: &mut libc::iovec, control: &mut Control) -> libc::msghdr {
    // SAFETY: all-zero is a value of the type.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = byte;
    header.msg_iovlen = 1;
    header.msg_control = control.0.as_mut_ptr().cast();
    // SAFETY: arithmetic.
    header.msg_controllen = unsafe { libc::CMSG_SPACE(4) } as _;
    header
}

/// Hands a file over. The worker takes it when it is told to.
pub(crate) fn send(socket: BorrowedFd<'_>, file: BorrowedFd<'_>) -> Result<(), HostError> {
    let (mut word, mut control) = (0u8, Control([0; 64]));
    let mut byte = libc::iovec {
        iov_base: (&raw mut word).cast(),
        iov_len: 1,
    };
    let header = message(&mut byte, &mut control);
    // SAFETY: the header names buffers of ours, with room for what is written.
    let sent = unsafe {
        let first = libc::CMSG_FIRSTHDR(&raw const header);
        (*first).cmsg_level = libc::SOL_SOCKET;
        (*first).cmsg_type = libc::SCM_RIGHTS;
        (*first).cmsg_len = libc::CMSG_LEN(4) as _;
        libc::CMSG_DATA(first)
            .cast::<i32>()
            .write_unaligned(file.as_raw_fd());
        // Never waits: the worker takes what is sent before anything else is.
        let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
        libc::sendmsg(socket.as_raw_fd(), &raw const header, flags)
    };
    match sent {
        1 => Ok(()),
        _ => Err(HostError::last("handing a file to the domain's process")),
    }
}

/// Takes the file that was handed over.
pub(crate) fn receive(socket: i32) -> Option<OwnedFd> {
    let (mut word, mut control) = (0u8, Control([0; 64]));
    let mut byte = libc::iovec {
        iov_base: (&raw mut word).cast(),
        iov_len: 1,
    };
    let mut header = message(&mut byte, &mut control);
    // SAFETY: the header names buffers of ours; a descriptor that has come is nobody else's.
    unsafe {
        if libc::recvmsg(socket, &raw mut header, libc::MSG_CMSG_CLOEXEC) != 1 {
            return None;
        }
        let first = libc::CMSG_FIRSTHDR(&raw const header);
        if first.is_null() || (*first).cmsg_type != libc::SCM_RIGHTS {
            return None;
        }
        let fd = libc::CMSG_DATA(first).cast::<i32>().read_unaligned();
        Some(OwnedFd::from_raw_fd(fd))
    }
}
