//! `eventfd`, `timerfd` and `epoll`: the kernel's own, on the host's descriptors that stand behind the domain's.
//!
//! What is in a set is known to the kernel by the host's descriptor, which the copies that `dup` makes in the domain share: a
//! descriptor and its copies are one member. It leaves the set when the last of them is closed, as in Linux.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use crate::calls::context::Context;
use crate::calls::ready::{READING, WRITING, waitable};
use crate::slices::total;
use crate::span::Span;
use crate::sys::{self, Outcome, events};
use crate::table::{Held, Kind};

/// Most sets of a domain: each has as many members as the domain has descriptors, and the kernel's room for them is the host user's.
const SETS: usize = 64;

/// Most events of one answer. What is left is told by the next.
const EVENTS: usize = 1024;

/// A set's descriptor is made known to the domain, or none is.
fn known(cx: Context<'_>, open: Kind, flags: u64, close_on_exec: i32) -> Outcome {
    cx.state
        .table
        .add(Arc::new(open), 0, flags & close_on_exec as u64 != 0)
}

pub(super) fn event(cx: Context<'_>, number: libc::c_long) -> Outcome {
    let [count, flags, ..] = cx.args;
    let flags = if number == libc::SYS_eventfd2 {
        u64::from(flags as u32)
    } else {
        0
    };
    if flags & !(libc::EFD_SEMAPHORE | libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) as u64 != 0 {
        return Err(libc::EINVAL);
    }
    let fd = Held::new(events::event(
        count as u32,
        flags & libc::EFD_SEMAPHORE as u64 != 0,
    )?)?;
    let nonblocking = flags & libc::EFD_NONBLOCK as u64 != 0;
    known(cx, Kind::Event(fd, nonblocking.into()), flags, libc::EFD_CLOEXEC)
}

pub(super) fn timer(cx: Context<'_>) -> Outcome {
    cx.clocks()?;
    let [clock, flags, ..] = cx.args;
    let flags = u64::from(flags as u32);
    if flags & !(libc::TFD_CLOEXEC | libc::TFD_NONBLOCK) as u64 != 0 {
        return Err(libc::EINVAL);
    }
    let clock = match clock as i32 {
        clock @ (libc::CLOCK_REALTIME | libc::CLOCK_MONOTONIC | libc::CLOCK_BOOTTIME) => clock,
        // They wake the machine.
        libc::CLOCK_REALTIME_ALARM | libc::CLOCK_BOOTTIME_ALARM => return Err(libc::EPERM),
        _ => return Err(libc::EINVAL),
    };
    let nonblocking = flags & libc::TFD_NONBLOCK as u64 != 0;
    known(
        cx,
        Kind::Timer(Held::new(events::timer(clock)?)?, nonblocking.into()),
        flags,
        libc::TFD_CLOEXEC,
    )
}

/// `timerfd_settime` and `timerfd_gettime`.
pub(super) fn timer_time(cx: Context<'_>, number: libc::c_long) -> Outcome {
    let sets = number == libc::SYS_timerfd_settime;
    let [_, second, to, old, ..] = cx.args;
    let to = if sets {
        Some(cx.memory.words::<4>(to)?)
    } else {
        None
    };
    let open = cx.open(0)?;
    let Kind::Timer(fd, _) = &*open else {
        return Err(libc::EINVAL);
    };
    let (told, pointer) = match to {
        Some(to) => (events::set_timer(fd.fd()?, second as i32, to)?, old),
        None => (events::timer_left(fd.fd()?)?, second),
    };
    if !sets || pointer as u32 != 0 {
        cx.memory
            .put(pointer, told.map(u64::to_ne_bytes).as_flattened())?;
    }
    Ok(0)
}

/// Reads and writes of counters, and reads of timers: eight bytes that are taken or given as a whole, or waited for.
pub(super) fn count(
    cx: Context<'_>,
    open: &Kind,
    fd: BorrowedFd<'_>,
    write: bool,
    spans: &[Span],
) -> Outcome {
    if total(spans) < 8 || write && matches!(open, Kind::Timer(..)) {
        return Err(libc::EINVAL);
    }
    loop {
        match sys::vectored(write, fd, spans, None) {
            Err(libc::EAGAIN) if open.waits() => {}
            other => return other,
        }
        if write {
            // There may be room, and not for so much: poll would not wait.
            return cx.until(|| sys::vectored(write, fd, spans, None));
        }
        cx.ready(fd, libc::POLLIN)?;
    }
}

pub(super) fn create(cx: Context<'_>, number: libc::c_long) -> Outcome {
    let flags = match number {
        libc::SYS_epoll_create if cx.args[0] as i32 <= 0 => return Err(libc::EINVAL),
        libc::SYS_epoll_create => 0,
        _ => u64::from(cx.args[0] as u32),
    };
    if flags & !(libc::EPOLL_CLOEXEC as u64) != 0 {
        return Err(libc::EINVAL);
    }
    if cx.state.table.count(|open| matches!(open, Kind::Set(_))) >= SETS {
        return Err(libc::EMFILE);
    }
    known(
        cx,
        Kind::Set(Held::new(events::set()?)?),
        flags,
        libc::EPOLL_CLOEXEC,
    )
}

pub(super) fn change(cx: Context<'_>) -> Outcome {
    let [_, operation, _, pointer, ..] = cx.args;
    let operation = operation as i32;
    let mut event = libc::epoll_event { events: 0, u64: 0 };
    if operation != libc::EPOLL_CTL_DEL {
        let bytes = cx.memory.get::<12>(pointer)?;
        event.events = u32::from_ne_bytes(bytes[..4].try_into().unwrap_or_default());
        event.u64 = u64::from_ne_bytes(bytes[4..].try_into().unwrap_or_default());
    }
    let (set, member) = (cx.open(0)?, cx.open(2)?);
    let Kind::Set(fd) = &*set else {
        return Err(libc::EINVAL);
    };
    // Files and what is made here are always ready: as in Linux.
    let host = member.host()?.ok_or(libc::EPERM)?;
    let mut asked =
        libc::EPOLLERR | libc::EPOLLHUP | libc::EPOLLET | libc::EPOLLONESHOT | libc::EPOLLEXCLUSIVE;
    // Of a terminal for output it would tell when a key is pressed.
    if member.reads() {
        asked |= i32::from(READING);
    }
    if member.writes() {
        asked |= i32::from(WRITING);
    }
    event.events &= asked as u32;
    events::change_set(fd.fd()?, operation, host, event)
}

/// `epoll_wait`, `epoll_pwait` and `epoll_pwait2`; there are no signals to be masked.
pub(super) fn wait(cx: Context<'_>, number: libc::c_long) -> Outcome {
    let [_, pointer, most, timeout, ..] = cx.args;
    let timeout = match number {
        libc::SYS_epoll_pwait2 if timeout as u32 == 0 => None,
        libc::SYS_epoll_pwait2 => {
            let [seconds, nanoseconds] = cx.memory.time(timeout)?;
            Some(Duration::new(seconds as u64, nanoseconds as u32))
        }
        _ => u64::try_from(timeout as i32).ok().map(Duration::from_millis),
    };
    let most = usize::try_from(most as i32).unwrap_or(0).min(EVENTS);
    if most == 0 {
        return Err(libc::EINVAL);
    }
    let timeout = waitable(cx, timeout)?;
    let open = cx.open(0)?;
    let Kind::Set(set) = &*open else {
        return Err(libc::EINVAL);
    };
    // Before anything is waited for, and taken from the set.
    cx.memory.span(pointer, 12 * most as u64, true)?;
    let mut events = vec![libc::epoll_event { events: 0, u64: 0 }; most];
    let ready = cx.repeat(timeout, |now| events::wait(set.fd()?, &mut events, now))?;
    let mut bytes = Vec::with_capacity(12 * most);
    for event in &events[..ready as usize] {
        let (happened, data) = (event.events, event.u64);
        bytes.extend(happened.to_ne_bytes());
        bytes.extend(data.to_ne_bytes());
    }
    cx.memory.put(pointer, &bytes)?;
    Ok(ready)
}
