//! `fork`, `wait4` and signals between the processes of a program.

use crate::calls::context::Context;
use crate::sys::Outcome;

/// `fork`, `vfork`, and `clone` that means the same.
pub(super) fn fork(cx: Context<'_>) -> Outcome {
    // They would be missing in the new process, with what they have half done.
    if cx.state.threads.running() > 0 {
        return Err(libc::EAGAIN);
    }
    cx.state.processes.make(|| cx.domain.fork())
}

/// `wait4`: for the program's own processes, whatever others the host has.
pub(super) fn wait(cx: Context<'_>) -> Outcome {
    let [number, status, options, usage, ..] = cx.args;
    let options = options as i32;
    if options & !(libc::WNOHANG | libc::WUNTRACED | libc::WCONTINUED) != 0 {
        return Err(libc::EINVAL);
    }
    // All are of one group.
    let number = u32::try_from(number as i32).ok().filter(|&n| n > 0);
    let processes = &cx.state.processes;
    loop {
        if let Some((number, ended)) = processes.ended(number)? {
            if status as u32 != 0 {
                cx.memory.put(status, &ended.status.to_ne_bytes())?;
            }
            if usage as u32 != 0 {
                let known = cx.clocks().map_or([0; 144], |()| ended.usage);
                cx.memory.put(usage, &known)?;
            }
            return Ok(number.into());
        }
        if options & libc::WNOHANG != 0 {
            return Ok(0);
        }
        cx.poll(&mut processes.handles(), None)?;
        cx.going_on()?;
    }
}

/// A signal to another process of the program's: one that this one has made.
pub(super) fn signal(cx: Context<'_>, number: u32, signal: i32) -> Outcome {
    const ENDING: [i32; 9] = [
        libc::SIGHUP,
        libc::SIGINT,
        libc::SIGQUIT,
        libc::SIGKILL,
        libc::SIGUSR1,
        libc::SIGUSR2,
        libc::SIGPIPE,
        libc::SIGALRM,
        libc::SIGTERM,
    ];
    match signal {
        0 => cx.state.processes.signal(number, 0),
        // Those that end it. Others mean something to the runtime in it, or nothing.
        _ if ENDING.contains(&signal) => cx.state.processes.signal(number, signal),
        _ => Err(libc::EPERM),
    }
}
