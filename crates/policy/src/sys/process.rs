//! Processes: what is shared between them, how they begin and end.

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use crate::sys::{Outcome, outcome};

/// Words that forked processes share.
#[derive(Debug)]
pub struct Words {
    start: NonNull<AtomicU64>,
    count: usize,
}

// SAFETY: only atomics are used.
unsafe impl Send for Words {}
// SAFETY: as above.
unsafe impl Sync for Words {}

impl Words {
    /// So many, at least one, all of them 0.
    pub fn new(count: usize) -> Outcome<Words> {
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping at an address the kernel chooses.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                count * size_of::<AtomicU64>(),
                rights,
                flags,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(libc::ENOMEM);
        }
        let start = NonNull::new(start.cast()).ok_or(libc::ENOMEM)?;
        Ok(Words { start, count })
    }

    /// The word of this number.
    pub fn get(&self, n: usize) -> &AtomicU64 {
        assert!(n < self.count);
        // SAFETY: in the mapping, aligned, zeroed at first, and used as an atomic by all.
        unsafe { self.start.add(n).as_ref() }
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        // SAFETY: our own mapping.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.count * size_of::<AtomicU64>()) };
    }
}

/// How a process has ended: `wait4`'s status, and what it has used.
#[derive(Debug)]
pub struct Ended {
    /// The status.
    pub status: i32,
    /// `struct rusage`.
    pub usage: [u8; 144],
}

/// This process, as the host knows it.
pub fn own() -> i32 {
    // SAFETY: asks for a number.
    unsafe { libc::getpid() }
}

/// A descriptor that can be read from once the process, a child of ours that nobody has waited for, has ended.
pub fn handle(process: i32) -> Outcome<OwnedFd> {
    // SAFETY: integers only.
    let fd = outcome(unsafe { libc::syscall(libc::SYS_pidfd_open, process, 0) })?;
    // SAFETY: the kernel has just made it for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Ends a child of ours and waits for it.
pub fn kill(process: i32) {
    // SAFETY: a child that nobody has waited for: the number is its own.
    unsafe {
        libc::kill(process, libc::SIGKILL);
        while libc::waitpid(process, std::ptr::null_mut(), 0) < 0 && *libc::__errno_location() == libc::EINTR
        {
        }
    }
}

/// Sends a signal by a handle.
pub fn signal(handle: BorrowedFd<'_>, signal: i32) -> Outcome {
    let fd = handle.as_raw_fd();
    // SAFETY: no information is given.
    outcome(unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd, signal, 0usize, 0) })
}

/// How a child of ours has ended, who is no more then; `None` while it runs.
pub fn ended(process: i32) -> Outcome<Option<Ended>> {
    let (mut status, mut usage) = (0i32, [0u64; 18]);
    let number = libc::SYS_wait4;
    // SAFETY: both are ours, and of the kernel's sizes.
    let ended = outcome(unsafe {
        libc::syscall(
            number,
            process,
            &raw mut status,
            libc::WNOHANG,
            usage.as_mut_ptr(),
        )
    })?;
    let usage = super::bytes(&usage);
    Ok((ended != 0).then_some(Ended { status, usage }))
}

/// What a new process does first: it ends with `maker`, and no signal finds a handler of the host's, but those that faults and the
/// watchdog raise.
pub fn begin(maker: i32) {
    const HOSTS: [i32; 14] = [
        libc::SIGHUP,
        libc::SIGINT,
        libc::SIGQUIT,
        libc::SIGUSR1,
        libc::SIGUSR2,
        libc::SIGPIPE,
        libc::SIGALRM,
        libc::SIGTERM,
        libc::SIGCHLD,
        libc::SIGTSTP,
        libc::SIGTTIN,
        libc::SIGTTOU,
        libc::SIGIO,
        libc::SIGPROF,
    ];
    // SAFETY: default actions, and system calls without pointers. What the host ignores stays ignored.
    unsafe {
        for signal in HOSTS {
            let mut now: libc::sigaction = std::mem::zeroed();
            let known = libc::sigaction(signal, std::ptr::null(), &raw mut now) == 0;
            if known && now.sa_sigaction != libc::SIG_IGN {
                libc::signal(signal, libc::SIG_DFL);
            }
        }
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
        // It may have ended before.
        if libc::getppid() != maker {
            libc::_exit(128 + libc::SIGKILL);
        }
    }
}

/// Ends this process, without what a host does at its end.
pub fn leave(status: i32) -> ! {
    // SAFETY: ends the process.
    unsafe { libc::_exit(status) }
}

/// Ends this process by a signal, without a core file.
pub fn leave_by(signal: i32) -> ! {
    // SAFETY: structures of ours; the process ends.
    unsafe {
        let none = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
        libc::signal(signal, libc::SIG_DFL);
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
        libc::raise(signal);
        libc::_exit(128 + signal)
    }
}
