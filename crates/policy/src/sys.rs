//! System calls, with the few ways in which the monitor makes them. All `unsafe` of this crate is here.
//!
//! Memory that the kernel reads or writes is either a buffer of ours, or a [`Span`]: a range that was checked to lie
//! inside the domain's window, or a copy that a [`Stage`](crate::stage::Stage) keeps. The kernel respects the window's page rights, and
//! the host has no references into it.

use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use libc::c_long;

use crate::span::Span;

pub mod copy;
pub mod events;
pub mod message;
pub mod process;

/// A system call's result: a value, or the positive errno.
pub type Outcome<T = i64> = Result<T, i32>;

/// Calls whose arguments are all integers: descriptors, offsets, flags.
#[derive(Clone, Copy, Debug)]
#[repr(i64)]
pub enum Plain {
    /// `lseek`
    Lseek = libc::SYS_lseek,
    /// `fsync`
    Fsync = libc::SYS_fsync,
    /// `fdatasync`
    Fdatasync = libc::SYS_fdatasync,
    /// `ftruncate`
    Ftruncate = libc::SYS_ftruncate,
    /// `fallocate`
    Fallocate = libc::SYS_fallocate,
    /// `fchmod`
    Fchmod = libc::SYS_fchmod,
    /// `flock`
    Flock = libc::SYS_flock,
    /// `fcntl` with an integer argument
    Fcntl = libc::SYS_fcntl,
    /// `sched_yield`
    Yield = libc::SYS_sched_yield,
    /// `shutdown`
    Shutdown = libc::SYS_shutdown,
    /// `listen`
    Listen = libc::SYS_listen,
}

fn outcome(result: c_long) -> Outcome {
    if result == -1 {
        // SAFETY: errno is this thread's own.
        Err(unsafe { *libc::__errno_location() })
    } else {
        Ok(result)
    }
}

/// A call with integers only.
pub fn plain(call: Plain, args: [u64; 4]) -> Outcome {
    // SAFETY: no argument of these calls is an address.
    outcome(unsafe { libc::syscall(call as c_long, args[0], args[1], args[2], args[3]) })
}

/// Calls of the form `f(fd, buffer, length, extra…)` on the domain's memory.
#[derive(Clone, Copy, Debug)]
#[repr(i64)]
pub enum Transfer {
    /// `read`
    Read = libc::SYS_read,
    /// `write`
    Write = libc::SYS_write,
    /// `pread64`
    Pread = libc::SYS_pread64,
    /// `pwrite64`
    Pwrite = libc::SYS_pwrite64,
    /// `getdents64`
    Getdents = libc::SYS_getdents64,
}

/// Moves bytes between a descriptor and the domain's memory.
pub fn transfer(call: Transfer, fd: BorrowedFd<'_>, span: Span, extra: u64) -> Outcome {
    // SAFETY: the span lies in the domain's window, to which only the kernel and the domain itself have access.
    outcome(unsafe { libc::syscall(call as c_long, fd.as_raw_fd(), span.address(), span.len(), extra) })
}

/// `readv`, `writev`, `preadv`, `pwritev` with spans of the domain's memory.
pub fn vectored(write: bool, fd: BorrowedFd<'_>, spans: &[Span], offset: Option<u64>) -> Outcome {
    let vectors: Vec<libc::iovec> = spans
        .iter()
        .map(|s| libc::iovec {
            iov_base: s.address() as *mut libc::c_void,
            iov_len: s.len() as usize,
        })
        .collect();
    let number = match (write, offset) {
        (false, None) => libc::SYS_readv,
        (true, None) => libc::SYS_writev,
        (false, Some(_)) => libc::SYS_preadv,
        (true, Some(_)) => libc::SYS_pwritev,
    };
    // SAFETY: the vectors are ours, and what they name lies in the domain's window.
    outcome(unsafe {
        libc::syscall(
            number,
            fd.as_raw_fd(),
            vectors.as_ptr(),
            vectors.len(),
            offset.unwrap_or(0),
            0,
        )
    })
}

/// `preadv2` or `pwritev2` at the stream's position, without waiting: `EAGAIN` where it would have to, `EOPNOTSUPP` where
/// the kernel cannot tell.
pub fn at_once(write: bool, fd: BorrowedFd<'_>, spans: &[Span]) -> Outcome {
    let number = if write {
        libc::SYS_pwritev2
    } else {
        libc::SYS_preadv2
    };
    let vector = |s: &Span| libc::iovec {
        iov_base: s.address() as *mut libc::c_void,
        iov_len: s.len() as usize,
    };
    let call = |vectors: &[libc::iovec]| {
        // SAFETY: the vectors are ours, and what they name lies in the domain's window.
        outcome(unsafe {
            libc::syscall(
                number,
                fd.as_raw_fd(),
                vectors.as_ptr(),
                vectors.len(),
                -1i64,
                -1i64,
                libc::RWF_NOWAIT,
            )
        })
    };
    match spans {
        [one] => call(&[vector(one)]),
        several => call(&several.iter().map(vector).collect::<Vec<_>>()),
    }
}

/// Runs `f`, which writes, so that a SIGPIPE or SIGXFSZ that it brings on never reaches the host: by default either would end
/// the process, for something that a domain did.
pub fn quietly<T>(f: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    // SAFETY: the sets and the time are ours; the thread's mask is put back as it was.
    unsafe {
        let mut signals: libc::sigset_t = std::mem::zeroed();
        let mut old: libc::sigset_t = std::mem::zeroed();
        let mut pending: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut signals);
        libc::sigaddset(&raw mut signals, libc::SIGPIPE);
        libc::sigaddset(&raw mut signals, libc::SIGXFSZ);
        libc::sigpending(&raw mut pending);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const signals, &raw mut old);
        let result = f();
        // Whatever the result: a write that has waited may have written a part, and so succeed, and raise the signal.
        for signal in [libc::SIGPIPE, libc::SIGXFSZ] {
            // Not one that was waiting before: that one is the host's.
            if libc::sigismember(&raw const pending, signal) == 1 {
                libc::sigdelset(&raw mut signals, signal);
            }
        }
        let zero: libc::timespec = std::mem::zeroed();
        while libc::sigtimedwait(&raw const signals, std::ptr::null_mut(), &raw const zero) > 0 {}
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const old, std::ptr::null_mut());
        result
    }
}

/// Whether the process has a limit on the size of files, and so could get SIGXFSZ; also if nobody tells.
pub fn file_size_limited() -> bool {
    // SAFETY: the structure is ours.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) != 0 || limit.rlim_cur != libc::RLIM_INFINITY
    }
}

/// `getrandom` into the domain's memory.
pub fn random(span: Span, flags: u64) -> Outcome {
    // SAFETY: the span lies in the domain's window.
    outcome(unsafe { libc::syscall(libc::SYS_getrandom, span.address(), span.len(), flags) })
}

/// `openat2` below `dir`: never out of it, no magic links, no other file systems.
pub fn open_beneath(dir: BorrowedFd<'_>, path: &CStr, flags: i32, mode: u32) -> Outcome<OwnedFd> {
    // The kernel's `struct open_how`.
    let how: [u64; 3] = [
        (flags | libc::O_CLOEXEC) as u32 as u64,
        u64::from(mode),
        libc::RESOLVE_BENEATH | libc::RESOLVE_NO_MAGICLINKS | libc::RESOLVE_NO_XDEV,
    ];
    for _ in 0..16 {
        // SAFETY: path and structure are ours and outlive the call.
        let result = outcome(unsafe {
            libc::syscall(
                libc::SYS_openat2,
                dir.as_raw_fd(),
                path.as_ptr(),
                how.as_ptr(),
                size_of_val(&how),
            )
        });
        match result {
            // A rename somewhere made the kernel unsure; it asks to be called again.
            Err(libc::EAGAIN) => {}
            Err(e) => return Err(e),
            // SAFETY: the kernel has just made this descriptor for us.
            Ok(fd) => return Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) }),
        }
    }
    Err(libc::EAGAIN)
}

/// Opens a directory of the host's, as the host names it.
pub fn open_root(path: &CStr) -> Outcome<OwnedFd> {
    let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC;
    // SAFETY: the path is ours and outlives the call.
    let fd = outcome(unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0) })?;
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// The directory above, as the host sees it.
pub fn parent(dir: BorrowedFd<'_>) -> Outcome<OwnedFd> {
    let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC;
    // SAFETY: a constant name.
    let fd = outcome(unsafe { libc::syscall(libc::SYS_openat, dir.as_raw_fd(), c"..".as_ptr(), flags, 0) })?;
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Calls on a name in a directory whose other arguments are integers.
#[derive(Clone, Copy, Debug)]
#[repr(i64)]
pub enum Named {
    /// `mkdirat`
    Mkdir = libc::SYS_mkdirat,
    /// `unlinkat`
    Unlink = libc::SYS_unlinkat,
    /// `faccessat2`
    Access = libc::SYS_faccessat2,
}

/// A call on a name in a directory.
pub fn named(call: Named, dir: BorrowedFd<'_>, name: &CStr, a: u64, b: u64) -> Outcome {
    // SAFETY: the name is ours and outlives the call.
    outcome(unsafe { libc::syscall(call as c_long, dir.as_raw_fd(), name.as_ptr(), a, b) })
}

/// `renameat2` or `linkat`.
pub fn two_names(
    link: bool,
    from: (BorrowedFd<'_>, &CStr),
    to: (BorrowedFd<'_>, &CStr),
    flags: u64,
) -> Outcome {
    let number = if link {
        libc::SYS_linkat
    } else {
        libc::SYS_renameat2
    };
    // SAFETY: both names are ours and outlive the call.
    outcome(unsafe {
        libc::syscall(
            number,
            from.0.as_raw_fd(),
            from.1.as_ptr(),
            to.0.as_raw_fd(),
            to.1.as_ptr(),
            flags,
        )
    })
}

/// `symlinkat`.
pub fn make_link(text: &CStr, dir: BorrowedFd<'_>, name: &CStr) -> Outcome {
    // SAFETY: both texts are ours and outlive the call.
    outcome(unsafe { libc::syscall(libc::SYS_symlinkat, text.as_ptr(), dir.as_raw_fd(), name.as_ptr()) })
}

/// `readlinkat` into a buffer of ours.
pub fn read_link(dir: BorrowedFd<'_>, name: &CStr) -> Outcome<Vec<u8>> {
    let mut buffer = vec![0u8; 4096];
    // SAFETY: name and buffer are ours and outlive the call.
    let n = outcome(unsafe {
        libc::syscall(
            libc::SYS_readlinkat,
            dir.as_raw_fd(),
            name.as_ptr(),
            buffer.as_mut_ptr(),
            buffer.len(),
        )
    })?;
    buffer.truncate(n as usize);
    Ok(buffer)
}

/// The kernel's `struct stat` of an open file.
pub fn stat(fd: BorrowedFd<'_>) -> Outcome<[u8; 144]> {
    let mut buffer = [0u64; 18];
    // SAFETY: the buffer is ours, aligned, and has the size of the kernel's structure on this architecture.
    outcome(unsafe {
        libc::syscall(
            libc::SYS_newfstatat,
            fd.as_raw_fd(),
            c"".as_ptr(),
            buffer.as_mut_ptr(),
            libc::AT_EMPTY_PATH,
        )
    })?;
    Ok(bytes(&buffer))
}

/// The size of an open file.
pub fn size(fd: BorrowedFd<'_>) -> Outcome<u64> {
    let bytes = stat(fd)?;
    Ok(u64::from_ne_bytes(bytes[48..56].try_into().unwrap_or_default()))
}

/// A memory file of this length, which does not get shorter.
pub fn memory_file(len: u64) -> Outcome<OwnedFd> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: a constant name.
    let fd = outcome(unsafe { libc::syscall(libc::SYS_memfd_create, c"ringfence-shared".as_ptr(), flags) })?;
    // SAFETY: the kernel has just made it for us.
    let file = unsafe { OwnedFd::from_raw_fd(fd as RawFd) };
    if len > i64::MAX as u64 {
        return Err(libc::ENOMEM);
    }
    plain(Plain::Ftruncate, [fd as u64, len, 0, 0])?;
    let seals = (libc::F_SEAL_SHRINK | libc::F_SEAL_SEAL) as u64;
    plain(Plain::Fcntl, [fd as u64, libc::F_ADD_SEALS as u64, seals, 0])?;
    Ok(file)
}

/// How much of a part of an open file has no room on disk, at most.
pub fn holes(fd: BorrowedFd<'_>, offset: u64, len: u64) -> Outcome<u64> {
    let bytes = stat(fd)?;
    let word = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap_or_default());
    let (size, blocks) = (word(48), word(64));
    let part = size.min(offset.saturating_add(len)).saturating_sub(offset);
    Ok(size.saturating_sub(blocks.saturating_mul(512)).min(part))
}

/// `msync` of the domain's memory.
pub fn sync(span: Span, flags: u64) -> Outcome {
    // SAFETY: the span lies in the domain's window; the kernel writes maps of files back, and changes nothing.
    outcome(unsafe { libc::syscall(libc::SYS_msync, span.address(), span.len(), flags) })
}

/// Whether a descriptor is a file with content.
pub fn is_file(fd: BorrowedFd<'_>) -> bool {
    stat(fd).is_ok_and(|bytes| {
        u32::from_ne_bytes([bytes[24], bytes[25], bytes[26], bytes[27]]) & libc::S_IFMT == libc::S_IFREG
    })
}

/// Whether a descriptor can keep a reader or writer waiting: neither a file nor `/dev/null`.
pub fn waits(fd: BorrowedFd<'_>) -> bool {
    let Ok(bytes) = stat(fd) else { return false };
    let mode = u32::from_ne_bytes([bytes[24], bytes[25], bytes[26], bytes[27]]);
    let device = u64::from_ne_bytes(bytes[40..48].try_into().unwrap_or_default());
    mode & libc::S_IFMT != libc::S_IFREG && device != libc::makedev(1, 3)
}

/// The kernel's `struct statfs` of an open file, without what tells one file system from another.
pub fn file_system_status(fd: BorrowedFd<'_>) -> Outcome<[u8; 120]> {
    let mut buffer = [0u64; 15];
    // SAFETY: the buffer is ours, aligned, and has the size of the kernel's structure on this architecture.
    outcome(unsafe { libc::syscall(libc::SYS_fstatfs, fd.as_raw_fd(), buffer.as_mut_ptr()) })?;
    buffer[7] = 0; // f_fsid
    Ok(bytes(&buffer))
}

/// The kernel's `struct statx` of an open file.
pub fn statx(fd: BorrowedFd<'_>, mask: u64) -> Outcome<[u8; 256]> {
    let mut buffer = [0u64; 32];
    // SAFETY: the buffer is ours, aligned, and has the size of the kernel's structure.
    outcome(unsafe {
        libc::syscall(
            libc::SYS_statx,
            fd.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            mask,
            buffer.as_mut_ptr(),
        )
    })?;
    Ok(bytes(&buffer))
}

/// `utimensat` on an open file.
pub fn set_times(fd: BorrowedFd<'_>, times: Option<[i64; 4]>) -> Outcome {
    let pointer = times.as_ref().map_or(std::ptr::null(), |t| t.as_ptr());
    // SAFETY: the times, if any, are ours and outlive the call.
    outcome(unsafe {
        libc::syscall(
            libc::SYS_utimensat,
            fd.as_raw_fd(),
            c"".as_ptr(),
            pointer,
            libc::AT_EMPTY_PATH,
        )
    })
}

/// The type of the file system a descriptor is on.
pub fn file_system(fd: BorrowedFd<'_>) -> Outcome<i64> {
    let mut buffer = [0u64; 15];
    // SAFETY: the buffer is ours and has the size of the kernel's `struct statfs`.
    outcome(unsafe { libc::syscall(libc::SYS_fstatfs, fd.as_raw_fd(), buffer.as_mut_ptr()) })?;
    Ok(buffer[0] as i64)
}

/// Calls that fill a small structure: `(first, second, out)` with the structure at the given position.
#[derive(Clone, Copy, Debug)]
pub enum Fill {
    /// `clock_gettime(clock, out)`
    Clock(u64),
    /// `clock_getres(clock, out)`
    ClockResolution(u64),
    /// `ioctl(fd, TIOCGWINSZ, out)`
    WindowSize(RawFd),
    /// `ioctl(fd, TCGETS, out)`
    Terminal(RawFd),
    /// `ioctl(fd, FIONREAD, out)`
    Readable(RawFd),
    /// `times(out)`
    Times,
    /// `getrusage(RUSAGE_SELF, out)`
    Usage,
}

/// Fills a structure of at most 144 bytes and returns it with the call's result.
pub fn fill(what: Fill) -> Outcome<(i64, [u8; 144])> {
    let mut buffer = [0u64; 18];
    let out = buffer.as_mut_ptr();
    // SAFETY: the buffer is ours, aligned, and at least as large as the largest of these structures (144 bytes).
    let result = outcome(unsafe {
        match what {
            Fill::Clock(clock) => libc::syscall(libc::SYS_clock_gettime, clock, out),
            Fill::ClockResolution(clock) => libc::syscall(libc::SYS_clock_getres, clock, out),
            Fill::WindowSize(fd) => libc::syscall(libc::SYS_ioctl, fd, libc::TIOCGWINSZ, out),
            Fill::Terminal(fd) => libc::syscall(libc::SYS_ioctl, fd, libc::TCGETS, out),
            Fill::Readable(fd) => libc::syscall(libc::SYS_ioctl, fd, libc::FIONREAD, out),
            Fill::Times => libc::syscall(libc::SYS_times, out),
            Fill::Usage => libc::syscall(libc::SYS_getrusage, libc::RUSAGE_SELF, out),
        }
    })?;
    Ok((result, bytes(&buffer)))
}

/// `fcntl` with a lock: `F_OFD_GETLK` and kin. The structure is the kernel's `struct flock`, 32 bytes.
pub fn lock(fd: BorrowedFd<'_>, command: i32, lock: &mut [u64; 4]) -> Outcome {
    // SAFETY: the structure is ours, aligned, and of the kernel's size.
    outcome(unsafe { libc::syscall(libc::SYS_fcntl, fd.as_raw_fd(), command, lock.as_mut_ptr()) })
}

/// `futex` on a word of the domain's memory: wait (with a time-out) or wake. With `private` only threads of this process are meant,
/// else also others that have the same file mapped.
pub fn futex(word: Span, private: bool, wait: Option<(u32, [i64; 2])>, count: u64) -> Outcome {
    let whom = if private { libc::FUTEX_PRIVATE_FLAG } else { 0 };
    let (address, number) = (word.address(), libc::SYS_futex);
    // SAFETY: the word lies in the domain's window; the time is ours.
    outcome(unsafe {
        match wait {
            Some((value, time)) => {
                libc::syscall(number, address, libc::FUTEX_WAIT | whom, value, time.as_ptr())
            }
            None => libc::syscall(number, address, libc::FUTEX_WAKE | whom, count),
        }
    })
}

/// `ppoll` on descriptors of the host's.
pub fn poll(fds: &mut [libc::pollfd], timeout: Duration) -> Outcome {
    let time = [
        i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        i64::from(timeout.subsec_nanos()),
    ];
    // SAFETY: array and time are ours; no mask is given.
    outcome(unsafe {
        libc::syscall(
            libc::SYS_ppoll,
            fds.as_mut_ptr(),
            fds.len(),
            time.as_ptr(),
            0usize,
            0usize,
        )
    })
}

/// `pipe2`, non-blocking.
pub fn pipe() -> Outcome<[OwnedFd; 2]> {
    let mut fds = [0i32; 2];
    // SAFETY: the array is ours and has room for two.
    outcome(unsafe {
        libc::syscall(
            libc::SYS_pipe2,
            fds.as_mut_ptr(),
            libc::O_CLOEXEC | libc::O_NONBLOCK,
        )
    })?;
    // SAFETY: the kernel has just made both for us.
    Ok(unsafe { [OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])] })
}

/// `socket`, non-blocking.
pub fn socket(domain: u64, kind: u64, protocol: u64) -> Outcome<OwnedFd> {
    let kind = kind | (libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK) as u64;
    // SAFETY: integers only.
    let fd = outcome(unsafe { libc::syscall(libc::SYS_socket, domain, kind, protocol) })?;
    // SAFETY: the kernel has just made it for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// `connect` to an address of ours.
pub fn connect(fd: BorrowedFd<'_>, address: &[u8]) -> Outcome {
    // SAFETY: the address is ours and as long as we say.
    outcome(unsafe { libc::syscall(libc::SYS_connect, fd.as_raw_fd(), address.as_ptr(), address.len()) })
}

/// `getsockopt` of an integer.
pub fn socket_option(fd: BorrowedFd<'_>, level: u64, name: u64) -> Outcome<u32> {
    let (mut value, mut len) = (0u32, 4u32);
    // SAFETY: value and length are ours.
    outcome(unsafe {
        libc::syscall(
            libc::SYS_getsockopt,
            fd.as_raw_fd(),
            level,
            name,
            &raw mut value,
            &raw mut len,
        )
    })?;
    Ok(value)
}

/// `setsockopt` of an integer.
pub fn set_socket_option(fd: BorrowedFd<'_>, level: u64, name: u64, value: u32) -> Outcome {
    // SAFETY: the value is ours.
    outcome(unsafe {
        libc::syscall(
            libc::SYS_setsockopt,
            fd.as_raw_fd(),
            level,
            name,
            &raw const value,
            4,
        )
    })
}

/// A descriptor of the host's own that stays open for as long as the process: 0, 1 or 2.
pub fn standard(number: RawFd) -> BorrowedFd<'static> {
    // SAFETY: the standard streams are never closed by well-behaved hosts; a host that does close one gets EBADF, or its
    // next file, for streams that it granted itself.
    unsafe { BorrowedFd::borrow_raw(number) }
}

/// Little-endian words as the bytes that they are in memory.
fn bytes<const WORDS: usize, const BYTES: usize>(words: &[u64; WORDS]) -> [u8; BYTES] {
    let mut out = [0; BYTES];
    for (chunk, word) in out.chunks_exact_mut(8).zip(words) {
        chunk.copy_from_slice(&word.to_ne_bytes());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    /// Runs in a process of its own, where SIGPIPE ends the process as it does in C programs.
    #[test]
    fn child_writes_to_a_closed_pipe() {
        if std::env::var_os("RF_POLICY_CHILD").is_none() {
            return;
        }
        // SAFETY: no other code depends on these signals here.
        unsafe {
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            libc::signal(libc::SIGXFSZ, libc::SIG_DFL);
        }
        let [read, write] = pipe().unwrap();
        drop(read);
        let fd = write.as_fd().as_raw_fd();
        let result = quietly(|| {
            // SAFETY: writes one byte of ours.
            outcome(unsafe { libc::syscall(libc::SYS_write, fd, c"x".as_ptr(), 1) })
        });
        std::process::exit(if result == Err(libc::EPIPE) { 77 } else { 1 });
    }

    #[test]
    fn a_closed_pipe_does_not_end_the_host() {
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "sys::tests::child_writes_to_a_closed_pipe"])
            .env("RF_POLICY_CHILD", "1")
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(77), "{status}");
    }
}
