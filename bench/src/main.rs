//! `make bench`: what calls, faults and the verifier cost, and fenced code against native code.
//!
//! Everything is measured in interleaved rounds and told as medians, so that a change of clock speed in the
//! middle moves both sides. `docs/performance.md` says how to read the figures.

mod build;
mod calls;
mod machine;
mod measure;
mod plot;
mod rpc;
mod strings;
mod verifier;
mod workloads;

use measure::Summary;
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "\
usage: bench [--quick] [--runs N] [--only NAME,…] [--json FILE] [--plots DIR] [--no-calls] [--no-workloads]
  --quick          three runs instead of nine, and fewer calls in each
  --runs N         this many interleaved runs
  --only NAME,…    only workloads whose name is listed
  --json FILE      where to write the figures (default build/bench.json)
  --plots DIR      draw light and dark plots there";

/// Rounds of short measurements for one of workloads.
const SHORT: usize = 5;

/// The command line.
struct Options {
    runs: usize,
    quick: bool,
    only: Vec<String>,
    json: PathBuf,
    plots: Option<PathBuf>,
    calls: bool,
    workloads: bool,
}

/// One line of the table of costs.
#[derive(Serialize)]
pub struct Cost {
    /// What was measured.
    name: &'static str,
    /// In which unit.
    unit: &'static str,
    /// The figures.
    summary: Summary,
    /// What issue and README ask for.
    target: &'static str,
    /// Relative to the plain indirect call, where that means something.
    ratio: Option<f64>,
}

/// Everything, as it is written to the JSON file.
#[derive(Serialize)]
struct Results {
    machine: machine::Machine,
    costs: Vec<Cost>,
    strings: Vec<strings::Row>,
    workloads: Vec<workloads::Row>,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench: {message}");
            ExitCode::FAILURE
        }
    }
}

fn parse() -> Result<Options, String> {
    let mut options = Options {
        runs: 9,
        quick: false,
        only: Vec::new(),
        json: PathBuf::from("build/bench.json"),
        plots: None,
        calls: true,
        workloads: true,
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(USAGE);
        match arg.as_str() {
            "--quick" => (options.quick, options.runs) = (true, 3),
            "--runs" => {
                options.runs = value()?
                    .parse()
                    .ok()
                    .filter(|n| *n > 0)
                    .ok_or("--runs needs a number above 0")?
            }
            "--only" => options.only = value()?.split(',').map(str::to_owned).collect(),
            "--json" => options.json = value()?.into(),
            "--plots" => options.plots = Some(value()?.into()),
            "--no-calls" => options.calls = false,
            "--no-workloads" => options.workloads = false,
            _ => return Err(USAGE.into()),
        }
    }
    Ok(options)
}

fn run() -> Result<(), String> {
    let options = parse()?;
    let kitchen = build::Kitchen::new("build/bench")?;
    let machine = machine::Machine::here();
    println!("{machine}\n");
    let (mut costs, mut strings) = (Vec::new(), Vec::new());
    if options.calls {
        let calls = calls::Calls::new(&kitchen)?;
        costs = calls.measure(SHORT * options.runs)?;
        costs.push(verifier::measure(&kitchen, SHORT * options.runs)?);
        print_costs(&costs);
        strings = strings::measure(&calls.native, &calls.one, options.runs, options.quick)?;
    }
    let mut workloads = Vec::new();
    if options.workloads {
        workloads = workloads::measure(&kitchen, options.runs, &options.only)?;
        workloads::print_means(&workloads);
    }
    if let Some(dir) = &options.plots {
        plot::draw(dir, &workloads).map_err(|e| format!("{}: {e}", dir.display()))?;
    }
    let results = Results {
        machine,
        costs,
        strings,
        workloads,
    };
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
            "{:<44} {:>7.digits$} {:<2} {:>8.digits$} {:>8}  {}",
            cost.name, cost.summary.median, cost.unit, cost.summary.spread, ratio, cost.target
        );
    }
    println!();
}
