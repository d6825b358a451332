//! What a failed call looks like, and which exit status it has.

use std::process::ExitCode;

use ringfence::{Bound, CallError, DomainError, Fault, FaultKind, Module, OptionUnit};

use crate::output;

/// Exit status of a fault: what a shell reports for SIGSEGV.
pub const FAULT: u8 = 139;
/// Exit status of an exceeded time limit, as `timeout` has it.
pub const TIME_LIMIT: u8 = 124;
/// Exit status of an `abort`: what a shell reports for SIGABRT.
pub const ABORT: u8 = 134;
/// Exit status when the module could not be started at all.
pub const NOT_STARTED: u8 = 125;

/// Reports why a call failed; the exit status that goes with it.
pub fn call(error: &CallError) -> ExitCode {
    match error {
        CallError::Exit(status) => ExitCode::from(*status as u8),
        CallError::Fault(fault) => {
            report(fault);
            status(fault)
        }
        CallError::Exceeded(over) if over.bound == Bound::Time => {
            output::error(error);
            ExitCode::from(TIME_LIMIT)
        }
        other => {
            output::error(other);
            ExitCode::from(NOT_STARTED)
        }
    }
}

/// Reports why a domain was not made.
pub fn domain(error: &DomainError) -> ExitCode {
    let DomainError::Init { source, .. } = error else {
        output::error(error);
        return ExitCode::from(NOT_STARTED);
    };
    match &**source {
        // A program may exit before its main.
        CallError::Exit(status) => ExitCode::from(*status as u8),
        CallError::Fault(fault) => {
            output::error(error);
            backtrace(fault);
            status(fault)
        }
        CallError::Exceeded(over) if over.bound == Bound::Time => {
            output::error(error);
            ExitCode::from(TIME_LIMIT)
        }
        _ => {
            output::error(error);
            ExitCode::from(NOT_STARTED)
        }
    }
}

/// Why a domain was not made; what was not found may be in a module that was there when one of these was linked.
pub fn not_made(error: &DomainError, modules: &[Module]) -> ExitCode {
    let code = domain(error);
    if let DomainError::Unresolved { symbol, .. } = error {
        let linked = modules
            .iter()
            .flat_map(|m| ringfence_driver::linked_with(m.original()));
        if let Some(path) = linked.into_iter().find(|path| gives(path, symbol)) {
            output::line(format_args!(
                "ringfence: note: {path} has it, which was named when the program was linked: --module={path}"
            ));
        }
    }
    code
}

/// Whether a module exports a symbol. The path is a module's word: an ordinary file is looked at, and nothing told of it but this.
fn gives(path: &str, symbol: &str) -> bool {
    const LARGEST: u64 = 256 << 20;
    if !std::fs::metadata(path).is_ok_and(|m| m.is_file() && m.len() <= LARGEST) {
        return false;
    }
    let Ok(data) = std::fs::read(path) else {
        return false;
    };
    ringfence_driver::image::Image::parse(&data)
        .is_ok_and(|i| i.note.is_some() && i.dynamic.iter().any(|s| s.defined && s.name == symbol))
}

/// Ends this process by a signal, without a core file of its own. Comes back if that cannot be done.
pub fn end_by(signal: i32) {
    use std::os::unix::process::CommandExt as _;
    let _ = std::process::Command::new("/bin/sh")
        .args(["-c", &format!("ulimit -c 0; kill -{signal} $$")])
        .exec();
}

fn status(fault: &Fault) -> ExitCode {
    ExitCode::from(match fault.kind {
        FaultKind::Abort(signal @ 1..=64) => 128 + signal as u8,
        FaultKind::TimeLimit => TIME_LIMIT,
        FaultKind::Abort(_) | FaultKind::Uncaught(_) | FaultKind::NotUnwound(_) => ABORT,
        _ => FAULT,
    })
}

fn report(fault: &Fault) {
    output::error(fault);
    backtrace(fault);
}

/// Frames, innermost first, aligned as a debugger shows them.
fn backtrace(fault: &Fault) {
    for (n, frame) in fault.backtrace().iter().enumerate() {
        let function = frame.function.as_deref().unwrap_or("?");
        let place = match (&frame.file, frame.line) {
            (Some(file), Some(line)) => format!(" at {file}:{line}"),
            _ => String::new(),
        };
        let module = frame.module.as_deref().unwrap_or("?");
        output::line(format_args!(
            "    #{n:<2} {function}{place} ({module}+{:#x})",
            frame.offset
        ));
    }
}

/// A size as `4096`, `64K`, `64M`, `1G`.
pub fn size(text: &str) -> Result<u64, String> {
    OptionUnit::Bytes.read(text)
}
