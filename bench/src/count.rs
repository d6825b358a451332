//! How many instructions a workload executes: counted, to tell what fencing adds from what layout does.
//!
//! Valgrind does not know `gs` as fenced code uses it, and virtual machines often have no counters for `perf stat`. So
//! a child process is stepped instruction by instruction, over one round of a workload that was built for less work.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::build::Kitchen;
use crate::configuration::Kind;
use crate::place::{Pinned, Place};
use crate::program;
use crate::progress::Progress;
use crate::workloads::{Loaded, Plan};

/// Instructions of one workload, by configuration.
#[derive(Clone, Serialize, Deserialize)]
pub struct Row {
    /// The workload.
    pub name: String,
    /// Instructions; a configuration that needs more than the limit is absent.
    pub instructions: BTreeMap<String, u64>,
}

/// A step takes 3 microseconds; in a virtual machine inside another one, 20.
const LIMIT: u64 = 3_000_000;

/// Counts what is planned, in the configurations that run in this process; gives how many counts failed.
pub fn measure(
    kitchen: &Kitchen,
    plan: &Plan,
    progress: &Progress,
    keep: &mut dyn FnMut(Row) -> Result<(), String>,
) -> Result<usize, String> {
    let mut failed = 0;
    for mut program in plan.programs()? {
        program::complete(&mut program)?;
        for workload in &program.workloads {
            let mut instructions = BTreeMap::new();
            for &c in plan.configurations.iter().filter(|c| c.kind() != Kind::Wasm) {
                progress.say(format_args!("counting {} {}", workload.name, c.name()));
                let counted = kitchen
                    .build_counted(&program, c)
                    .and_then(|built| count(|| Loaded::new(&built.file, c)?.work(&workload.symbol)));
                match counted {
                    Ok(Some(n)) => {
                        instructions.insert(c.name().to_owned(), n);
                    }
                    // What is too long in one way is too long in all.
                    Ok(None) => {
                        println!("{}: more than {LIMIT} instructions", workload.name);
                        break;
                    }
                    Err(e) => {
                        eprintln!("failed: {} {}: {e}", workload.name, c.name());
                        failed += 1;
                    }
                }
            }
            progress.clear();
            if let (Some(native), Some(full)) = (instructions.get("native"), instructions.get("full")) {
                println!(
                    "{:<26} {native:>10} {full:>10} {:>8.3}x",
                    workload.name,
                    *full as f64 / *native as f64
                );
            }
            if !instructions.is_empty() {
                let name = workload.name.clone();
                keep(Row { name, instructions })?;
            }
        }
    }
    Ok(failed)
}

type Work = crate::workloads::Work;

/// Instructions between the two stops of a child that does the work once in between; `None` beyond the limit.
fn count(prepare: impl FnOnce() -> Result<Work, String>) -> Result<Option<u64>, String> {
    let wait = |child| {
        let mut status = 0;
        // SAFETY: our own child, and a place for its status
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        status
    };
    // On one processor: waking another one takes longer than a step.
    let _pin = Pinned::to(Place::Here);
    // SAFETY: this program has one thread at this point; the child ends in this function
    let child = unsafe { libc::fork() };
    if child == 0 {
        let stop = || {
            // SAFETY: the process stops itself
            unsafe { libc::raise(libc::SIGSTOP) };
        };
        // SAFETY: the parent is waiting for it
        unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) };
        let outcome = prepare().and_then(|mut work| {
            work(1)?; // inputs are made, pages and lazy bindings are there
            stop();
            work(1)?;
            stop();
            Ok(())
        });
        if let Err(e) = &outcome {
            eprintln!("bench: {e}");
        }
        // SAFETY: nothing of the parent's is torn down
        unsafe { libc::_exit(i32::from(outcome.is_err())) };
    }
    if child < 0 {
        return Err(std::io::Error::last_os_error().to_string());
    }
    let mut status = wait(child);
    let mut stops = 0;
    let mut steps = 0;
    while !libc::WIFEXITED(status) && !libc::WIFSIGNALED(status) && steps <= LIMIT {
        let stopped = libc::WIFSTOPPED(status) && libc::WSTOPSIG(status) == libc::SIGSTOP;
        stops += u32::from(stopped);
        let traced = libc::WSTOPSIG(status) == libc::SIGTRAP || stopped;
        let signal = if traced { 0 } else { libc::WSTOPSIG(status) };
        let (request, step) = if stops == 1 {
            (libc::PTRACE_SINGLESTEP, 1)
        } else {
            (libc::PTRACE_CONT, 0)
        };
        steps += step;
        // SAFETY: the child is stopped, and ours
        unsafe { libc::ptrace(request, child, 0, signal) };
        status = wait(child);
    }
    if steps > LIMIT {
        // SAFETY: our own child
        unsafe { libc::kill(child, libc::SIGKILL) };
        wait(child);
        return Ok(None);
    }
    match (libc::WIFEXITED(status), libc::WEXITSTATUS(status)) {
        (true, 0) => Ok(Some(steps)),
        _ => Err(format!(
            "the child ended with status {status:#x} after {steps} steps"
        )),
    }
}
