//! Clocks and sleep, when they are granted.

use std::time::Duration;

use crate::calls::context::Context;
use crate::sys::{self, Fill, Outcome};

/// Clocks of the system; those of processes and threads would name the host's.
fn known(clock: u64) -> Outcome<u64> {
    // Realtime, monotonic, process and thread time, raw, coarse ones, boot time.
    if clock <= 7 { Ok(clock) } else { Err(libc::EINVAL) }
}

pub(super) fn get(cx: Context<'_>, number: libc::c_long) -> Outcome {
    cx.clocks()?;
    let [a, b, ..] = cx.args;
    match number {
        libc::SYS_clock_gettime => {
            let (_, bytes) = sys::fill(Fill::Clock(known(a)?))?;
            cx.memory.put(b, &bytes[..16])?;
        }
        libc::SYS_clock_getres => {
            let (_, bytes) = sys::fill(Fill::ClockResolution(known(a)?))?;
            if b as u32 != 0 {
                cx.memory.put(b, &bytes[..16])?;
            }
        }
        libc::SYS_gettimeofday => {
            let (_, mut bytes) = sys::fill(Fill::Clock(libc::CLOCK_REALTIME as u64))?;
            let nanoseconds = u64::from_ne_bytes(bytes[8..16].try_into().unwrap_or_default());
            bytes[8..16].copy_from_slice(&(nanoseconds / 1000).to_ne_bytes());
            if a as u32 != 0 {
                cx.memory.put(a, &bytes[..16])?;
            }
            if b as u32 != 0 {
                cx.memory.put(b, &[0; 8])?;
            }
        }
        _ => {
            let (_, bytes) = sys::fill(Fill::Clock(libc::CLOCK_REALTIME as u64))?;
            if a as u32 != 0 {
                cx.memory.put(a, &bytes[..8])?;
            }
            return Ok(i64::from_ne_bytes(bytes[..8].try_into().unwrap_or_default()));
        }
    }
    Ok(0)
}

pub(super) fn usage(cx: Context<'_>, number: libc::c_long) -> Outcome {
    cx.clocks()?;
    if number == libc::SYS_times {
        let (ticks, bytes) = sys::fill(Fill::Times)?;
        if cx.args[0] as u32 != 0 {
            cx.memory.put(cx.args[0], &bytes[..32])?;
        }
        return Ok(ticks);
    }
    let (_, bytes) = sys::fill(Fill::Usage)?;
    // The two times; the rest is about the host.
    let mut shown = [0; 144];
    shown[..32].copy_from_slice(&bytes[..32]);
    cx.memory.put(cx.args[1], &shown)?;
    Ok(0)
}

pub(super) fn sleep(cx: Context<'_>, number: libc::c_long) -> Outcome {
    cx.clocks()?;
    let (clock, absolute, time) = match number {
        libc::SYS_nanosleep => (libc::CLOCK_MONOTONIC as u64, false, cx.args[0]),
        _ => (
            known(cx.args[0])?,
            cx.args[1] & libc::TIMER_ABSTIME as u64 != 0,
            cx.args[2],
        ),
    };
    let duration =
        |[seconds, nanoseconds]: [i64; 2]| Duration::new(seconds.max(0) as u64, nanoseconds.max(0) as u32);
    let mut left = duration(cx.memory.time(time)?);
    if absolute {
        let (_, bytes) = sys::fill(Fill::Clock(clock))?;
        let word = |at: usize| i64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap_or_default());
        left = left.saturating_sub(duration([word(0), word(8)]));
    }
    cx.sleep(left).map(|()| 0)
}
