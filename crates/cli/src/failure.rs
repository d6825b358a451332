//! What a failed call looks like, and which exit status it has.

use std::process::ExitCode;
use std::time::Duration;

use ringfence::{Bound, CallError, DomainError, Fault, FaultKind, Module};

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

/// A time as `500us`, `20ms`, `2s`, `1m`; a bare number is seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    let split = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let number: f64 = text[..split]
        .parse()
        .map_err(|_| "write a time like 500ms or 2s".to_owned())?;
    let unit = match &text[split..] {
        "us" => 1e-6,
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        other => return Err(format!("unknown unit '{other}': us, ms, s or m")),
    };
    Duration::try_from_secs_f64(number * unit).map_err(|e| e.to_string())
}

/// A size as `4096`, `64K`, `64M`, `1G`.
pub fn size(text: &str) -> Result<u64, String> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..split]
        .parse()
        .map_err(|_| "write a size like 64M".to_owned())?;
    let shift = match text[split..].trim_end_matches("iB").trim_end_matches('B') {
        "" => 0,
        "k" | "K" => 10,
        "m" | "M" => 20,
        "g" | "G" => 30,
        other => return Err(format!("unknown unit '{other}': K, M or G")),
    };
    number
        .checked_mul(1 << shift)
        .ok_or_else(|| "too large".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("2"), Ok(Duration::from_secs(2)));
        assert!(duration("2h").is_err() && duration("").is_err());
        assert_eq!(size("64M"), Ok(64 << 20));
        assert_eq!(size("1GiB"), Ok(1 << 30));
        assert!(size("1T").is_err() && size("99999999999G").is_err());
    }
}
