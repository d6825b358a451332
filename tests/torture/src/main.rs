//! Builds gcc's own execution tests with `ringfence cc` and runs them in domains.
//!
//! A program of that suite passes if it returns 0 or calls `exit(0)`, and fails by calling `abort`.
//! One that fails fenced is built and run natively too: if it fails there as well it says nothing
//! about us. Compiling is the cost, so a normal run takes a fixed part of the programs at each level;
//! running happens in one long-lived host process per thread, which therefore loads hundreds of modules.

mod options;
mod outcome;
mod plan;
mod program;
mod random;
mod worker;

use options::Options;
use outcome::Outcome;
use plan::Plan;
use program::Program;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use worker::Worker;

/// What one program at one level came to.
struct Verdict {
    name: String,
    level: &'static str,
    outcome: Outcome,
}

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(message) => {
            eprintln!("torture: {message}");
            return ExitCode::from(2);
        }
    };
    if options.worker {
        worker::serve();
        return ExitCode::SUCCESS;
    }
    let result = match options.random {
        Some(count) => random::run(count, &options),
        None => run(&options),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("torture: {message}");
            ExitCode::from(2)
        }
    }
}

fn run(options: &Options) -> Result<bool, String> {
    let plan = Plan::new(options)?;
    std::fs::create_dir_all(&options.build).map_err(|e| format!("{}: {e}", options.build.display()))?;
    let next = AtomicUsize::new(0);
    let verdicts = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..options.jobs {
            scope.spawn(|| {
                let mut worker = Worker::new();
                while let Some((program, level)) = plan.job(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = judge(&mut worker, program, level, options);
                    let verdict = Verdict {
                        name: program.name.clone(),
                        level,
                        outcome,
                    };
                    report(&verdict, &plan, options);
                    verdicts.lock().unwrap_or_else(|e| e.into_inner()).push(verdict);
                }
            });
        }
    });
    let verdicts = verdicts.into_inner().unwrap_or_else(|e| e.into_inner());
    Ok(summary(&verdicts, &plan))
}

/// Builds and runs one program, natively too if need be.
fn judge(worker: &mut Worker, program: &Program, level: &'static str, options: &Options) -> Outcome {
    let fenced = program.run_fenced(worker, level, options);
    if matches!(fenced, Outcome::Pass) {
        return fenced;
    }
    match program.run_native(level, options) {
        Outcome::Pass => fenced,
        native => Outcome::Unsuitable(native.to_string()),
    }
}

fn report(verdict: &Verdict, plan: &Plan, options: &Options) {
    let failed = !matches!(verdict.outcome, Outcome::Pass | Outcome::Unsuitable(_));
    if options.verbose || (failed && plan.expected(&verdict.name, verdict.level).is_none()) {
        println!("{:<24} {:<24} {}", verdict.name, verdict.level, verdict.outcome);
    }
}

fn summary(verdicts: &[Verdict], plan: &Plan) -> bool {
    #[derive(Default)]
    struct Row {
        passed: usize,
        failed: usize,
        expected: usize,
        unsuitable: usize,
    }
    let mut rows: BTreeMap<&str, Row> = BTreeMap::new();
    let mut listed: BTreeMap<String, bool> = BTreeMap::new();
    for verdict in verdicts {
        let row = rows.entry(verdict.level).or_default();
        let known = plan.expected(&verdict.name, verdict.level).is_some();
        match &verdict.outcome {
            Outcome::Pass => row.passed += 1,
            Outcome::Unsuitable(_) => row.unsuitable += 1,
            _ if known => row.expected += 1,
            _ => row.failed += 1,
        }
        if let Some(entry) = plan.listed(&verdict.name, verdict.level) {
            *listed.entry(entry).or_default() |= !matches!(verdict.outcome, Outcome::Pass);
        }
    }
    println!(
        "{:<24} {:>7} {:>7} {:>9} {:>14}",
        "torture", "passed", "failed", "expected", "native fails"
    );
    let (mut passed, mut failed) = (0, 0);
    for (level, row) in &rows {
        println!(
            "{level:<24} {:>7} {:>7} {:>9} {:>14}",
            row.passed, row.failed, row.expected, row.unsuitable
        );
        passed += row.passed;
        failed += row.failed;
    }
    let stale: Vec<_> = listed
        .iter()
        .filter(|(_, fails)| !**fails)
        .map(|(entry, _)| entry.as_str())
        .collect();
    if !stale.is_empty() {
        println!(
            "listed in expected.txt, but passed at every level tried: {}",
            stale.join(", ")
        );
    }
    println!("torture: {passed} passed, {failed} failed");
    failed == 0
}
