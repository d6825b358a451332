//! What sockets send and receive: `sendto`, `sendmsg`, `recvfrom`, `recvmsg`, and reads of datagrams.
//!
//! A connection reaches who was granted when it was made. A datagram goes to an address that is granted, and one from elsewhere is
//! dropped before the domain sees any of it.

use crate::calls::context::Context;
use crate::calls::network::{address, granted, granted_name, put_name, socket_of};
use crate::slices::{SLICE, Slices, total};
use crate::span::Span;
use crate::stage::Stage;
use crate::sys::Outcome;
use crate::sys::message::{self, Received};
use crate::table::Kind;

/// Most bytes of a datagram.
const DATAGRAM: u64 = 64 << 10;

/// `sendto` and `recvfrom`.
pub(super) fn transfer(cx: Context<'_>, number: libc::c_long) -> Outcome {
    let [_, pointer, len, flags, name, name_len] = cx.args;
    let open = cx.open(0)?;
    socket_of(&open)?;
    let sends = number == libc::SYS_sendto;
    let span = cx.memory.span(pointer, len, !sends)?;
    if sends {
        let to = match name as u32 {
            0 => None,
            _ => Some(granted_name(cx, name, name_len)?),
        };
        return send(cx, &open, &[span], to.as_deref(), flags);
    }
    let received = receive(cx, &open, &[span], flags)?;
    if name as u32 != 0 {
        put_name(cx, &received.name, name, name_len)?;
    }
    Ok(received.len)
}

/// `sendmsg` and `recvmsg`, without control messages: those hand over descriptors, or tell of interfaces and times.
pub(super) fn message(cx: Context<'_>, number: libc::c_long) -> Outcome {
    let [_, pointer, flags, ..] = cx.args;
    let open = cx.open(0)?;
    socket_of(&open)?;
    let sends = number == libc::SYS_sendmsg;
    let [name, name_len, vectors, count, _, control_len, _] = cx.memory.words::<7>(pointer)?;
    let spans = cx.memory.spans(vectors, count, !sends)?;
    if sends {
        if control_len != 0 {
            return Err(libc::EINVAL);
        }
        let to = match name as u32 {
            0 => None,
            _ => Some(granted_name(cx, name, name_len)?),
        };
        return send(cx, &open, &spans, to.as_deref(), flags);
    }
    let received = receive(cx, &open, &spans, flags)?;
    if name as u32 != 0 {
        put_name(cx, &received.name, name, pointer + 8)?;
    }
    // The length of control messages, and the flags.
    cx.memory.put(pointer + 40, &0u64.to_ne_bytes())?;
    cx.memory.put(pointer + 48, &received.flags.to_ne_bytes())?;
    Ok(received.len)
}

/// Sends a datagram, or a part of a stream: all of it, if the domain waits for that.
pub(super) fn send(cx: Context<'_>, open: &Kind, spans: &[Span], to: Option<&[u8]>, flags: u64) -> Outcome {
    let fd = socket_of(open)?;
    let waits = open.waits() && flags as i32 & libc::MSG_DONTWAIT == 0;
    let allowed = libc::MSG_DONTWAIT | libc::MSG_MORE | libc::MSG_EOR;
    let flags = flags as i32 & allowed | libc::MSG_NOSIGNAL;
    let stream = matches!(open, Kind::Socket(..));
    if stream && to.is_some() {
        return Err(libc::EISCONN);
    }
    let mut left = Slices::new(spans);
    let mut done = 0;
    loop {
        // The kernel refuses what is too long for a datagram.
        let next = left.next(if stream { SLICE } else { u64::MAX });
        let stage = Stage::new(cx.memory, next, false)?;
        match message::send(fd, stage.spans(), to, flags) {
            Err(libc::EAGAIN) if waits => match cx.ready(fd, libc::POLLOUT) {
                Err(errno) if done == 0 => return Err(errno),
                Err(_) => return Ok(done),
                Ok(()) => {}
            },
            Err(_) if done > 0 => return Ok(done),
            Ok(n) => {
                done += n;
                left.done(n as u64);
                if !stream || !waits || left.is_empty() || cx.going_on().is_err() {
                    return Ok(done);
                }
            }
            other => return other,
        }
    }
}

/// Receives a datagram, or a part of a stream.
pub(super) fn receive(cx: Context<'_>, open: &Kind, spans: &[Span], flags: u64) -> Outcome<Received> {
    let allowed = libc::MSG_PEEK | libc::MSG_WAITALL | libc::MSG_DONTWAIT | libc::MSG_TRUNC;
    let flags = flags as i32 & allowed;
    match open {
        Kind::Datagram(..) => datagram(cx, open, spans, flags),
        _ => stream(cx, open, spans, flags & !libc::MSG_TRUNC),
    }
}

/// By way of a copy: where it comes from is known only once it is there.
fn datagram(cx: Context<'_>, open: &Kind, spans: &[Span], flags: i32) -> Outcome<Received> {
    let fd = socket_of(open)?;
    let waits = open.waits() && flags & libc::MSG_DONTWAIT == 0;
    let mut bytes = vec![0; total(spans).min(DATAGRAM) as usize];
    loop {
        let received = match message::receive_copy(fd, &mut bytes, flags) {
            Err(libc::EAGAIN) if waits => {
                cx.ready(fd, libc::POLLIN)?;
                continue;
            }
            other => other?,
        };
        if !address(&received.name).is_some_and(|from| granted(cx, from)) {
            if flags & libc::MSG_PEEK != 0 {
                message::receive_copy(fd, &mut [], flags & !libc::MSG_PEEK)?;
            }
            cx.going_on()?;
            continue;
        }
        let mut left = &bytes[..bytes.len().min(received.len as usize)];
        for span in spans {
            let (now, rest) = left.split_at(left.len().min(span.len() as usize));
            cx.memory.put(span.address(), now)?;
            left = rest;
        }
        return Ok(received);
    }
}

fn stream(cx: Context<'_>, open: &Kind, spans: &[Span], flags: i32) -> Outcome<Received> {
    let fd = socket_of(open)?;
    let waits = open.waits() && flags & libc::MSG_DONTWAIT == 0;
    // What is received is received as a whole only if that was asked for.
    let whole = waits && flags & libc::MSG_WAITALL != 0 && flags & libc::MSG_PEEK == 0;
    let mut left = Slices::new(spans);
    let mut all = Received::default();
    loop {
        let stage = Stage::new(cx.memory, left.next(SLICE), true)?;
        match message::receive(fd, stage.spans(), flags) {
            Err(libc::EAGAIN) if waits => match cx.ready(fd, libc::POLLIN) {
                Err(errno) if all.len == 0 => return Err(errno),
                Err(_) => return Ok(all),
                Ok(()) => {}
            },
            Err(_) if all.len > 0 => return Ok(all),
            Ok(n) => {
                stage.moved(n)?;
                all.len += n;
                left.done(n as u64);
                if !whole || n == 0 || left.is_empty() || cx.going_on().is_err() {
                    return Ok(all);
                }
            }
            Err(errno) => return Err(errno),
        }
    }
}
