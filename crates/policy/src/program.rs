//! Starting a program's `main` in a domain.

use ringfence_core::{Call, CallError, DomainError, DomainRef, FaultKind, Instance, MemoryError};

use crate::grant::Stream;
use crate::monitor::Monitor;
use crate::sys::process;

/// What the start file of the C library exports: `__rf_main(argc, argv, envp, auxv)`.
pub const ENTRY: &str = "__rf_main";

/// Why a program did not run to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The module is no program.
    #[error("not a program: it has no start code; link it without -shared, and with a main")]
    NoMain(DomainError),
    /// Arguments and environment do not fit into the domain's memory.
    #[error("arguments and environment: {0}")]
    Arguments(#[from] MemoryError),
    /// The program failed.
    #[error(transparent)]
    Call(#[from] CallError),
}

const AT_PAGESZ: u64 = 6;
const AT_SECURE: u64 = 23;
const AT_RANDOM: u64 = 25;

/// Runs the program that `domain` holds, with the arguments and the environment of `monitor`'s policy, and returns its
/// exit status. Threads and processes that the program has made, and that still run when its `main` has ended, are ended. In such a
/// process this does not return.
///
/// # Errors
///
/// [`RunError`].
pub fn run(domain: &dyn Instance, monitor: &Monitor) -> Result<i32, RunError> {
    let entry = domain.function(ENTRY).map_err(RunError::NoMain)?;
    let memory = domain.space();
    let argv = strings(memory, monitor.args().iter().cloned())?;
    let envp = strings(
        memory,
        monitor.environment().iter().map(|(n, v)| format!("{n}={v}")),
    )?;
    // Seed of stack protectors and hash tables; nothing secret depends on it.
    let seed = memory.alloc(16, 16)?;
    let mut random = [0u8; 16];
    // SAFETY: room for so many bytes. What is not filled stays 0.
    unsafe { libc::getrandom(random.as_mut_ptr().cast(), random.len(), libc::GRND_NONBLOCK) };
    memory.write(seed, &random)?;
    let auxv = words(memory, &[AT_PAGESZ, 4096, AT_SECURE, 0, AT_RANDOM, seed, 0, 0])?;
    let argc = monitor.args().len() as u64;
    monitor.0.processes.begin();
    let ended = domain.call(entry, &mut Call::ints(&[argc, argv, envp, auxv]));
    let failed = monitor.0.threads.stop(memory);
    monitor.0.processes.stop();
    let ended = match ended {
        // Another thread's doing: its reason is the program's.
        Err(CallError::Fault(fault)) if matches!(fault.kind, FaultKind::Elsewhere) => {
            Err(failed.unwrap_or(CallError::Fault(fault)))
        }
        other => other,
    };
    let status = match ended {
        Ok(returned) => Ok(returned.rax as i32),
        Err(CallError::Exit(status)) => Ok(status),
        Err(e) => Err(e),
    };
    if monitor.0.processes.is_child() {
        leave(monitor, status);
    }
    Ok(status?)
}

/// The end of a process that the program has made: the host's code behind the call is not its own.
fn leave(monitor: &Monitor, status: Result<i32, CallError>) -> ! {
    let e = match status {
        Ok(status) => process::leave(status & 0xFF),
        Err(e) => e,
    };
    if let Stream::Inherit | Stream::Positioned = monitor.0.policy.streams[2] {
        // Nothing to be done when nobody reads it.
        let text = format!("ringfence: error: process {}: {e}\n", monitor.0.processes.own());
        let _ = std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes());
    }
    process::leave_by(signal(&e).unwrap_or(libc::SIGKILL))
}

/// The signal by which a process would have ended natively that failed like this. `None` where a limit or the host has ended it.
#[must_use]
pub fn signal(error: &CallError) -> Option<i32> {
    let CallError::Fault(fault) = error else {
        return None;
    };
    Some(match &fault.kind {
        FaultKind::TimeLimit | FaultKind::Interrupted | FaultKind::Elsewhere => return None,
        FaultKind::Division | FaultKind::FloatingPoint => libc::SIGFPE,
        FaultKind::IllegalInstruction => libc::SIGILL,
        FaultKind::Trap => libc::SIGTRAP,
        FaultKind::Abort(signal @ 1..=64) => *signal,
        FaultKind::Abort(_) | FaultKind::Uncaught(_) | FaultKind::NotUnwound(_) => libc::SIGABRT,
        _ => libc::SIGSEGV,
    })
}

/// A NULL-terminated vector of strings in the domain.
fn strings(memory: DomainRef<'_>, list: impl Iterator<Item = String>) -> Result<u64, MemoryError> {
    let list: Vec<String> = list.collect();
    let total: usize = list.iter().map(|s| s.len() + 1).sum();
    let mut at = memory.alloc(total.max(1) as u64, 16)?;
    let mut pointers = Vec::with_capacity(list.len() + 1);
    for text in list {
        let mut bytes = text.into_bytes();
        bytes.push(0);
        memory.write(at, &bytes)?;
        pointers.push(at);
        at += bytes.len() as u64;
    }
    pointers.push(0);
    words(memory, &pointers)
}

fn words(memory: DomainRef<'_>, list: &[u64]) -> Result<u64, MemoryError> {
    let bytes: Vec<u8> = list.iter().flat_map(|w| w.to_ne_bytes()).collect();
    let at = memory.alloc(bytes.len() as u64, 16)?;
    memory.write(at, &bytes)?;
    Ok(at)
}
