//! Bytes between descriptors and the domain's memory.

use std::os::fd::AsFd;
use std::sync::PoisonError;

use ringfence_runtime::policy::Syscall;

use crate::calls::context::Context;
use crate::memory::Memory;
use crate::span::Span;
use crate::sys::{self, Outcome, Transfer};
use crate::table::{Kind, Table};

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
        Kind::File { fd, .. } => Some(sys::transfer(transfer, fd.as_fd(), span, offset)),
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
