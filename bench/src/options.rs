//! The command line.

use std::path::PathBuf;

use crate::configuration::Configuration;

/// What `--help` prints.
pub const USAGE: &str = "\
usage: bench [--quick] [--runs N] [--only NAME,…] [--configs NAME,…] [--instructions]
             [--no-calls] [--no-workloads] [--json FILE]
       bench report [--json FILE] [--docs DIR]
  --quick           three runs instead of five, kernels and zlib only, no other engines
  --runs N          this many interleaved runs
  --only NAME,…     only these programs or workloads
  --configs NAME,…  native, aligned, o3, v3, full, full-o3, full-v3, integrity, check, wasm2c, wasmtime
                    (default: native, aligned, full, integrity, check, wasm2c, wasmtime)
  --json FILE       the figures (default build/bench.json)
  --instructions    also count the instructions of each workload, by single steps: minutes
  --no-calls        workloads only
  --no-workloads    calls, strings and loading only
  --smoke           a thousandth of the work, to see that everything runs; the figures mean nothing
  report            renders the tables and the plots of docs/performance.md from the figures";

const DEFAULT: [Configuration; 7] = [
    Configuration::Native,
    Configuration::Aligned,
    Configuration::Full,
    Configuration::Integrity,
    Configuration::Check,
    Configuration::Wasm2c,
    Configuration::Wasmtime,
];

/// What to do.
pub enum Command {
    /// Measure.
    Run(Options),
    /// Render.
    Report {
        /// The figures.
        json: PathBuf,
        /// Where the page and its plots are.
        docs: PathBuf,
    },
    /// Explain.
    Help,
}

/// What to measure, and how.
pub struct Options {
    /// Interleaved rounds.
    pub runs: usize,
    /// The short set.
    pub quick: bool,
    /// Hardly any work.
    pub smoke: bool,
    /// Programs and workloads; all if empty.
    pub only: Vec<String>,
    /// Ways of building; the first is what the others are compared with.
    pub configurations: Vec<Configuration>,
    /// Where the figures go.
    pub json: PathBuf,
    /// Calls, faults, loading.
    pub calls: bool,
    /// Workloads.
    pub workloads: bool,
    /// Instructions of workloads.
    pub instructions: bool,
}

/// Reads the command line.
pub fn parse(args: impl Iterator<Item = String>) -> Result<Command, String> {
    let (mut json, mut docs) = (PathBuf::from("build/bench.json"), PathBuf::from("docs"));
    let (mut runs, mut quick, mut smoke) = (None, false, false);
    let (mut calls, mut workloads, mut instructions) = (true, true, false);
    let (mut only, mut configurations, mut report) = (Vec::new(), None, false);
    let mut args = args.peekable();
    if args.peek().is_some_and(|a| a == "report") {
        report = true;
        args.next();
    }
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value\n{USAGE}"));
        match arg.as_str() {
            "--json" => json = value()?.into(),
            "--docs" if report => docs = value()?.into(),
            "--help" | "-h" => return Ok(Command::Help),
            _ if report => return Err(format!("report has no option '{arg}'\n{USAGE}")),
            "--quick" => quick = true,
            "--smoke" => smoke = true,
            "--runs" => {
                let number = value()?.parse().ok().filter(|n| *n > 0);
                runs = Some(number.ok_or("--runs needs a number above 0")?);
            }
            "--only" => only = value()?.split(',').map(str::to_owned).collect(),
            "--configs" => {
                let list: Result<Vec<_>, _> = value()?.split(',').map(Configuration::named).collect();
                configurations = Some(list?);
            }
            "--instructions" => instructions = true,
            "--no-calls" => calls = false,
            "--no-workloads" => workloads = false,
            _ => return Err(format!("no option '{arg}'\n{USAGE}")),
        }
    }
    if report {
        return Ok(Command::Report { json, docs });
    }
    let few = quick || smoke;
    if smoke && only.is_empty() {
        only = ["fib", "interpreter", "scene", "containers", "zlib"]
            .map(str::to_owned)
            .to_vec();
    }
    Ok(Command::Run(Options {
        runs: runs.unwrap_or(if smoke {
            1
        } else if quick {
            3
        } else {
            5
        }),
        quick: few,
        smoke,
        only,
        configurations: configurations.unwrap_or_else(|| {
            DEFAULT[..if smoke {
                5
            } else if quick {
                4
            } else {
                7
            }]
                .to_vec()
        }),
        json,
        calls,
        workloads,
        instructions,
    }))
}

#[cfg(test)]
mod tests {
    use super::{Command, parse};

    fn words(line: &str) -> impl Iterator<Item = String> {
        line.split_whitespace().map(str::to_owned)
    }

    #[test]
    fn lists_and_numbers_are_read() {
        let Ok(Command::Run(o)) = parse(words(
            "--runs 2 --only fib,zlib --configs native,wasmtime --json x",
        )) else {
            panic!("not accepted")
        };
        assert_eq!((o.runs, o.only.len(), o.configurations.len()), (2, 2, 2));
        assert_eq!(o.json.to_str(), Some("x"));
    }

    #[test]
    fn mistakes_are_told() {
        for line in [
            "--runs 0",
            "--runs",
            "--configs fast",
            "--fast",
            "report --quick",
            "--docs x",
        ] {
            assert!(parse(words(line)).is_err(), "{line}");
        }
    }
}
