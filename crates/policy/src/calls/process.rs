//! What a program asks about itself and its machine; answers that say nothing about the host.

use ringfence_core::EndCall;

use crate::calls::context::Context;
use crate::calls::context::Reply;
use crate::calls::fork;
use crate::processes::Whom;
use crate::slices::SLICE;
use crate::sys::{self, Outcome};

pub(super) fn random(cx: Context<'_>) -> Outcome {
    if !cx.state.policy.randomness {
        return Err(libc::ENOSYS);
    }
    let [pointer, len, flags, ..] = cx.args;
    // As the kernel: at most 32 MiB at a time.
    let all = cx.memory.span(pointer, len.min(1 << 25), true)?;
    let mut done = 0;
    loop {
        let next = [all.skip(done).first(SLICE)];
        match cx.staged(&next, true, true, |part, _| sys::random(part[0], flags & 3)) {
            Ok(n) => done += n as u64,
            Err(errno) if done == 0 => return Err(errno),
            Err(_) => return Ok(done as i64),
        }
        if done >= all.len() || cx.going_on().is_err() {
            return Ok(done as i64);
        }
    }
}

/// Signals to oneself that would end a process end the call. One to a group by its number goes to others only: the libc, which knows the
/// handlers, adds the one to oneself.
pub(super) fn kill(cx: Context<'_>, number: libc::c_long) -> Outcome<Reply> {
    let (target, signal) = match number {
        libc::SYS_tgkill => (cx.args[1], cx.args[2]),
        _ => (cx.args[0], cx.args[1]),
    };
    let processes = &cx.state.processes;
    if number == libc::SYS_kill && target as i32 != 0 && target as u32 != processes.own() {
        let whom = match target as i32 {
            -1 => Whom::Any,
            number @ 1.. => Whom::One(number as u32),
            group => Whom::Group(group.unsigned_abs()),
        };
        return match fork::signal(cx, whom, signal as i32) {
            // Whether there is somebody whom it may not reach is not told.
            Err(libc::ESRCH) if signal != 0 && matches!(whom, Whom::One(_)) => Err(libc::EPERM),
            other => other.map(Reply::Value),
        };
    }
    match signal as i32 {
        0 | libc::SIGCHLD | libc::SIGCONT | libc::SIGURG | libc::SIGWINCH => Ok(Reply::Value(0)),
        1..=64 => Ok(Reply::End(EndCall::Abort(signal as i32))),
        _ => Err(libc::EINVAL),
    }
}

pub(super) fn membership(cx: Context<'_>, number: libc::c_long) -> Outcome {
    let (group, session) = cx.state.processes.membership_of(cx.args[0] as u32)?;
    Ok(if number == libc::SYS_getsid {
        session
    } else {
        group
    }
    .into())
}

pub(super) fn set_group(cx: Context<'_>) -> Outcome {
    let [number, group, ..] = cx.args.map(|word| word as i32);
    match (u32::try_from(number), u32::try_from(group)) {
        (_, Err(_)) => Err(libc::EINVAL),
        (Err(_), _) => Err(libc::ESRCH),
        (Ok(number), Ok(group)) => cx.state.processes.set_group(number, group),
    }
}

/// No handler can run from outside: the libc keeps them, and runs them where the domain sends itself a signal. The default, or a signal
/// to be ignored, is harmless.
pub(super) fn signal_action(cx: Context<'_>) -> Outcome {
    let [signal, new, old, ..] = cx.args;
    if !(1..=64).contains(&signal) {
        return Err(libc::EINVAL);
    }
    if old as u32 != 0 {
        cx.memory.put(old, &[0; 32])?;
    }
    if new as u32 != 0 {
        let handler = cx.memory.words::<1>(new)?[0] as usize;
        if handler > libc::SIG_IGN {
            return Err(libc::EINVAL);
        }
        if signal == libc::SIGPIPE as u64 {
            let ignores = handler == libc::SIG_IGN;
            cx.state
                .ignores_pipe
                .store(ignores, std::sync::atomic::Ordering::Relaxed);
        }
    }
    Ok(0)
}

/// None ever are.
pub(super) fn signals_pending(cx: Context<'_>) -> Outcome {
    if cx.args[1] > 8 {
        return Err(libc::EINVAL);
    }
    cx.memory.put(cx.args[0], &[0; 8][..cx.args[1] as usize])?;
    Ok(0)
}

pub(super) fn name(cx: Context<'_>) -> Outcome {
    let mut bytes = [0u8; 6 * 65];
    for (i, text) in ["Linux", "ringfence", "5.15.0", "fenced", "x86_64", "(none)"]
        .iter()
        .enumerate()
    {
        bytes[65 * i..65 * i + text.len()].copy_from_slice(text.as_bytes());
    }
    cx.memory.put(cx.args[0], &bytes)?;
    Ok(0)
}

/// Memory as much as a window has, nothing about the host's load.
pub(super) fn system(cx: Context<'_>) -> Outcome {
    let mut bytes = [0u8; 112];
    let memory = 1u64 << 30;
    for at in [32, 40] {
        bytes[at..at + 8].copy_from_slice(&memory.to_ne_bytes());
    }
    bytes[80..82].copy_from_slice(&1u16.to_ne_bytes());
    bytes[104..108].copy_from_slice(&1u32.to_ne_bytes());
    cx.memory.put(cx.args[0], &bytes)?;
    Ok(0)
}

/// As many processors as the domain can make use of: one, unless it may have threads.
pub(super) fn affinity(cx: Context<'_>) -> Outcome {
    if cx.args[1] < 8 {
        return Err(libc::EINVAL);
    }
    let most = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let n = most.min(cx.state.policy.threads.saturating_add(1)).min(64) as u32;
    cx.memory.put(cx.args[2], &(u64::MAX >> (64 - n)).to_ne_bytes())?;
    Ok(8)
}

pub(super) fn limit(cx: Context<'_>, number: libc::c_long) -> Outcome {
    let (resource, out) = match number {
        libc::SYS_getrlimit => (cx.args[0], cx.args[1]),
        _ if cx.args[2] as u32 != 0 => return Err(libc::EPERM),
        _ => (cx.args[1], cx.args[3]),
    };
    let value = match resource as u32 {
        libc::RLIMIT_NOFILE => cx.state.table.limit() as u64,
        libc::RLIMIT_STACK => 8 << 20,
        libc::RLIMIT_CORE | libc::RLIMIT_NPROC => 0,
        0..=15 => u64::MAX,
        _ => return Err(libc::EINVAL),
    };
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&value.to_ne_bytes());
    bytes[8..].copy_from_slice(&value.to_ne_bytes());
    if out as u32 != 0 {
        cx.memory.put(out, &bytes)?;
    }
    Ok(0)
}

/// How long one wait lasts at most: a domain's time limit is looked at when it comes back.
const WAIT: [i64; 2] = [0, 4_000_000];

pub(super) fn futex(cx: Context<'_>) -> Outcome {
    let [word, operation, value, timeout, ..] = cx.args;
    if word % 4 != 0 {
        return Err(libc::EINVAL);
    }
    let span = cx.memory.span(word, 4, false)?;
    let private = operation as i32 & libc::FUTEX_PRIVATE_FLAG != 0;
    match operation as i32 & !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME) {
        libc::FUTEX_WAKE => sys::futex(span, private, None, value & 0x7FFF_FFFF),
        libc::FUTEX_WAIT => {
            let asked = if timeout as u32 == 0 {
                None
            } else {
                Some(cx.memory.time(timeout)?)
            };
            if asked.is_some_and(|time| time != [0, 0]) {
                cx.clocks()?;
            }
            match asked {
                // Coming back after each slice would be a clock.
                None if cx.clocks().is_err() => loop {
                    match sys::futex(span, private, Some((value as u32, WAIT)), 0) {
                        Err(libc::ETIMEDOUT | libc::EINTR) => cx.going_on()?,
                        other => return other,
                    }
                },
                Some(time) if time < WAIT => sys::futex(span, private, Some((value as u32, time)), 0),
                // Callers loop: waking up for nothing is allowed.
                _ => match sys::futex(span, private, Some((value as u32, WAIT)), 0) {
                    Err(libc::ETIMEDOUT) => Err(libc::EINTR),
                    other => other,
                },
            }
        }
        _ => Err(libc::ENOSYS),
    }
}
