//! `fork`, `wait4` and signals between the processes of a program.

use crate::calls::context::Context;
use crate::processes::Whom;
use crate::sys::Outcome;
use crate::sys::process::Ended;

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
    let whom = match number as i32 {
        -1 => Whom::Any,
        number @ 1.. => Whom::One(number as u32),
        0 => Whom::Group(cx.state.processes.membership().0),
        group => Whom::Group(group.unsigned_abs()),
    };
    let Some((number, ended)) = ended(cx, whom, options)? else {
        return Ok(0);
    };
    if status as u32 != 0 {
        cx.memory.put(status, &ended.status.to_ne_bytes())?;
    }
    put_usage(cx, usage, &ended)?;
    Ok(number.into())
}

/// `waitid`, likewise: of a process by its number, or of any.
pub(super) fn wait_for(cx: Context<'_>) -> Outcome {
    let [kind, number, told, options, usage, _] = cx.args;
    let options = options as i32;
    // None is stopped, so none goes on; and how one has ended is told once.
    let allowed = libc::WNOHANG | libc::WEXITED | libc::WSTOPPED | libc::WCONTINUED;
    if options & !allowed != 0 || options & libc::WEXITED == 0 {
        return Err(libc::EINVAL);
    }
    let whom = match (kind as u32, number as i32) {
        (libc::P_PID, number @ 1..) => Whom::One(number as u32),
        (libc::P_ALL, _) => Whom::Any,
        (libc::P_PGID, 0) => Whom::Group(cx.state.processes.membership().0),
        (libc::P_PGID, group @ 1..) => Whom::Group(group as u32),
        _ => return Err(libc::EINVAL),
    };
    let mut words = [0i32; 32];
    let ended = ended(cx, whom, options)?;
    if let Some((number, ended)) = &ended {
        let status = ended.status;
        let (code, value) = if libc::WIFEXITED(status) {
            (libc::CLD_EXITED, libc::WEXITSTATUS(status))
        } else if libc::WCOREDUMP(status) {
            (libc::CLD_DUMPED, libc::WTERMSIG(status))
        } else {
            (libc::CLD_KILLED, libc::WTERMSIG(status))
        };
        // A `siginfo_t`: signal, (error), code, (gap), process, user, status.
        (words[0], words[2], words[4]) = (libc::SIGCHLD, code, *number as i32);
        (words[5], words[6]) = (1000, value);
        put_usage(cx, usage, ended)?;
    }
    if told as u32 != 0 {
        cx.memory.put(told, words.map(i32::to_ne_bytes).as_flattened())?;
    }
    Ok(0)
}

/// What an ended process has used. Times are a clock.
fn put_usage(cx: Context<'_>, pointer: u64, ended: &Ended) -> Outcome<()> {
    if pointer as u32 == 0 {
        return Ok(());
    }
    let known = cx.clocks().map_or([0; 144], |()| ended.usage);
    cx.memory.put(pointer, &known)
}

/// Waits for the end of one of these processes; not with `WNOHANG`.
fn ended(cx: Context<'_>, whom: Whom, options: i32) -> Outcome<Option<(u32, Ended)>> {
    let processes = &cx.state.processes;
    loop {
        let ended = processes.ended(whom)?;
        if ended.is_some() || options & libc::WNOHANG != 0 {
            return Ok(ended);
        }
        cx.poll(&mut processes.handles(), None)?;
        cx.going_on()?;
    }
}

/// A signal to other processes of the program's, as far as this one has made them.
pub(super) fn signal(cx: Context<'_>, whom: Whom, signal: i32) -> Outcome {
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
        0 => cx.state.processes.signal(whom, 0),
        // Those that end it. Others mean something to the runtime in it, or nothing.
        _ if ENDING.contains(&signal) => cx.state.processes.signal(whom, signal),
        _ => Err(libc::EPERM),
    }
}
