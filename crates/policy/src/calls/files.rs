//! Calls on descriptors.

use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::calls::context::Context;
use crate::sys::{self, Fill, Outcome, Plain, Transfer};
use crate::table::Kind;

pub(super) fn seek(cx: Context<'_>) -> Outcome {
    let open = cx.open(0)?;
    match &*open {
        Kind::File { fd, .. } | Kind::Directory { fd, .. } => {
            sys::plain(Plain::Lseek, [fd.as_raw_fd() as u64, cx.args[1], cx.args[2], 0])
        }
        Kind::Device(..) => Ok(0),
        // The position of the host's own streams is the host's.
        _ => Err(libc::ESPIPE),
    }
}

pub(super) fn sync(cx: Context<'_>, number: libc::c_long) -> Outcome {
    let open = cx.open(0)?;
    let call = if number == libc::SYS_fsync {
        Plain::Fsync
    } else {
        Plain::Fdatasync
    };
    match &*open {
        Kind::File { fd, .. } | Kind::Directory { fd, .. } => {
            sys::plain(call, [fd.as_raw_fd() as u64, 0, 0, 0])
        }
        _ => Err(libc::EINVAL),
    }
}

/// The host's descriptor of a file that may be changed.
fn changeable(open: &Kind) -> Outcome<u64> {
    match open {
        Kind::File { writable: false, .. } | Kind::Directory { writable: false, .. } => Err(libc::EROFS),
        Kind::File { fd, .. } | Kind::Directory { fd, .. } => Ok(fd.as_raw_fd() as u64),
        _ => Err(libc::EINVAL),
    }
}

pub(super) fn truncate(cx: Context<'_>) -> Outcome {
    sys::plain(Plain::Ftruncate, [changeable(&*cx.open(0)?)?, cx.args[1], 0, 0])
}

pub(super) fn allocate(cx: Context<'_>) -> Outcome {
    sys::plain(
        Plain::Fallocate,
        [changeable(&*cx.open(0)?)?, cx.args[1], cx.args[2], cx.args[3]],
    )
}

pub(super) fn change_mode(cx: Context<'_>) -> Outcome {
    // No set-user-ID and its like: the host's users run what lies there.
    sys::plain(
        Plain::Fchmod,
        [changeable(&*cx.open(0)?)?, cx.args[1] & 0o777, 0, 0],
    )
}

pub(super) fn advise(cx: Context<'_>) -> Outcome {
    cx.open(0).map(|_| 0)
}

pub(super) fn lock_whole(cx: Context<'_>) -> Outcome {
    let open = cx.open(0)?;
    let Kind::File { fd, writable } = &*open else {
        return Err(libc::EINVAL);
    };
    // The kernel lets a reader keep all others out. Whoever may only read a host's file must not do that to the host; with
    // `fcntl` the kernel says the same.
    if !writable && cx.args[1] & libc::LOCK_EX as u64 != 0 {
        return Err(libc::EBADF);
    }
    let once = |operation: u64| sys::plain(Plain::Flock, [fd.as_raw_fd() as u64, operation, 0, 0]);
    if cx.args[1] & libc::LOCK_NB as u64 != 0 {
        return once(cx.args[1]);
    }
    cx.until(|| once(cx.args[1] | libc::LOCK_NB as u64))
}

pub(super) fn stat(cx: Context<'_>) -> Outcome {
    let open = cx.open(0)?;
    let bytes = stat_of(&open)?;
    cx.memory.put(cx.args[1], &bytes)?;
    Ok(0)
}

/// How large and how full the file system of an open file is.
pub(super) fn file_system(cx: Context<'_>) -> Outcome {
    let open = cx.open(0)?;
    let bytes = match &*open {
        Kind::File { fd, .. } | Kind::Directory { fd, .. } => sys::file_system_status(fd.as_fd())?,
        _ => return Err(libc::ENOSYS),
    };
    cx.memory.put(cx.args[1], &bytes)?;
    Ok(0)
}

/// `struct stat` of an open file; of one without a descriptor, that of a pipe.
pub(super) fn stat_of(open: &Kind) -> Outcome<[u8; 144]> {
    match (open, open.host()) {
        (Kind::Device(device, _), _) => Ok(device.stat()),
        (_, Some(fd)) => sys::stat(fd),
        (_, None) => {
            let mut bytes = [0; 144];
            bytes[16..24].copy_from_slice(&1u64.to_ne_bytes());
            bytes[24..28].copy_from_slice(&(libc::S_IFIFO | 0o600).to_ne_bytes());
            bytes[56..64].copy_from_slice(&4096u64.to_ne_bytes());
            Ok(bytes)
        }
    }
}

pub(super) fn list(cx: Context<'_>) -> Outcome {
    match &*cx.open(0)? {
        Kind::Directory { fd, .. } => {
            let span = cx.memory.span(cx.args[1], cx.args[2])?;
            sys::transfer(Transfer::Getdents, fd.as_fd(), span, 0)
        }
        _ => Err(libc::ENOTDIR),
    }
}

pub(super) fn control(cx: Context<'_>) -> Outcome {
    let open = cx.open(0)?;
    let [number, command, value, ..] = cx.args;
    let table = &cx.state.table;
    match command as i32 {
        libc::F_DUPFD => table.add(open, value, false),
        libc::F_DUPFD_CLOEXEC => table.add(open, value, true),
        libc::F_GETFD => table.flag(number, None),
        libc::F_SETFD => table.flag(number, Some(value & 1 != 0)),
        libc::F_GETFL => match open.host() {
            Some(fd) => {
                let flags = sys::plain(Plain::Fcntl, [fd.as_raw_fd() as u64, libc::F_GETFL as u64, 0, 0])?;
                // What the domain asked for; how the host's descriptor waits is another matter.
                let nonblocking = i64::from(libc::O_NONBLOCK);
                Ok(match &*open {
                    Kind::Standard { .. } => flags,
                    Kind::Pipe(_, set) | Kind::Socket(_, set) if set.load(Ordering::Relaxed) => {
                        flags | nonblocking
                    }
                    _ => flags & !nonblocking,
                })
            }
            None => Ok(i64::from(match *open {
                Kind::Device(_, access) => access,
                Kind::Input(..) => libc::O_RDONLY,
                _ => libc::O_WRONLY,
            })),
        },
        libc::F_SETFL => match (&*open, open.host()) {
            // The host shares these with others.
            (Kind::Standard { .. }, _) | (_, None) => Ok(0),
            (kind, Some(fd)) => {
                let mut flags = value & libc::O_APPEND as u64;
                if let Kind::Pipe(_, nonblocking) | Kind::Socket(_, nonblocking) = kind {
                    nonblocking.store(value & libc::O_NONBLOCK as u64 != 0, Ordering::Relaxed);
                    flags |= libc::O_NONBLOCK as u64;
                }
                sys::plain(
                    Plain::Fcntl,
                    [fd.as_raw_fd() as u64, libc::F_SETFL as u64, flags, 0],
                )
            }
        },
        libc::F_GETLK | libc::F_SETLK | libc::F_SETLKW => lock(cx, &open),
        _ => Err(libc::EINVAL),
    }
}

/// Locks belong to the open file here, not to the process, which is the host's.
fn lock(cx: Context<'_>, open: &Kind) -> Outcome {
    let Kind::File { fd, .. } = open else {
        return Err(libc::EINVAL);
    };
    let mut lock = cx.memory.words::<4>(cx.args[2])?;
    // `l_pid` must be 0 for such locks.
    lock[3] = 0;
    let command = match cx.args[1] as i32 {
        libc::F_GETLK => libc::F_OFD_GETLK,
        _ => libc::F_OFD_SETLK,
    };
    let fd = fd.as_fd();
    let result = if cx.args[1] as i32 == libc::F_SETLKW {
        cx.until(|| sys::lock(fd, command, &mut lock))?
    } else {
        sys::lock(fd, command, &mut lock)?
    };
    if command == libc::F_OFD_GETLK {
        let bytes: Vec<u8> = lock.iter().flat_map(|w| w.to_ne_bytes()).collect();
        cx.memory.put(cx.args[2], &bytes)?;
    }
    Ok(result)
}

pub(super) fn device_control(cx: Context<'_>) -> Outcome {
    let open = cx.open(0)?;
    let Some(fd) = open.host() else {
        return Err(libc::ENOTTY);
    };
    let fd = fd.as_raw_fd();
    let (what, len) = match (cx.args[1], &*open) {
        (libc::TIOCGWINSZ, Kind::Standard { .. }) => (Fill::WindowSize(fd), 8),
        (libc::TCGETS, Kind::Standard { .. }) => (Fill::Terminal(fd), 36),
        (libc::FIONREAD, _) => (Fill::Readable(fd), 4),
        // FIONBIO, FIOCLEX, FIONCLEX and the rest have fcntl; terminals are not to be reconfigured.
        _ => return Err(libc::ENOTTY),
    };
    let (_, bytes) = sys::fill(what)?;
    cx.memory.put(cx.args[2], &bytes[..len])?;
    Ok(0)
}

pub(super) fn duplicate(cx: Context<'_>, number: libc::c_long) -> Outcome {
    let open = cx.open(0)?;
    let [old, new, flags, ..] = cx.args;
    match number {
        libc::SYS_dup => cx.state.table.add(open, 0, false),
        libc::SYS_dup3 if old == new => Err(libc::EINVAL),
        libc::SYS_dup2 if old == new => Ok(new as i64),
        libc::SYS_dup3 => cx.state.table.put(open, new, flags & libc::O_CLOEXEC as u64 != 0),
        _ => cx.state.table.put(open, new, false),
    }
}

pub(super) fn pipe(cx: Context<'_>, number: libc::c_long) -> Outcome {
    let flags = if number == libc::SYS_pipe2 { cx.args[1] } else { 0 };
    let table = &cx.state.table;
    let [read, write] = sys::pipe()?;
    let nonblocking = flags & libc::O_NONBLOCK as u64 != 0;
    let close_on_exec = flags & libc::O_CLOEXEC as u64 != 0;
    let first = table.add(Arc::new(Kind::Pipe(read, nonblocking.into())), 0, close_on_exec)?;
    let result = table
        .add(Arc::new(Kind::Pipe(write, nonblocking.into())), 0, close_on_exec)
        .and_then(|second| {
            let mut bytes = [0; 8];
            bytes[..4].copy_from_slice(&(first as i32).to_ne_bytes());
            bytes[4..].copy_from_slice(&(second as i32).to_ne_bytes());
            cx.memory.put(cx.args[0], &bytes).inspect_err(|_| {
                let _ = table.close(second as u64);
            })
        });
    if result.is_err() {
        table.close(first as u64)?;
    }
    result.map(|()| 0)
}
