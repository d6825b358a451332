//! Which lines of assembly a run executes: each instruction has a label, the program runs with a breakpoint on each, and a breakpoint
//! that was met is taken away. A run costs a stop for each line, once.

use crate::text::Unit;
use object::{Object, ObjectSymbol};
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const LABEL: &str = "lab_line_";

/// The unit's text with a label before each instruction. `number` tells units apart.
pub fn labelled(unit: &Unit, number: usize) -> String {
    let mut text = String::new();
    for (at, line) in unit.lines.iter().enumerate() {
        if unit.instruction(at).is_some() {
            let _ = writeln!(text, "{LABEL}{number}_{at}:");
        }
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// Where each label of the program is, from its beginning.
fn labels(program: &Path) -> Result<HashMap<u64, (usize, usize)>, String> {
    let bytes = std::fs::read(program).map_err(|e| format!("{}: {e}", program.display()))?;
    let file = object::File::parse(&*bytes).map_err(|e| format!("{}: {e}", program.display()))?;
    let read = |name: &str| {
        let (unit, line) = name.strip_prefix(LABEL)?.split_once('_')?;
        Some((unit.parse().ok()?, line.parse().ok()?))
    };
    Ok(file
        .symbols()
        .filter_map(|s| Some((s.address(), read(s.name().ok()?)?)))
        .collect())
}

/// Where the program lies in the process.
fn base(pid: i32, program: &Path) -> Option<u64> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    let name = program.to_str()?;
    let line = maps.lines().find(|l| l.ends_with(name))?;
    u64::from_str_radix(line.split('-').next()?, 16).ok()
}

/// The lines of units that a program, named by its whole path, built from labelled ones and position-independent, executes: (unit,
/// line).
///
/// # Errors
/// It cannot be traced, or did not end well.
pub fn executed(mut command: Command) -> Result<BTreeSet<(usize, usize)>, String> {
    let program = PathBuf::from(command.get_program());
    let labels = labels(&program)?;
    command.stdout(std::process::Stdio::null());
    // SAFETY: one system call, which is safe between fork and exec.
    unsafe {
        command.pre_exec(|| match libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
            -1 => Err(std::io::Error::last_os_error()),
            _ => Ok(()),
        });
    }
    let child = command
        .spawn()
        .map_err(|e| format!("{}: {e}", program.display()))?;
    let pid = child.id() as i32;
    let failed = |what: &str| {
        format!(
            "{}: {what}: {}",
            program.display(),
            std::io::Error::last_os_error()
        )
    };
    let wait = || {
        let mut status = 0;
        // SAFETY: our own child, into a variable of ours.
        match unsafe { libc::waitpid(pid, &raw mut status, 0) } {
            -1 => Err(failed("waiting for it")),
            _ => Ok(status),
        }
    };
    let go = |request, data: *mut libc::c_void| {
        // SAFETY: asks the kernel about our own child, which is stopped; `data` is a signal's number or a place of ours.
        match unsafe { libc::ptrace(request, pid, std::ptr::null_mut::<libc::c_void>(), data) } {
            -1 => Err(failed("tracing it")),
            _ => Ok(()),
        }
    };
    wait()?;
    let base = base(pid, &program).ok_or("the program is not in its own memory")?;
    let memory = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(format!("/proc/{pid}/mem"))
        .map_err(|e| e.to_string())?;
    let mut were = HashMap::new();
    for (&address, &place) in &labels {
        let mut byte = [0];
        memory
            .read_exact_at(&mut byte, base + address)
            .map_err(|e| e.to_string())?;
        memory
            .write_all_at(&[0xCC], base + address)
            .map_err(|e| e.to_string())?;
        were.insert(base + address, (byte, place));
    }
    let (mut met, mut signal) = (BTreeSet::new(), 0_usize);
    loop {
        go(libc::PTRACE_CONT, signal as *mut libc::c_void)?;
        let status = wait()?;
        if !libc::WIFSTOPPED(status) {
            return match libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0 {
                true => Ok(met),
                false => Err(format!(
                    "{} ended with status {status:#x} without a fault in it",
                    program.display()
                )),
            };
        }
        signal = libc::WSTOPSIG(status) as usize;
        if signal as i32 != libc::SIGTRAP {
            continue;
        }
        // SAFETY: plain numbers, all zeroes are some.
        let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
        go(libc::PTRACE_GETREGS, (&raw mut registers).cast())?;
        let at = registers.rip - 1;
        if let Some((byte, place)) = were.remove(&at) {
            memory.write_all_at(&byte, at).map_err(|e| e.to_string())?;
            met.insert(place);
            registers.rip = at;
            go(libc::PTRACE_SETREGS, (&raw mut registers).cast())?;
            signal = 0;
        }
    }
}
