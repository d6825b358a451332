//! `lab`: puts faults into libraries, one at a time, and tells what became of the host: natively, fenced, and with rights to words.

mod coverage;
mod draw;
mod family;
mod keep;
mod kinds;
mod library;
mod pause;
mod plan;
mod run;
mod server;
mod subject;
mod table;
mod text;
mod told;
mod trial;
mod way;

use crate::kinds::Kind;
use crate::run::Order;
use crate::trial::Trial;
use crate::way::Places;
use clap::{Parser, Subcommand};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Puts faults into libraries, one at a time, and tells what became of the host: natively, fenced, and with rights to words.
#[derive(Parser)]
struct Command {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Tries faults and prints the tables; goes on where an earlier run with the same seed and file ended.
    Run {
        /// How many.
        #[arg(long, default_value_t = 280)]
        mutants: u64,
        /// What they are drawn from.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// How many at a time (default: one for each processor).
        #[arg(long)]
        jobs: Option<usize>,
        /// Only these subjects.
        #[arg(long, value_delimiter = ',')]
        subject: Vec<String>,
        /// Only these types of faults.
        #[arg(long, value_delimiter = ',')]
        kind: Vec<Kind>,
        /// Begin anew: forget the results that are there.
        #[arg(long)]
        again: bool,
        /// The results: a line of JSON for each.
        #[arg(long, default_value = "build/lab/results.jsonl")]
        results: PathBuf,
    },
    /// Waits until its input ends, ends what works in a directory then, and removes that. Not for people.
    #[command(hide = true)]
    Keep {
        /// The directory.
        room: PathBuf,
    },
    /// Prints the tables of a file of results.
    Table {
        /// The file.
        #[arg(default_value = "build/lab/results.jsonl")]
        results: PathBuf,
    },
}

fn main() -> ExitCode {
    let done = match Command::parse().what {
        What::Run {
            mutants,
            seed,
            jobs,
            subject,
            kind,
            again,
            results,
        } => forget(again, &results).and_then(|()| {
            let jobs = jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
            let order = Order {
                mutants,
                seed,
                jobs,
                subjects: &subject,
                kinds: &kind,
                results: &results,
            };
            run::run(&order, &places()?)
        }),
        What::Keep { room } => keep::keep(&room).map(|()| true),
        What::Table { results } => read(&results).map(|trials| {
            print!("{}", table::render(&trials));
            true
        }),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("lab: {why}");
            ExitCode::from(2)
        }
    }
}

/// Results that are there. A line that was cut when a run was ended is left out.
fn read(results: &Path) -> Result<Vec<Trial>, String> {
    let file = File::open(results).map_err(|e| format!("{}: {e}; `lab run` makes it", results.display()))?;
    let lines = BufReader::new(file).lines().map_while(Result::ok);
    Ok(lines.filter_map(|l| serde_json::from_str(&l).ok()).collect())
}

fn forget(again: bool, results: &Path) -> Result<(), String> {
    match again && results.exists() {
        true => std::fs::remove_file(results).map_err(|e| format!("{}: {e}", results.display())),
        false => Ok(()),
    }
}

fn places() -> Result<Places, String> {
    let root = std::env::current_dir().map_err(|e| e.to_string())?;
    if !root.join("lab/subjects").is_dir() {
        return Err("run it from the top of the repository (lab/run.sh does)".into());
    }
    let ringfence =
        std::env::var_os("RINGFENCE").map_or_else(|| root.join("target/release/ringfence"), PathBuf::from);
    if !ringfence.is_file() {
        return Err(format!(
            "there is no {}: `make build`, or set RINGFENCE",
            ringfence.display()
        ));
    }
    let out = root.join("build/lab");
    Ok(Places { root, ringfence, out })
}
