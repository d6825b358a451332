//! `make bench`: fenced against native code and against other engines, and what calls, faults and loading cost.
//!
//! Everything is measured in interleaved rounds and told as medians, so that a change of clock speed in the
//! middle moves both sides. `docs/performance.md` says how to read the figures.

#![deny(missing_docs)]

mod breakeven;
mod build;
mod calls;
mod configuration;
mod count;
mod load;
mod machine;
mod measure;
mod options;
mod peer;
mod plot;
mod program;
mod progress;
mod report;
mod rpc;
mod strings;
mod verifier;
mod wasm;
mod workloads;

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
    instructions: Vec<count::Row>,
}

fn main() -> ExitCode {
    let outcome = match options::parse(std::env::args().skip(1)) {
        Ok(Command::Run(options)) => run(&options),
        Ok(Command::Report { json, docs }) => report::update(&json, &docs),
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
    let kitchen = build::Kitchen::new("build/bench")?;
    let progress = progress::Progress::new();
    let machine = machine::Machine::here();
    println!("{machine}\n");
    let (mut costs, mut strings, mut loads) = (Vec::new(), Vec::new(), Vec::new());
    let wasm = options
        .configurations
        .iter()
        .any(|c| c.kind() == configuration::Kind::Wasm);
    if options.calls {
        progress.say(format_args!("calls"));
        let rounds = if options.smoke { 1 } else { SHORT * options.runs };
        let calls = calls::Calls::new(&kitchen)?;
        costs = calls.measure(&kitchen, rounds, options.smoke, wasm)?;
        costs.push(verifier::measure(&kitchen, rounds)?);
        progress.clear();
        print_costs(&costs);
        let many = if options.smoke {
            50
        } else if options.quick {
            20_000
        } else {
            200_000
        };
        strings = strings::measure(&calls.native, &calls.one, options.runs, many)?;
        let names: &[&str] = if options.quick {
            &["zlib"]
        } else {
            &["zlib", "lua", "libwebp", "sqlite"]
        };
        loads = load::measure(&kitchen, rounds, names, wasm, &progress)?;
        progress.clear();
    }
    let plan = workloads::Plan {
        runs: options.runs,
        permille: if options.smoke { 1 } else { 1000 },
        only: &options.only,
        small: options.quick,
        configurations: &options.configurations,
    };
    let mut measured = workloads::Results::default();
    if options.workloads {
        measured = workloads::measure(&kitchen, &plan, &progress)?;
        for (what, why) in &measured.skipped {
            println!("left out: {what}: {}", report::reason(why));
        }
    }
    let mut instructions = Vec::new();
    if options.instructions {
        println!("\n{:<26} {:>10} {:>10}", "instructions", "native", "full");
        instructions = count::measure(&kitchen, &plan, &progress)?;
    }
    let results = Results {
        machine,
        costs,
        strings,
        loads,
        workloads: measured,
        instructions,
    };
    print!("\n{}", report::summary(&results));
    let text = serde_json::to_string_pretty(&results).map_err(|e| e.to_string())?;
    std::fs::write(&options.json, text + "\n").map_err(|e| format!("{}: {e}", options.json.display()))?;
    println!("\nfigures: {}", options.json.display());
    Ok(())
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
