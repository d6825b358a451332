//! `make bench`: fenced against native code and against other engines, and what calls, faults and loading cost.
//!
//! Everything is measured in interleaved rounds and told as medians, so that a change of clock speed in the
//! middle moves both sides. `docs/performance.md` says how to read the figures.

#![deny(missing_docs)]

mod breakeven;
mod build;
mod calls;
mod charts;
mod configuration;
mod count;
mod figures;
mod load;
mod machine;
mod measure;
mod options;
mod peer;
mod place;
mod plot;
mod program;
mod progress;
mod report;
mod rpc;
mod step;
mod strings;
mod targets;
mod verifier;
mod wasm;
mod words;
mod workloads;

use std::path::Path;
use std::process::ExitCode;

use measure::Summary;
use options::{Command, Options};
use serde::{Deserialize, Serialize};

/// Rounds of short measurements for one of workloads.
const SHORT: usize = 5;

/// One line of the table of costs.
#[derive(Clone, Serialize, Deserialize)]
pub struct Cost {
    /// What was measured.
    name: String,
    /// In which unit.
    unit: String,
    /// The figures.
    summary: Summary,
    /// What is asked for.
    target: String,
    /// Relative to the plain indirect call, where that means something.
    ratio: Option<f64>,
}

/// Everything, as it is written to the JSON file.
#[derive(Serialize, Deserialize)]
pub struct Results {
    machine: machine::Machine,
    costs: Vec<Cost>,
    strings: Vec<strings::Row>,
    loads: Vec<load::Row>,
    workloads: workloads::Results,
    /// From a file of their own, since they come without a quiet machine.
    #[serde(default, skip_serializing)]
    instructions: Vec<count::Row>,
}

impl Results {
    /// Reads a file of figures.
    fn read(json: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(json).map_err(|e| format!("{}: {e}", json.display()))?;
        serde_json::from_str(&text).map_err(|e| format!("{}: {e}", json.display()))
    }

    fn write(&self, json: &Path) -> Result<(), String> {
        write_json(json, self)
    }
}

/// Writes a file that is always whole, whenever the program ends.
fn write_json(file: &Path, what: &impl Serialize) -> Result<(), String> {
    let text = serde_json::to_string_pretty(what).map_err(|e| e.to_string())?;
    let beside = file.with_extension("json.new");
    std::fs::write(&beside, text + "\n")
        .and_then(|()| std::fs::rename(&beside, file))
        .map_err(|e| format!("{}: {e}", file.display()))
}

fn main() -> ExitCode {
    let outcome = match options::parse(std::env::args().skip(1)) {
        Ok(Command::Run(options)) => run(&options),
        Ok(Command::Count(options)) => count(&options),
        Ok(Command::Words { runs, smoke }) => words::run(runs, smoke),
        Ok(Command::Report { json, counts, docs }) => report::update(&json, &counts, &docs),
        Ok(Command::Charts { files, docs }) => charts::update(&files, &docs),
        Ok(Command::Help) => {
            println!("{}", options::USAGE);
            Ok(())
        }
        Err(e) => Err(e),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), String> {
    keep_memory();
    let kitchen = build::Kitchen::new("build/bench")?;
    let progress = progress::Progress::new();
    let budget = progress::Budget::new(options.minutes);
    let machine = machine::Machine::here();
    println!("{machine}\n");
    let mut results = Results {
        machine,
        costs: Vec::new(),
        strings: Vec::new(),
        loads: Vec::new(),
        workloads: workloads::Results::default(),
        instructions: Vec::new(),
    };
    if options.resume && options.json.exists() {
        let before = Results::read(&options.json)?;
        if before.machine != results.machine {
            return Err(format!(
                "{} comes from another machine ({}); run without --resume",
                options.json.display(),
                before.machine
            ));
        }
        results = before;
    }
    if options.calls && results.loads.is_empty() {
        calls(options, &kitchen, &progress, &mut results)?;
        results.write(&options.json)?;
    }
    if options.workloads {
        let plan = workloads::Plan {
            runs: options.runs,
            budget,
            permille: if options.smoke { 1 } else { 1000 },
            only: &options.only,
            small: options.quick,
            configurations: &options.configurations,
        };
        let mut measured = std::mem::take(&mut results.workloads);
        let outcome = workloads::measure(&kitchen, &plan, &progress, &mut measured, &mut |so_far| {
            results.workloads = so_far.clone();
            results.write(&options.json)
        });
        results.workloads = measured;
        outcome?;
        for (what, why) in &results.workloads.skipped {
            println!("left out: {what}: {}", report::reason(why));
        }
        if budget.spent() {
            println!("this took longer than {} minutes", options.minutes);
        }
    }
    print!("\n{}", report::summary(&results));
    results.write(&options.json)?;
    println!("\nfigures: {}", options.json.display());
    let failed = &results.workloads.failed;
    for (what, why) in failed {
        eprintln!("failed: {what}: {why}");
    }
    match failed.len() {
        0 => Ok(()),
        n => Err(format!("{n} figures are missing, see above; the others stand")),
    }
}

/// Has glibc keep the memory that native workloads free, as a module's libc does. By its defaults it gives large
/// pieces back and gets them again with page faults, which no fence has to do with.
fn keep_memory() {
    // SAFETY: both only set limits; the second is the highest that glibc takes
    unsafe {
        libc::mallopt(libc::M_TRIM_THRESHOLD, i32::MAX);
        libc::mallopt(libc::M_MMAP_THRESHOLD, 32 << 20);
    }
}

/// Calls, faults, strings and loading.
fn calls(
    options: &Options,
    kitchen: &build::Kitchen,
    progress: &progress::Progress,
    results: &mut Results,
) -> Result<(), String> {
    let wasm = options
        .configurations
        .iter()
        .any(|c| c.kind() == configuration::Kind::Wasm);
    progress.say(format_args!("calls"));
    let rounds = if options.smoke { 1 } else { SHORT * options.runs };
    let calls = calls::Calls::new(kitchen)?;
    results.costs = calls.measure(kitchen, rounds, options.smoke, wasm)?;
    results.costs.push(verifier::measure(kitchen, rounds)?);
    progress.clear();
    print_costs(&results.costs);
    let many = if options.smoke {
        50
    } else if options.quick {
        20_000
    } else {
        200_000
    };
    results.strings = strings::measure(&calls.native, &calls.one, options.runs, many)?;
    let libraries = program::all()?.into_iter().filter(|p| p.recipe).map(|p| p.name);
    let names: Vec<String> = libraries.filter(|n| !options.quick || n == "zlib").collect();
    results.loads = load::measure(kitchen, 2 * options.runs + 1, &names, wasm, progress)?;
    progress.clear();
    Ok(())
}

/// Counts instructions, and keeps what was counted before.
fn count(options: &Options) -> Result<(), String> {
    let kitchen = build::Kitchen::new("build/bench")?;
    let mut rows: Vec<count::Row> = match std::fs::read_to_string(&options.counts) {
        Ok(text) => serde_json::from_str(&text).map_err(|e| format!("{}: {e}", options.counts.display()))?,
        Err(_) => Vec::new(),
    };
    let plan = workloads::Plan {
        runs: 1,
        budget: progress::Budget::new(options.minutes),
        permille: 1,
        only: &options.only,
        small: false,
        configurations: &options.configurations,
    };
    println!("{:<26} {:>10} {:>10}", "instructions", "native", "full");
    let failed = count::measure(&kitchen, &plan, &progress::Progress::new(), &mut |row| {
        rows.retain(|r| r.name != row.name);
        rows.push(row);
        write_json(&options.counts, &rows)
    })?;
    println!("\ncounts: {}", options.counts.display());
    match failed {
        0 => Ok(()),
        n => Err(format!("{n} counts are missing, see above; the others stand")),
    }
}

fn print_costs(costs: &[Cost]) {
    println!(
        "{:<44} {:>10} {:>8} {:>8}  target",
        "cost", "median", "spread", "ratio"
    );
    for cost in costs {
        let digits = if cost.summary.median < 100.0 { 2 } else { 0 };
        let ratio = cost.ratio.map_or(String::new(), |r| format!("{r:.2} x"));
        println!(
            "{:<44} {:>7.digits$} {:<4} {:>6.digits$} {:>8}  {}",
            cost.name, cost.summary.median, cost.unit, cost.summary.spread, ratio, cost.target
        );
    }
    println!();
}
