//! The command line.

use std::path::PathBuf;

use crate::configuration::Configuration;

/// What `--help` prints.
pub const USAGE: &str = "\
usage: bench [--quick] [--runs N] [--minutes N] [--only NAME,…] [--configs NAME,…]
             [--no-calls] [--no-workloads] [--resume] [--json FILE]
       bench words [--runs N] [--smoke]
       bench count [--only NAME,…] [--configs NAME,…] [--counts FILE]
       bench report [--json FILE] [--counts FILE] [--docs DIR]
       bench charts [--docs DIR] FILE…
  --quick           kernels and zlib only, no other engines
  --runs N          at most this many interleaved runs (default 5)
  --minutes N       as few runs, down to three, as it takes to be ready by then (default 37, with --quick 4.5)
  --only NAME,…     only these programs or workloads
  --configs NAME,…  native, executable, aligned, o3, v3, full, full-o3, full-v3, segment, integrity,
                    words, check, wasm2c, wasmtime (default: all but o3, v3, full-o3, full-v3)
  --json FILE       the figures (default build/bench.json), written as they come
  --resume          keeps what that file has and goes on; --configs should be the same
  count             counts the instructions of each workload, over less work, by single steps: no quiet machine needed
  words             what rights to words cost, part by part
  --counts FILE     where the counts are (default build/bench-counts.json)
  --no-calls        workloads only
  --no-workloads    calls, strings and loading only
  --smoke           a thousandth of the work, to see that everything runs; the figures mean nothing
  report            renders the tables and the plots of docs/performance.md from the figures
  charts            draws what other benchmarks left in these files, into their pages (docs/functions-figures.md)";

const DEFAULT: [Configuration; 10] = [
    Configuration::Native,
    Configuration::Executable,
    Configuration::Aligned,
    Configuration::Full,
    Configuration::Segment,
    Configuration::Integrity,
    Configuration::Words,
    Configuration::Check,
    Configuration::Wasm2c,
    Configuration::Wasmtime,
];

/// What instructions are counted in.
const COUNTED: [Configuration; 3] = [
    Configuration::Native,
    Configuration::Full,
    Configuration::Integrity,
];

/// What to do.
pub enum Command {
    /// Measure.
    Run(Options),
    /// Count instructions.
    Count(Options),
    /// Tell what rights to words cost.
    Words {
        /// Interleaved rounds.
        runs: usize,
        /// Hardly any work.
        smoke: bool,
    },
    /// Render.
    Report {
        /// The figures.
        json: PathBuf,
        /// The instructions, if they have been counted.
        counts: PathBuf,
        /// Where the page and its plots are.
        docs: PathBuf,
    },
    /// Draw what other benchmarks left.
    Charts {
        /// What they left.
        files: Vec<PathBuf>,
        /// Where the page and its plots are.
        docs: PathBuf,
    },
    /// Explain.
    Help,
}

/// What to measure, and how.
pub struct Options {
    /// Interleaved rounds, at most.
    pub runs: usize,
    /// How long everything may take.
    pub minutes: f64,
    /// Go on with what the file of figures has.
    pub resume: bool,
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
    /// Where the instructions of workloads go.
    pub counts: PathBuf,
}

/// Reads the command line.
pub fn parse(args: impl Iterator<Item = String>) -> Result<Command, String> {
    let (mut json, mut docs) = (PathBuf::from("build/bench.json"), PathBuf::from("docs"));
    let mut counts = PathBuf::from("build/bench-counts.json");
    let (mut runs, mut minutes, mut quick, mut smoke) = (None, None, false, false);
    let (mut calls, mut workloads, mut resume) = (true, true, false);
    let (mut only, mut configurations) = (Vec::new(), None);
    let mut args = args.peekable();
    let verb = args
        .next_if(|a| matches!(a.as_str(), "report" | "count" | "words" | "charts"))
        .unwrap_or_default();
    if verb == "charts" {
        return charts(args);
    }
    let (report, count) = (verb == "report", verb == "count");
    let rights = verb == "words";
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value\n{USAGE}"));
        match arg.as_str() {
            "--json" if !count && !rights => json = value()?.into(),
            "--counts" if report || count => counts = value()?.into(),
            "--docs" if report => docs = value()?.into(),
            "--help" | "-h" => return Ok(Command::Help),
            _ if report => return Err(format!("report has no option '{arg}'\n{USAGE}")),
            "--only" if !rights => only = value()?.split(',').map(str::to_owned).collect(),
            "--configs" if !rights => {
                let list: Result<Vec<_>, _> = value()?.split(',').map(Configuration::named).collect();
                configurations = Some(list?);
            }
            _ if count => return Err(format!("count has no option '{arg}'\n{USAGE}")),
            "--quick" if !rights => quick = true,
            "--smoke" => smoke = true,
            "--runs" => {
                let number = value()?.parse().ok().filter(|n| *n > 0);
                runs = Some(number.ok_or("--runs needs a number above 0")?);
            }
            "--minutes" if !rights => {
                let number = value()?.parse().ok().filter(|n| *n > 0.0);
                minutes = Some(number.ok_or("--minutes needs a number above 0")?);
            }
            "--resume" if !rights => resume = true,
            "--no-calls" if !rights => calls = false,
            "--no-workloads" if !rights => workloads = false,
            _ => return Err(format!("no option '{arg}'\n{USAGE}")),
        }
    }
    if report {
        return Ok(Command::Report { json, counts, docs });
    }
    if rights {
        let runs = runs.unwrap_or(if smoke { 1 } else { 9 });
        return Ok(Command::Words { runs, smoke });
    }
    let few = quick || smoke;
    if smoke && only.is_empty() {
        only = ["fib", "interpreter", "scene", "containers", "zlib"]
            .map(str::to_owned)
            .to_vec();
    }
    let default = if count {
        &COUNTED[..]
    } else if smoke {
        &DEFAULT[..7]
    } else if quick {
        &DEFAULT[..4]
    } else {
        &DEFAULT
    };
    let options = Options {
        runs: runs.unwrap_or(if smoke { 1 } else { 5 }),
        quick: few,
        smoke,
        only,
        minutes: minutes.unwrap_or(if few { 4.5 } else { 37.0 }),
        resume,
        configurations: configurations.unwrap_or_else(|| default.to_vec()),
        json,
        calls,
        workloads,
        counts,
    };
    Ok(if count {
        Command::Count(options)
    } else {
        Command::Run(options)
    })
}

/// What follows `charts`.
fn charts(mut args: impl Iterator<Item = String>) -> Result<Command, String> {
    let (mut files, mut docs) = (Vec::new(), PathBuf::from("docs"));
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--docs" => docs = args.next().ok_or("--docs needs a value")?.into(),
            "--help" | "-h" => return Ok(Command::Help),
            _ if arg.starts_with('-') => return Err(format!("charts has no option '{arg}'\n{USAGE}")),
            _ => files.push(arg.into()),
        }
    }
    if files.is_empty() {
        return Err(format!("charts needs a file\n{USAGE}"));
    }
    Ok(Command::Charts { files, docs })
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
            "--minutes soon",
            "--counts x",
            "count --runs 3",
            "count --json x",
            "words --only fib",
        ] {
            assert!(parse(words(line)).is_err(), "{line}");
        }
    }
}
