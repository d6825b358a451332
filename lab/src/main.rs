//! `lab`: puts faults into libraries, one at a time, and tells what became of the host: natively, fenced, and with rights to words.

mod coverage;
mod kinds;
mod subject;
mod table;
mod text;
mod trial;

use crate::kinds::{KINDS, Kind, Mutation};
use crate::subject::{Places, SUBJECTS, Subject};
use crate::trial::{Outcome, Told, Trial};
use clap::{Parser, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use ringfence_attack::rng::Rng;
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

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
        } => forget(again, &results).and_then(|()| run(mutants, seed, jobs, &subject, &kind, &results)),
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

/// Whether the host survived all of them behind the fence.
fn run(
    mutants: u64,
    seed: u64,
    jobs: Option<usize>,
    names: &[String],
    kinds: &[Kind],
    results: &Path,
) -> Result<bool, String> {
    let places = places()?;
    let known = SUBJECTS.iter().map(|s| s.name).collect::<Vec<_>>();
    if let Some(unknown) = names.iter().find(|n| !known.contains(&n.as_str())) {
        return Err(format!(
            "there is no subject {unknown}; there are {}",
            known.join(", ")
        ));
    }
    let wanted = SUBJECTS
        .iter()
        .filter(|s| names.is_empty() || names.iter().any(|n| n == s.name));
    let subjects = wanted
        .map(|plan| Subject::prepare(plan, &places))
        .collect::<Result<Vec<_>, _>>()?;
    let kinds = if kinds.is_empty() { &KINDS[..] } else { kinds };
    std::fs::create_dir_all(results.parent().unwrap_or(Path::new("."))).map_err(|e| e.to_string())?;
    let mine = |t: &Trial| t.seed == seed && t.number < mutants;
    let before: Vec<Trial> = if results.exists() {
        read(results)?
    } else {
        Vec::new()
    };
    let there: BTreeSet<u64> = before.iter().filter(|t| mine(t)).map(|t| t.number).collect();
    let file = OpenOptions::new().create(true).append(true).open(results);
    let file = Mutex::new(file.map_err(|e| format!("{}: {e}", results.display()))?);

    let bar = ProgressBar::new(mutants).with_position(there.len() as u64);
    bar.set_style(ProgressStyle::with_template("{pos}/{len} {wide_bar} {eta}").map_err(|e| e.to_string())?);
    let (next, failed) = (AtomicU64::new(0), Mutex::new(None));
    let jobs = jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let one = |number: u64, directory: &Path| -> Result<(), String> {
        let subject = &subjects[(number % subjects.len() as u64) as usize];
        let kind = kinds[(number / subjects.len() as u64) as usize % kinds.len()];
        let mut rng = Rng::new(seed.wrapping_mul(0x1_0000_0000).wrapping_add(number));
        // Some are no instruction; some subjects have no place for a type.
        for _ in 0..20 {
            let Some(mutation) = Mutation::choose(kind, &subject.units, &subject.lines, &mut rng) else {
                break;
            };
            if let Some([native, fenced, words]) = trial::run(subject, &mutation, directory)? {
                let trial = Trial {
                    seed,
                    number,
                    subject: subject.plan.name.into(),
                    mutation,
                    native,
                    fenced,
                    words: Some(words),
                };
                let line = serde_json::to_string(&trial).map_err(|e| e.to_string())?;
                let mut file = file.lock().map_err(|e| e.to_string())?;
                writeln!(file, "{line}").map_err(|e| format!("{}: {e}", results.display()))?;
                break;
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        for job in 0..jobs {
            let (one, next, failed, there, bar) = (&one, &next, &failed, &there, &bar);
            let directory = places.out.join(format!("job-{job}"));
            scope.spawn(move || {
                let made =
                    std::fs::create_dir_all(&directory).map_err(|e| format!("{}: {e}", directory.display()));
                let work = || loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= mutants {
                        return Ok(());
                    }
                    if !there.contains(&number) {
                        one(number, &directory)?;
                        bar.inc(1);
                    }
                };
                if let (Err(why), Ok(mut first)) = (made.and_then(|()| work()), failed.lock()) {
                    next.store(mutants, Ordering::Relaxed);
                    first.get_or_insert(why);
                }
            });
        }
    });
    bar.finish_and_clear();
    if let Some(why) = failed.into_inner().map_err(|e| e.to_string())? {
        return Err(why);
    }
    let trials: Vec<Trial> = read(results)?.into_iter().filter(mine).collect();
    print!("{}", table::render(&trials));
    let lost = |t: &Told| matches!(t.outcome, Outcome::Crashed | Outcome::Hung | Outcome::Harmed);
    let behind = |t: &Trial| {
        [Some(&t.fenced), t.words.as_ref()]
            .into_iter()
            .flatten()
            .find(|t| lost(t))
            .cloned()
    };
    let lost: Vec<_> = trials.iter().filter_map(|t| Some((t, behind(t)?))).collect();
    for (t, told) in &lost {
        println!(
            "LOST behind the fence: seed {seed}, number {}: {} in {}.s, line {}: {} became {:?}; {}",
            t.number,
            t.mutation.kind.name(),
            t.mutation.unit,
            t.mutation.line + 1,
            t.mutation.was,
            t.mutation.now,
            told.symptom
        );
    }
    let lost = lost.len();
    println!("lab: {} passed, {lost} failed", trials.len() - lost);
    Ok(lost == 0 && !trials.is_empty())
}
