//! Calls on descriptors.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use crate::calls::context::Context;
use crate::slices::SLICE;
use crate::sys::{self, Fill, Outcome, Plain, Transfer};
use crate::table::{File, Held, Kind};

pub(super) fn seek(cx: Context<'_>) -> Outcome {
    let open = cx.open(0)?;
    match &*open {
        Kind::File(file) => {
            // Not between a write's look at the position and the write.
            let _place = file.place.lock().unwrap_or_else(PoisonError::into_inner);
            sys::plain(
                Plain::Lseek,
                [file.fd.fd()?.as_raw_fd() as u64, cx.args[1], cx.args[2], 0],
            )
        }
        Kind::Directory { fd, .. } => sys::plain(
            Plain::Lseek,
            [fd.fd()?.as_raw_fd() as u64, cx.args[1], cx.args[2], 0],
        ),
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
    match (&*open, open.host()?) {
        (Kind::File(_) | Kind::Directory { .. }, Some(fd)) => {
            sys::plain(call, [fd.as_raw_fd() as u64, 0, 0, 0])
        }
        _ => Err(libc::EINVAL),
    }
}

/// The host's descriptor of a file that may be changed.
pub(super) fn changeable(open: &Kind) -> Outcome<BorrowedFd<'_>> {
    match open {
        Kind::File(File { writable: false, .. }) | Kind::Directory { writable: false, .. } => {
            Err(libc::EROFS)
        }
        Kind::File(file) => file.fd.fd(),
        Kind::Directory { fd, .. } => fd.fd(),
        _ => Err(libc::EINVAL),
    }
}

pub(super) fn truncate(cx: Context<'_>) -> Outcome {
    resize(cx, changeable(&*cx.open(0)?)?, cx.args[1])
}

/// `ftruncate`. What a file grows by counts as if it had been written.
pub(super) fn resize(cx: Context<'_>, fd: BorrowedFd<'_>, size: u64) -> Outcome {
    if size > i64::MAX as u64 {
        return Err(libc::EINVAL);
    }
    cx.on_disk(size.saturating_sub(sys::size(fd)?), || {
        sys::plain(Plain::Ftruncate, [fd.as_raw_fd() as u64, size, 0, 0])
    })
}

/// Modes of `fallocate` that take nothing on disk, and those that are one step whatever their length.
const FREES: i32 = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_COLLAPSE_RANGE;
const MOVES: i32 = libc::FALLOC_FL_COLLAPSE_RANGE | libc::FALLOC_FL_INSERT_RANGE;

/// Most bytes that are allocated at once: where that is memory, pages are cleared.
const AT_ONCE: u64 = 4 * SLICE;

pub(super) fn allocate(cx: Context<'_>) -> Outcome {
    let open = cx.open(0)?;
    if open.is_stream() {
        return Err(libc::ESPIPE);
    }
    let fd = changeable(&open)?;
    let [_, mode, offset, len, ..] = cx.args;
    let bits = mode as i32;
    let end = offset.checked_add(len).filter(|end| *end <= i64::MAX as u64);
    if len == 0 || end.is_none() {
        return Err(libc::EINVAL);
    }
    let size = sys::size(fd)?;
    let gap = if bits & libc::FALLOC_FL_KEEP_SIZE == 0 {
        offset.saturating_sub(size)
    } else {
        0
    };
    let bytes = if bits & FREES == 0 { len + gap } else { 0 };
    let piece = if bits & MOVES == 0 { AT_ONCE } else { len };
    cx.on_disk(bytes, || {
        let mut done = 0;
        while done < len {
            let now = piece.min(len - done);
            sys::plain(
                Plain::Fallocate,
                [fd.as_raw_fd() as u64, mode, offset + done, now],
            )?;
            done += now;
            cx.going_on()?;
        }
        Ok(0)
    })
}

pub(super) fn change_mode(cx: Context<'_>) -> Outcome {
    // No set-user-ID and its like: the host's users run what lies there.
    sys::plain(
        Plain::Fchmod,
        [
            changeable(&*cx.open(0)?)?.as_raw_fd() as u64,
            cx.args[1] & 0o777,
            0,
            0,
        ],
    )
}

pub(super) fn advise(cx: Context<'_>) -> Outcome {
    cx.open(0).map(|_| 0)
}

pub(super) fn lock_whole(cx: Context<'_>) -> Outcome {
    let open = cx.open(0)?;
    let Kind::File(File { fd, writable, .. }) = &*open else {
        return Err(libc::EINVAL);
    };
    // The kernel lets a reader keep all others out. Whoever may only read a host's file must not do that to the host; with
    // `fcntl` the kernel says the same.
    if !writable && cx.args[1] & libc::LOCK_EX as u64 != 0 {
        return Err(libc::EBADF);
    }
    let once = |operation: u64| sys::plain(Plain::Flock, [fd.fd()?.as_raw_fd() as u64, operation, 0, 0]);
    if cx.args[1] & libc::LOCK_NB as u64 != 0 {
        return once(cx.args[1]);
    }
    cx.until(|| once(cx.args[1] | libc::LOCK_NB as u64))
}

pub(super) fn stat(cx: Context<'_>) -> Outcome {
    let open = cx.open(0)?;
    cx.put_status(cx.args[1], stat_of(&open)?)
}

/// How large and how full the file system of an open file is.
pub(super) fn file_system(cx: Context<'_>) -> Outcome {
    let open = cx.open(0)?;
    let bytes = match (&*open, open.host()?) {
        (Kind::File(_) | Kind::Directory { .. }, Some(fd)) => sys::file_system_status(fd)?,
        _ => return Err(libc::ENOSYS),
    };
    cx.memory.put(cx.args[1], &bytes)?;
    Ok(0)
}

/// `struct stat` of an open file. Of a stream: that of a pipe, or of a terminal, which programs want to know of; what else the
/// host's descriptor is, and its times and sizes, are not part of the grant.
pub(super) fn stat_of(open: &Kind) -> Outcome<[u8; 144]> {
    let mut bytes = [0; 144];
    let (mut mode, mut device) = (libc::S_IFIFO | 0o600, 0);
    match (open, open.host()?) {
        (Kind::Device(device, _), _) => return Ok(device.stat()),
        (Kind::Standard { .. }, Some(fd)) => {
            let host = sys::stat(fd)?;
            let hosts = u32::from_ne_bytes([host[24], host[25], host[26], host[27]]);
            if hosts & libc::S_IFMT == libc::S_IFCHR {
                mode = libc::S_IFCHR | 0o600;
                device = u64::from_ne_bytes(host[40..48].try_into().unwrap_or_default());
            }
        }
        (_, Some(fd)) => return sys::stat(fd),
        (_, None) => {}
    }
    bytes[16..24].copy_from_slice(&1u64.to_ne_bytes());
    bytes[24..28].copy_from_slice(&mode.to_ne_bytes());
    bytes[40..48].copy_from_slice(&device.to_ne_bytes());
    bytes[56..64].copy_from_slice(&4096u64.to_ne_bytes());
    Ok(bytes)
}

/// Most bytes of one listing, as in C libraries: a directory may have any number of entries.
const LISTING: u64 = 32 << 10;

pub(super) fn list(cx: Context<'_>) -> Outcome {
    match &*cx.open(0)? {
        Kind::Directory { fd, .. } => {
            let span = cx.memory.span(cx.args[1], cx.args[2], true)?;
            let fd = fd.fd()?;
            cx.staged(&[span.first(LISTING)], true, true, |part, _| {
                sys::transfer(Transfer::Getdents, fd, part[0], 0)
            })
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
        libc::F_GETFL => match (&*open, open.host()?) {
            (kind, Some(fd)) if !matches!(kind, Kind::Standard { .. }) => {
                let flags = sys::plain(Plain::Fcntl, [fd.as_raw_fd() as u64, libc::F_GETFL as u64, 0, 0])?;
                // What the domain asked for; how the host's descriptor waits is another matter.
                let nonblocking = i64::from(libc::O_NONBLOCK);
                Ok(match kind.nonblocking() {
                    Some(set) if set.load(Ordering::Relaxed) => flags | nonblocking,
                    _ => flags & !nonblocking,
                })
            }
            _ => Ok(i64::from(match (open.reads(), open.writes()) {
                (true, true) => libc::O_RDWR,
                (true, false) => libc::O_RDONLY,
                _ => libc::O_WRONLY,
            })),
        },
        libc::F_SETFL => match (&*open, open.host()?) {
            // The host shares these with others.
            (Kind::Standard { .. }, _) | (_, None) => Ok(0),
            (kind, Some(fd)) => {
                let mut flags = value & libc::O_APPEND as u64;
                let _place = match kind {
                    Kind::File(file) => {
                        let place = file.place.lock().unwrap_or_else(PoisonError::into_inner);
                        file.appends.store(flags != 0, Ordering::Relaxed);
                        Some(place)
                    }
                    _ => None,
                };
                if let Some(nonblocking) = kind.nonblocking() {
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
    let Kind::File(File { fd, .. }) = open else {
        return Err(libc::EINVAL);
    };
    let mut lock = cx.memory.words::<4>(cx.args[2])?;
    // `l_pid` must be 0 for such locks.
    lock[3] = 0;
    let command = match cx.args[1] as i32 {
        libc::F_GETLK => libc::F_OFD_GETLK,
        _ => libc::F_OFD_SETLK,
    };
    let result = if cx.args[1] as i32 == libc::F_SETLKW {
        cx.until(|| sys::lock(fd.fd()?, command, &mut lock))?
    } else {
        sys::lock(fd.fd()?, command, &mut lock)?
    };
    if command == libc::F_OFD_GETLK {
        let bytes: Vec<u8> = lock.iter().flat_map(|w| w.to_ne_bytes()).collect();
        cx.memory.put(cx.args[2], &bytes)?;
    }
    Ok(result)
}

pub(super) fn device_control(cx: Context<'_>) -> Outcome {
    let open = cx.open(0)?;
    match cx.args[1] {
        libc::FIOCLEX => return cx.state.table.flag(cx.args[0], Some(true)),
        libc::FIONCLEX => return cx.state.table.flag(cx.args[0], Some(false)),
        libc::FIONBIO => {
            let set = u32::from_ne_bytes(cx.memory.get(cx.args[2])?) != 0;
            if let Some(nonblocking) = open.nonblocking() {
                nonblocking.store(set, Ordering::Relaxed);
            }
            return Ok(0);
        }
        _ => {}
    }
    let Some(fd) = open.host()? else {
        return Err(libc::ENOTTY);
    };
    let fd = fd.as_raw_fd();
    let (what, len) = match (cx.args[1], &*open) {
        (libc::TIOCGWINSZ, Kind::Standard { .. }) => (Fill::WindowSize(fd), 8),
        (libc::TCGETS, Kind::Standard { .. }) => (Fill::Terminal(fd), 36),
        // Of a terminal for output it would tell what lies in the keyboard's queue.
        (libc::FIONREAD, open) if open.reads() => (Fill::Readable(fd), 4),
        // Terminals are not to be reconfigured.
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
    let nonblocking = flags & libc::O_NONBLOCK as u64 != 0;
    let [read, write] = sys::pipe()?;
    let ends = [Held::new(read)?, Held::new(write)?].map(|fd| Kind::Pipe(fd, nonblocking.into()));
    both(cx, ends, cx.args[0], flags & libc::O_CLOEXEC as u64 != 0)
}

/// Makes two descriptors known to the domain, by two numbers at `pointer`, or none.
pub(super) fn both(cx: Context<'_>, ends: [Kind; 2], pointer: u64, close_on_exec: bool) -> Outcome {
    let table = &cx.state.table;
    let [first, second] = ends.map(Arc::new);
    let first = table.add(first, 0, close_on_exec)?;
    let result = table.add(second, 0, close_on_exec).and_then(|second| {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&(first as i32).to_ne_bytes());
        bytes[4..].copy_from_slice(&(second as i32).to_ne_bytes());
        cx.memory.put(pointer, &bytes).inspect_err(|_| {
            let _ = table.close(second as u64);
        })
    });
    if result.is_err() {
        table.close(first as u64)?;
    }
    result.map(|()| 0)
}
