//! `poll` and `select`: which descriptors can be read from or written to.

use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::calls::context::Context;
use crate::sys::Outcome;
use crate::table::Kind;

/// One descriptor that is asked for, and what became of it.
struct Asked {
    fd: i32,
    events: i16,
    revents: i16,
}

/// What a stream is asked for that is read from, and one that is written to.
pub(super) const READING: i16 =
    libc::POLLIN | libc::POLLPRI | libc::POLLRDNORM | libc::POLLRDBAND | libc::POLLRDHUP;
pub(super) const WRITING: i16 = libc::POLLOUT | libc::POLLWRNORM | libc::POLLWRBAND;

/// A time-out is a clock: without clocks there is none but 0, which does not wait.
pub(super) fn waitable(cx: Context<'_>, timeout: Option<Duration>) -> Outcome<Option<Duration>> {
    if timeout.is_some_and(|t| !t.is_zero()) {
        cx.clocks()?;
    }
    Ok(timeout)
}

/// Fills in `revents` within `timeout` (for ever without); how many are not 0.
fn wait(cx: Context<'_>, asked: &mut [Asked], timeout: Option<Duration>) -> Outcome {
    let mut polled = Vec::new();
    // Kept open until the end, whatever other threads close.
    let mut held: Vec<(usize, Arc<Kind>)> = Vec::new();
    let mut ready = 0;
    for (i, one) in asked.iter_mut().enumerate() {
        one.revents = 0;
        if one.fd < 0 {
            continue;
        }
        match cx.state.table.get(one.fd as u64) {
            Err(_) => one.revents = libc::POLLNVAL,
            Ok(open) => match open.host() {
                Err(_) => one.revents = libc::POLLNVAL,
                Ok(Some(host)) => {
                    let mut events = one.events;
                    if !open.reads() {
                        // Of a terminal for output it would tell when a key is pressed.
                        events &= !READING;
                    }
                    if !open.writes() {
                        events &= !WRITING;
                    }
                    polled.push(libc::pollfd {
                        fd: host.as_raw_fd(),
                        events,
                        revents: 0,
                    });
                    held.push((i, open));
                }
                Ok(None) => one.revents = one.events & (libc::POLLIN | libc::POLLOUT),
            },
        }
        ready += i64::from(one.revents != 0);
    }
    let timeout = if ready > 0 { Some(Duration::ZERO) } else { timeout };
    cx.poll(&mut polled, timeout)?;
    for ((i, _), p) in held.iter().zip(&polled) {
        asked[*i].revents = p.revents;
        ready += i64::from(p.revents != 0);
    }
    Ok(ready)
}

fn duration([seconds, nanoseconds]: [i64; 2]) -> Duration {
    Duration::new(seconds as u64, nanoseconds as u32)
}

pub(super) fn poll(cx: Context<'_>, number: libc::c_long) -> Outcome {
    let [pointer, count, timeout, ..] = cx.args;
    if count > cx.state.table.limit() as u64 {
        return Err(libc::EINVAL);
    }
    let timeout = if number == libc::SYS_poll {
        u64::try_from(timeout as i32).ok().map(Duration::from_millis)
    } else if timeout as u32 == 0 {
        None
    } else {
        Some(duration(cx.memory.time(timeout)?))
    };
    let timeout = waitable(cx, timeout)?;
    let bytes = cx.memory.get_bytes(pointer, 8 * count as usize)?;
    let mut asked: Vec<Asked> = bytes
        .chunks_exact(8)
        .map(|entry| Asked {
            fd: i32::from_ne_bytes([entry[0], entry[1], entry[2], entry[3]]),
            events: i16::from_ne_bytes([entry[4], entry[5]]),
            revents: 0,
        })
        .collect();
    let ready = wait(cx, &mut asked, timeout)?;
    for (i, one) in asked.iter().enumerate() {
        cx.memory
            .put(pointer + 8 * i as u64 + 6, &one.revents.to_ne_bytes())?;
    }
    Ok(ready)
}

/// For each of the three sets: what to ask for, and what counts as an answer, as in Linux.
const SETS: [(i16, i16); 3] = [
    (libc::POLLIN, libc::POLLIN | libc::POLLHUP | libc::POLLERR),
    (libc::POLLOUT, libc::POLLOUT | libc::POLLERR),
    (libc::POLLPRI, libc::POLLPRI),
];

/// How long to wait: a `timeval` for `select`, a `timespec` for `pselect6`. None: for ever.
fn select_time(cx: Context<'_>, number: libc::c_long) -> Outcome<Option<Duration>> {
    let pointer = cx.args[4];
    if pointer as u32 == 0 {
        return Ok(None);
    }
    if number == libc::SYS_pselect6 {
        return Ok(Some(duration(cx.memory.time(pointer)?)));
    }
    // More than a million microseconds are allowed.
    let [seconds, micros] = cx.memory.words::<2>(pointer)?.map(|w| w as i64);
    match (u64::try_from(seconds), u64::try_from(micros)) {
        (Ok(s), Ok(us)) => Ok(Some(
            Duration::from_secs(s).saturating_add(Duration::from_micros(us)),
        )),
        _ => Err(libc::EINVAL),
    }
}

pub(super) fn select(cx: Context<'_>, number: libc::c_long) -> Outcome {
    let count = usize::try_from(cx.args[0] as i32).map_err(|_| libc::EINVAL)?;
    // No descriptor has a number beyond the limit: as in Linux, what lies there is not looked at.
    let count = count.min(cx.state.table.limit());
    let bytes = count.div_ceil(64) * 8;
    let timeout = waitable(cx, select_time(cx, number)?)?;
    let mut sets = Vec::new();
    for pointer in &cx.args[1..4] {
        sets.push(match *pointer as u32 {
            0 => vec![0; bytes],
            _ => cx.memory.get_bytes(*pointer, bytes)?,
        });
    }
    let is_set = |set: &[u8], fd: usize| set[fd / 8] >> (fd % 8) & 1 != 0;
    let mut asked = Vec::new();
    for fd in 0..count {
        let mut events = 0;
        for (set, (ask, _)) in sets.iter().zip(SETS) {
            if is_set(set, fd) {
                events |= ask;
            }
        }
        if events != 0 {
            cx.state.table.get(fd as u64)?;
            asked.push(Asked {
                fd: fd as i32,
                events,
                revents: 0,
            });
        }
    }
    let begin = Instant::now();
    wait(cx, &mut asked, timeout)?;
    if asked.iter().any(|a| a.revents & libc::POLLNVAL != 0) {
        // Closed by another thread between the two looks.
        return Err(libc::EBADF);
    }
    let mut ready = 0;
    for (i, (set, (_, answers))) in sets.iter().zip(SETS).enumerate() {
        let pointer = cx.args[1 + i];
        if pointer as u32 == 0 {
            continue;
        }
        let mut out = vec![0u8; bytes];
        for one in &asked {
            let fd = one.fd as usize;
            if is_set(set, fd) && one.revents & answers != 0 {
                out[fd / 8] |= 1 << (fd % 8);
                ready += 1;
            }
        }
        cx.memory.put(pointer, &out)?;
    }
    // What is left tells how long it took.
    if let Some(timeout) = timeout.filter(|_| cx.clocks().is_ok()) {
        let left = timeout.saturating_sub(begin.elapsed());
        let part = match number {
            libc::SYS_select => left.subsec_micros(),
            _ => left.subsec_nanos(),
        };
        let words = [left.as_secs().to_ne_bytes(), u64::from(part).to_ne_bytes()];
        // Linux does not mind if this cannot be written.
        let _ = cx.memory.put(cx.args[4], &words.concat());
    }
    Ok(ready)
}
