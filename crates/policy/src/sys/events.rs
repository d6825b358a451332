//! Calls on counters, timers and sets of descriptors (`eventfd`, `timerfd`, `epoll`). As all of [`super`], they see the host's
//! descriptors and copies of what the domain passed.

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use super::{Outcome, outcome};

fn made(result: libc::c_long) -> Outcome<OwnedFd> {
    let fd = outcome(result)?;
    // SAFETY: the kernel has just made it for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// `eventfd2`, non-blocking.
pub fn event(count: u32, semaphore: bool) -> Outcome<OwnedFd> {
    let kind = if semaphore { libc::EFD_SEMAPHORE } else { 0 };
    // SAFETY: integers only.
    made(unsafe {
        libc::syscall(
            libc::SYS_eventfd2,
            count,
            kind | libc::EFD_CLOEXEC | libc::EFD_NONBLOCK,
        )
    })
}

/// `inotify_init1`, non-blocking.
pub fn watch() -> Outcome<OwnedFd> {
    // SAFETY: integers only.
    made(unsafe { libc::syscall(libc::SYS_inotify_init1, libc::IN_CLOEXEC | libc::IN_NONBLOCK) })
}

/// `inotify_add_watch` of an open file, by the name that the kernel has for it.
pub fn add_watch(set: BorrowedFd<'_>, file: BorrowedFd<'_>, mask: u32) -> Outcome {
    let name = format!("/proc/self/fd/{}\0", file.as_raw_fd());
    // SAFETY: the name is ours and ends with a NUL.
    outcome(unsafe { libc::syscall(libc::SYS_inotify_add_watch, set.as_raw_fd(), name.as_ptr(), mask) })
}

/// `inotify_rm_watch`.
pub fn remove_watch(set: BorrowedFd<'_>, watch: i32) -> Outcome {
    // SAFETY: integers only.
    outcome(unsafe { libc::syscall(libc::SYS_inotify_rm_watch, set.as_raw_fd(), watch) })
}

/// `timerfd_create`, non-blocking.
pub fn timer(clock: i32) -> Outcome<OwnedFd> {
    // SAFETY: integers only.
    made(unsafe {
        libc::syscall(
            libc::SYS_timerfd_create,
            clock,
            libc::TFD_CLOEXEC | libc::TFD_NONBLOCK,
        )
    })
}

/// `timerfd_settime`; what it was set to. Four words are an `itimerspec`: the interval and what is left, in seconds and nanoseconds.
pub fn set_timer(fd: BorrowedFd<'_>, flags: i32, to: [u64; 4]) -> Outcome<[u64; 4]> {
    let mut old = [0u64; 4];
    // SAFETY: both structures are ours, aligned, and of the kernel's size.
    outcome(unsafe {
        libc::syscall(
            libc::SYS_timerfd_settime,
            fd.as_raw_fd(),
            flags,
            to.as_ptr(),
            old.as_mut_ptr(),
        )
    })?;
    Ok(old)
}

/// `timerfd_gettime`.
pub fn timer_left(fd: BorrowedFd<'_>) -> Outcome<[u64; 4]> {
    let mut now = [0u64; 4];
    // SAFETY: the structure is ours, aligned, and of the kernel's size.
    outcome(unsafe { libc::syscall(libc::SYS_timerfd_gettime, fd.as_raw_fd(), now.as_mut_ptr()) })?;
    Ok(now)
}

/// `epoll_create1`.
pub fn set() -> Outcome<OwnedFd> {
    // SAFETY: integers only.
    made(unsafe { libc::syscall(libc::SYS_epoll_create1, libc::EPOLL_CLOEXEC) })
}

/// `epoll_ctl`.
pub fn change_set(
    set: BorrowedFd<'_>,
    operation: i32,
    member: BorrowedFd<'_>,
    mut event: libc::epoll_event,
) -> Outcome {
    let (set, member) = (set.as_raw_fd(), member.as_raw_fd());
    // SAFETY: the event is ours.
    outcome(unsafe { libc::syscall(libc::SYS_epoll_ctl, set, operation, member, &raw mut event) })
}

/// `epoll_wait`; a time that is not whole milliseconds is rounded up.
pub fn wait(set: BorrowedFd<'_>, events: &mut [libc::epoll_event], timeout: Duration) -> Outcome {
    let milliseconds = i32::try_from(timeout.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX);
    // SAFETY: the array is ours and as long as we say.
    outcome(unsafe {
        libc::syscall(
            libc::SYS_epoll_wait,
            set.as_raw_fd(),
            events.as_mut_ptr(),
            events.len(),
            milliseconds,
        )
    })
}
