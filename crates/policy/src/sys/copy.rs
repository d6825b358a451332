//! Calls that move bytes from one descriptor to another. Positions are ours; where there is none, a descriptor's own moves.

use std::os::fd::{AsRawFd, BorrowedFd};

use super::{Outcome, outcome};

fn pointer(position: Option<&mut i64>) -> *mut i64 {
    position.map_or(std::ptr::null_mut(), std::ptr::from_mut)
}

/// `sendfile`.
pub fn send(to: BorrowedFd<'_>, from: BorrowedFd<'_>, at: Option<&mut i64>, len: u64) -> Outcome {
    let (to, from) = (to.as_raw_fd(), from.as_raw_fd());
    // SAFETY: the position, if any, is ours and borrowed for the call.
    outcome(unsafe { libc::syscall(libc::SYS_sendfile, to, from, pointer(at), len) })
}

/// `copy_file_range`.
pub fn range(
    from: (BorrowedFd<'_>, Option<&mut i64>),
    to: (BorrowedFd<'_>, Option<&mut i64>),
    len: u64,
) -> Outcome {
    // SAFETY: the positions, if any, are ours and borrowed for the call.
    outcome(unsafe {
        libc::syscall(
            libc::SYS_copy_file_range,
            from.0.as_raw_fd(),
            pointer(from.1),
            to.0.as_raw_fd(),
            pointer(to.1),
            len,
            0,
        )
    })
}
