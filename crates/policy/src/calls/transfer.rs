//! Bytes between descriptors and the domain's memory.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use ringfence_core::policy::Syscall;

use crate::calls::context::Context;
use crate::calls::{events, message};
use crate::disk::BLOCK;
use crate::memory::Memory;
use crate::slices::{SLICE, Slices, total};
use crate::span::Span;
use crate::stage::Stage;
use crate::state::State;
use crate::sys::{self, Outcome, Plain, Transfer};
use crate::table::{File, Kind, Place};

/// The four busiest calls on files, where neither tracing nor a callback wants to know. `None`: take the long way.
#[inline]
pub(crate) fn fast(state: &State, memory: Memory<'_>, call: &Syscall) -> Option<Outcome> {
    let (transfer, at) = match call.number as libc::c_long {
        libc::SYS_read => (Transfer::Read, None),
        libc::SYS_write => (Transfer::Write, None),
        libc::SYS_pread64 => (Transfer::Pread, Some(call.args[3])),
        libc::SYS_pwrite64 => (Transfer::Pwrite, Some(call.args[3])),
        _ => return None,
    };
    let [fd, pointer, len, offset, ..] = call.args;
    if len > SLICE {
        return None;
    }
    let span = memory
        .span(pointer, len, matches!(transfer, Transfer::Read | Transfer::Pread))
        .ok()
        .filter(|span| !span.is_foreign())?;
    state.table.with(fd, |open| match (open, transfer) {
        (Kind::File(file), Transfer::Read | Transfer::Pread) => Some(
            file.fd
                .fd()
                .and_then(|fd| sys::transfer(transfer, fd, span, offset)),
        ),
        (Kind::File(file), _) => match write_once(state, file, &[span], at) {
            Err(Refused::Errno(errno)) => Some(Err(errno)),
            Err(Refused::Full { .. }) => None,
            Ok(n) => Some(Ok(n)),
        },
        (
            Kind::Standard {
                number: 0,
                waits: false,
                ..
            },
            Transfer::Read,
        ) => Some(sys::transfer(transfer, sys::standard(0), span, 0)),
        (
            Kind::Standard {
                number: number @ 1..,
                waits: false,
                disk: false,
            },
            Transfer::Write,
        ) => Some(sys::transfer(transfer, sys::standard(*number), span, 0)),
        _ => None,
    })
}

/// Why nothing was written.
pub(super) enum Refused {
    Errno(i32),
    /// The domain's limit of bytes on disk.
    Full {
        wanted: u64,
    },
}

impl From<i32> for Refused {
    fn from(errno: i32) -> Refused {
        Refused::Errno(errno)
    }
}

/// Writes to a file, as much as the domain may.
fn write_once(state: &State, file: &File, spans: &[Span], at: Option<u64>) -> Result<i64, Refused> {
    let len = total(spans);
    counted(state, file, len, at, |fd, may| {
        if may == len {
            sys::vectored(true, fd, spans, at)
        } else {
            sys::vectored(true, fd, &Slices::new(spans).next(may), at)
        }
    })
}

/// Has `write` put `len` bytes into a file, or as many as the domain may. Counted are the bytes, a block where it does not go on
/// from the last write, and the gap behind the file's end that it jumps over.
pub(super) fn counted(
    state: &State,
    file: &File,
    len: u64,
    at: Option<u64>,
    write: impl FnOnce(BorrowedFd<'_>, u64) -> Outcome,
) -> Result<i64, Refused> {
    let fd = file.fd.fd()?;
    if len == 0 || at.is_some_and(|at| at > i64::MAX as u64) {
        return Ok(write(fd, len)?);
    }
    let mut place = file.place.lock().unwrap_or_else(PoisonError::into_inner);
    let begin = if file.appends.load(Ordering::Relaxed) {
        Place::End
    } else {
        Place::Before(match at {
            Some(at) => at,
            None => sys::plain(Plain::Lseek, [fd.as_raw_fd() as u64, 0, libc::SEEK_CUR as u64, 0])? as u64,
        })
    };
    let extra = match begin {
        _ if begin == *place => 0,
        Place::Before(position) => BLOCK.saturating_add(position.saturating_sub(sys::size(fd)?)),
        _ => BLOCK,
    };
    let Some(may) = state.disk.take(extra, len) else {
        let wanted = extra.saturating_add(len);
        return Err(Refused::Full { wanted });
    };
    match write(fd, may) {
        // Nothing to be copied.
        Ok(0) => {
            state.disk.give_back(extra + may);
            Ok(0)
        }
        Ok(n) => {
            state.disk.give_back(may - n as u64);
            *place = match begin {
                Place::Before(position) => Place::Before(position + n as u64),
                other => other,
            };
            Ok(n)
        }
        Err(errno) => {
            state.disk.give_back(extra + may);
            Err(errno.into())
        }
    }
}

impl Context<'_> {
    /// Writes what is on disk afterwards; the host is asked for more when there may be no more.
    pub(super) fn write_to_disk(&self, mut write: impl FnMut() -> Result<i64, Refused>) -> Outcome {
        loop {
            match write() {
                Ok(n) => return Ok(n),
                Err(Refused::Errno(errno)) => return Err(errno),
                Err(Refused::Full { wanted }) => self.more_disk(wanted)?,
            }
        }
    }

    /// Moves all of `spans` in pieces, until one of them is not moved as a whole, or the call has to end.
    fn sliced(&self, spans: &[Span], mut one: impl FnMut(&[Span], u64) -> Outcome) -> Outcome {
        let mut left = Slices::new(spans);
        let mut done = 0;
        loop {
            let next = left.next(SLICE);
            let wanted = total(&next);
            match one(&next, done as u64) {
                Ok(n) => {
                    done += n;
                    left.done(n as u64);
                    if (n as u64) < wanted || left.is_empty() || self.going_on().is_err() {
                        return Ok(done);
                    }
                }
                Err(errno) if done == 0 => return Err(errno),
                Err(_) => return Ok(done),
            }
        }
    }

    /// Moves `spans` by `one`, which is told how many bytes were moved before; by way of copies, if some are foreign. Of a stream (`stream`)
    /// no more is read than is there at once.
    pub(super) fn staged(
        &self,
        spans: &[Span],
        fills: bool,
        stream: bool,
        mut one: impl FnMut(&[Span], u64) -> Outcome,
    ) -> Outcome {
        if !spans.iter().any(|span| span.is_foreign()) {
            return one(spans, 0);
        }
        let mut step = |part: &[Span], done: u64| {
            let stage = Stage::new(self.memory, part.to_vec(), fills)?;
            let n = one(stage.spans(), done)?;
            stage.moved(n)?;
            Ok(n)
        };
        match fills && stream {
            true => step(&Slices::new(spans).next(SLICE), 0),
            false => self.sliced(spans, step),
        }
    }
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
    if at.is_some() && open.is_stream() {
        return Err(libc::ESPIPE);
    }
    if !(if write { open.writes() } else { open.reads() }) {
        return Err(libc::EBADF);
    }
    let spans = if vector {
        cx.memory.spans(pointer, len, !write)?
    } else {
        vec![cx.memory.span(pointer, len, !write)?]
    };
    let Some(fd) = open.host()? else {
        return cx.sliced(&spans, |part, _| within(cx, &open, write, part));
    };
    let one = |spans: &[Span], before: u64| match &*open {
        Kind::File(file) if write => cx.sliced(spans, |part, done| {
            let at = at.map(|at| at.wrapping_add(before + done));
            cx.write_to_disk(|| write_once(cx.state, file, part, at))
        }),
        Kind::Standard { disk: true, .. } if write => cx.sliced(spans, |part, _| {
            cx.write_to_disk(|| write_behind(cx.state, fd, part))
        }),
        Kind::Event(..) | Kind::Timer(..) => events::count(cx, &open, fd, write, spans),
        _ if open.waits() && at.is_none() => cx.stream(write, fd, spans),
        _ => cx.sliced(spans, |part, done| {
            sys::vectored(write, fd, part, at.map(|at| at.wrapping_add(before + done)))
        }),
    };
    let go = || match &*open {
        Kind::Set(_) => Err(libc::EINVAL),
        Kind::Datagram(..) if !write => message::receive(cx, &open, &spans, 0).map(|r| r.len),
        // One write is one datagram.
        Kind::Datagram(..) => message::send(cx, &open, &spans, None, 0),
        _ => cx.staged(&spans, !write, !matches!(*open, Kind::File(_)), one),
    };
    if write && open.breaks() {
        sys::quietly(go)
    } else {
        go()
    }
}

/// Writes to a file of the host's that is a stream for the domain.
fn write_behind(state: &State, fd: BorrowedFd<'_>, spans: &[Span]) -> Result<i64, Refused> {
    let len = total(spans);
    let Some(may) = state.disk.take(0, len) else {
        return Err(Refused::Full { wanted: len });
    };
    let result = sys::vectored(true, fd, &Slices::new(spans).next(may), None);
    let unused = may - result.as_ref().map_or(0, |n| *n as u64);
    state.disk.give_back(unused);
    Ok(result?)
}

/// Streams that no descriptor of the host's stands behind. All of `spans` together are a slice at most.
fn within(cx: Context<'_>, open: &Kind, write: bool, spans: &[Span]) -> Outcome {
    let mut done = 0;
    for whole in spans {
        let span = &cx.memory.reached(*whole, !write);
        match (open, write) {
            _ if span.len() == 0 && whole.len() > 0 => {
                return if done > 0 {
                    Ok(done as i64)
                } else {
                    Err(libc::EFAULT)
                };
            }
            (Kind::Null | Kind::Device(..), true) => done += span.len(),
            (Kind::Device(device, _), false) => done += device.read(cx.memory, *span)?,
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
                let bytes = cx.memory.get_bytes(span.address(), room as usize)?;
                held.try_reserve(bytes.len()).map_err(|_| libc::ENOSPC)?;
                held.extend(bytes);
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
