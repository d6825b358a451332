//! Threads that a domain has made for it: each is a thread of the host's with a call into the domain.

use std::sync::Arc;

use ringfence_core::{CallError, FaultKind, SpawnError};

use crate::calls::context::Context;
use crate::sys::Outcome;
use crate::threads::Threads;

/// What a C library asks for that makes a thread, and what is no `fork`.
const THREAD: u64 = (libc::CLONE_VM | libc::CLONE_THREAD) as u64;

/// `clone(CLONE_VM | CLONE_THREAD, function, argument)`: calls the function on a new thread. There are no stacks to be given,
/// and nothing returns twice.
pub(super) fn create(cx: Context<'_>) -> Outcome {
    let [flags, function, argument, ..] = cx.args;
    if flags & THREAD != THREAD {
        return Err(libc::EAGAIN); // a process
    }
    let threads: &Arc<Threads> = &cx.state.threads;
    if !threads.begin(cx.state.policy.threads) {
        return Err(libc::EAGAIN);
    }
    let ended = threads.clone();
    let ended = Box::new(move |result: Result<(), CallError>| {
        ended.end(result.err().filter(|e| match e {
            CallError::Fault(fault) => !matches!(fault.kind, FaultKind::Elsewhere | FaultKind::Interrupted),
            _ => true,
        }));
    });
    let started = cx.domain.spawn(cx.domain.translate(function), argument, ended);
    started.map(|()| 0).map_err(|e| {
        threads.end(None);
        match e {
            SpawnError::NoEntry(_) => libc::EINVAL,
            _ => libc::EAGAIN,
        }
    })
}
