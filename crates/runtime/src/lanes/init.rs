//! What a host may do early: before its own handlers, with a signal of its choice, while there is one thread.

use crate::lanes::{own_stack, signal, watchdog};
use crate::os::{host, pages};
use ringfence_core::error::HostError;

/// What is decided for the whole process.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct InitOptions {
    /// The signal that makes a thread leave a domain whose call has to end, by a limit or an interrupt. Any but those that faults raise,
    /// `SIGKILL`, `SIGSTOP`, and two that the C library keeps for itself; real-time signals too. Take one that the program uses for nothing else, and
    /// does not block while it is in domains. `None`: `SIGURG`, or what was chosen before.
    pub tick_signal: Option<i32>,
}

/// Prepares the process. Nobody has to: what is missing is done when the first domain is made. But
///
/// * while the process has one thread, registering it for barriers takes microseconds, and later milliseconds;
/// * a signal of the host's choice is chosen before the first domain is made;
/// * a process that changes its user may not look at its own page tables any more, as resets do, unless it has opened them before: then
///   resets drop what they would copy, which costs their domains page faults. Each process of a server calls this before it does;
/// * a process that `fork` makes of one that called this from its first thread makes its first call a quarter of a millisecond sooner;
/// * handlers for `SIGSEGV`, `SIGBUS`, `SIGILL`, `SIGFPE` and `SIGTRAP` that the program installs later come before the runtime's, and would get
///   the faults of modules: called again after that, this takes the signals back, and passes what is the program's on to the program's handler. (The runtime
///   looks by itself when a domain is made, when a thread enters one for the first time, and now and then while calls with limits are in
///   progress.)
///
/// From any thread, not from signal handlers.
///
/// # Errors
/// [`HostError`]: the process cannot host domains, or [`HostError::TickSignal`].
pub fn init(options: &InitOptions) -> Result<(), HostError> {
    host::check()?;
    if let Some(signal) = options.tick_signal {
        signal::choose_tick(signal)?;
    }
    signal::install()?;
    signal::check_installed();
    signal::unblock();
    pages::prepare();
    own_stack::find();
    watchdog::barrier();
    // Where the system has no such barrier, adding code to living domains says so.
    let _ = watchdog::serialise();
    Ok(())
}
