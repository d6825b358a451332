//! Calls on descriptors.

use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use ringfence_runtime::policy::{Answer, Syscall};

use super::Context;
use crate::device::Device;
use crate::memory::{Memory, Span};
use crate::monitor::Reply;
use crate::sys::{self, Fill, Outcome, Plain, Transfer};
use crate::table::{Kind, Table};

impl Context<'_> {
    fn open(&self, argument: usize) -> Outcome<Arc<Kind>> {
        self.monitor.table.get(self.args[argument])
    }
}

/// The four busiest calls on files, where neither tracing nor a callback wants to know. `None`: take the long way.
#[inline]
pub(crate) fn fast(table: &Table, memory: Memory<'_>, call: &Syscall) -> Option<Outcome> {
    let transfer = match call.number as libc::c_long {
        libc::SYS_read => Transfer::Read,
        libc::SYS_write => Transfer::Write,
        libc::SYS_pread64 => Transfer::Pread,
        libc::SYS_pwrite64 => Transfer::Pwrite,
        _ => return None,
    };
    let [fd, pointer, len, offset, ..] = call.args;
    let span = memory.span(pointer, len).ok()?;
    table.with(fd, |open| match open {
        Kind::File { fd, .. } => Some(sys::transfer(
            transfer,
            std::os::fd::AsFd::as_fd(fd),
            span,
            offset,
        )),
        Kind::Standard { number, waits: false } => {
            Some(sys::transfer(transfer, sys::standard(*number), span, offset))
        }
        _ => None,
    })
}

/// `read`, `write` and their kin.
pub(super) fn transfer(cx: Context<'_>, number: libc::c_long) -> Outcome {
    let open = cx.open(0)?;
    let [_, pointer, len, offset, ..] = cx.args;
    let (vector, write, at) = match number {
        libc::SYS_read => (false, false, None),
        libc::SYS_write => (false, true, None),
        libc::SYS_pread64 => (false, false, Some(offset)),
        libc::SYS_pwrite64 => (false, true, Some(offset)),
        libc::SYS_readv => (true, false, None),
        libc::SYS_writev => (true, true, None),
        libc::SYS_preadv => (true, false, Some(offset)),
        _ => (true, true, Some(offset)),
    };
    let Some(fd) = open.host() else {
        if at.is_some() && !matches!(*open, Kind::Device(..)) {
            return Err(libc::ESPIPE);
        }
        let spans = if vector {
            cx.memory.spans(pointer, len)?
        } else {
            vec![cx.memory.span(pointer, len)?]
        };
        return within(cx, &open, write, &spans);
    };
    let mut spans = if vector {
        cx.memory.spans(pointer, len)?
    } else {
        vec![cx.memory.span(pointer, len)?]
    };
    let mut go = || match open.waits() && at.is_none() {
        true => cx.stream(write, fd, &mut spans),
        false => sys::vectored(write, fd, &spans, at),
    };
    if write && open.breaks() {
        sys::quietly(go)
    } else {
        go()
    }
}

/// Streams that no descriptor of the host's stands behind.
fn within(cx: Context<'_>, open: &Kind, write: bool, spans: &[Span]) -> Outcome {
    let mut done = 0;
    for span in spans {
        match (open, write) {
            (Kind::Device(_, libc::O_RDONLY), true) | (Kind::Device(_, libc::O_WRONLY), false) => {
                return Err(libc::EBADF);
            }
            (Kind::Null | Kind::Device(..), true) => done += span.len(),
            (Kind::Device(device, _), false) => done += device.read(cx.memory, *span, done)?,
            (Kind::Null, false) => {}
            (Kind::Capture(buffer, limit), true) => {
                let mut held = buffer.0.lock().unwrap_or_else(PoisonError::into_inner);
                let room = (limit.saturating_sub(held.len()) as u64).min(span.len());
                if room == 0 && span.len() > 0 {
                    return if done > 0 {
                        Ok(done as i64)
                    } else {
                        Err(libc::ENOSPC)
                    };
                }
                held.extend(cx.memory.get_bytes(span.address(), room as usize)?);
                done += room;
            }
            (Kind::Input(bytes, position), false) => {
                let mut at = position.lock().unwrap_or_else(PoisonError::into_inner);
                let n = (bytes.len() - *at).min(span.len() as usize);
                cx.memory.put(span.address(), &bytes[*at..*at + n])?;
                *at += n;
                done += n as u64;
            }
            _ => return Err(libc::EBADF),
        }
    }
    Ok(done as i64)
}

/// Private maps of files: anonymous memory with a copy of the content. What anonymous memory is, the runtime knows.
pub(super) fn map(cx: Context<'_>, call: &Syscall) -> Outcome<Reply> {
    let [address, len, protection, flags, fd, offset] = cx.args;
    if protection & libc::PROT_EXEC as u64 != 0 {
        return Err(libc::EACCES);
    }
    if flags & libc::MAP_ANONYMOUS as u64 != 0 {
        // Shared with the processes that it forks, of which there are none.
        let shared = flags & libc::MAP_TYPE as u64 == libc::MAP_SHARED as u64;
        let kind = if shared {
            (libc::MAP_SHARED ^ libc::MAP_PRIVATE) as u64
        } else {
            0
        };
        let mut call = *call;
        call.args[3] ^= kind;
        return super::memory_call(cx, &call);
    }
    let open = cx.monitor.table.get(fd)?;
    let anonymous = flags | libc::MAP_ANONYMOUS as u64;
    let fd = match &*open {
        Kind::File { fd, .. } => fd,
        // Zeros of its own, which is what anonymous memory is.
        Kind::Device(Device::Zero, libc::O_RDONLY | libc::O_RDWR)
            if flags & libc::MAP_PRIVATE as u64 != 0 =>
        {
            let args = [address, len, protection, anonymous, u64::MAX, 0];
            let number = call.number;
            return super::memory_call(cx, &Syscall { number, args });
        }
        _ => return Err(libc::ENODEV),
    };
    if flags & libc::MAP_PRIVATE as u64 == 0 {
        // A change of the file would have to show, and the other way round.
        return Err(libc::ENODEV);
    }
    if offset % 4096 != 0 {
        return Err(libc::EINVAL);
    }
    let both = (libc::PROT_READ | libc::PROT_WRITE) as u64;
    let memory = |number: libc::c_long, args| {
        cx.domain.memory_call(&Syscall {
            number: number as u64,
            args,
        })
    };
    let flags = anonymous & !(libc::MAP_POPULATE as u64);
    let start = match memory(libc::SYS_mmap, [address, len, both, flags, u64::MAX, 0]) {
        Some(Answer::Return(value)) if value >= 0 => value as u64,
        Some(Answer::Return(errno)) => return Ok(Reply::Value(errno)),
        Some(answer) => return Ok(Reply::End(answer)),
        None => return Err(libc::ENODEV),
    };
    let mut done = 0;
    while done < len {
        let span = cx.memory.span(start + done, len - done)?;
        match sys::transfer(Transfer::Pread, std::os::fd::AsFd::as_fd(fd), span, offset + done) {
            Ok(0) => break,
            Ok(n) => done += n as u64,
            Err(libc::EINTR) => {}
            Err(errno) => {
                let _ = memory(libc::SYS_munmap, [start, len, 0, 0, 0, 0]);
                return Err(errno);
            }
        }
    }
    if protection != both {
        let _ = memory(libc::SYS_mprotect, [start, len, protection, 0, 0, 0]);
    }
    Ok(Reply::Value(start as i64))
}

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
        Kind::File { fd, .. } | Kind::Directory { fd, .. } => {
            sys::file_system_status(std::os::fd::AsFd::as_fd(fd))?
        }
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
            sys::transfer(Transfer::Getdents, std::os::fd::AsFd::as_fd(fd), span, 0)
        }
        _ => Err(libc::ENOTDIR),
    }
}

pub(super) fn control(cx: Context<'_>) -> Outcome {
    let open = cx.open(0)?;
    let [number, command, value, ..] = cx.args;
    let table = &cx.monitor.table;
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
    let fd = std::os::fd::AsFd::as_fd(fd);
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
        libc::SYS_dup => cx.monitor.table.add(open, 0, false),
        libc::SYS_dup3 if old == new => Err(libc::EINVAL),
        libc::SYS_dup2 if old == new => Ok(new as i64),
        libc::SYS_dup3 => cx
            .monitor
            .table
            .put(open, new, flags & libc::O_CLOEXEC as u64 != 0),
        _ => cx.monitor.table.put(open, new, false),
    }
}

pub(super) fn pipe(cx: Context<'_>, number: libc::c_long) -> Outcome {
    let flags = if number == libc::SYS_pipe2 { cx.args[1] } else { 0 };
    let table = &cx.monitor.table;
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
