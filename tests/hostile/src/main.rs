//! `hostile`: hunts for a time, or repeats a case.

use ringfence_attack::rng::Rng;
use ringfence_hostile::case::Case;
use ringfence_hostile::{KINDS, Kind, children, kind, table, was_tried};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const USAGE: &str = "\
hostile [--kind KIND] [--seconds N] [--cases N] [--seed N]
    tries what was kept, then random cases, of one kind or of all, for so long or so many
hostile try KIND 'CASE'
    tries one case
hostile show KIND [--seed N] [--cases N]
    prints the cases of a seed
hostile table [--smoke] [--json FILE] [--speed PROGRAM MODULE] [--base PROGRAM MODULE]
    measures the bounds: target beside figure (make bench-bounds); the programs are paired_cost of this
    and of an earlier revision";

struct Options {
    kind: Option<&'static Kind>,
    seconds: u64,
    cases: u64,
    seed: u64,
}

fn options(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options {
        kind: None,
        seconds: 10,
        cases: u64::MAX,
        seed: 1,
    };
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
        let number = || value.parse().map_err(|_| format!("{name} needs a number"));
        match name.as_str() {
            "--kind" => options.kind = Some(kind(&value).ok_or_else(|| format!("no kind {value}"))?),
            "--seconds" => options.seconds = number()?,
            "--cases" => options.cases = number()?,
            "--seed" => options.seed = number()?,
            _ => return Err(format!("unknown option {name}")),
        }
    }
    Ok(options)
}

fn main() -> ExitCode {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let named = |at: usize| arguments.get(at).and_then(|name| kind(name));
    match (arguments.first().map(String::as_str), named(1)) {
        (Some("child"), Some(kind)) => {
            children::serve(kind);
            ExitCode::SUCCESS
        }
        (Some("try"), Some(kind)) => {
            let case = arguments.get(2).map(String::as_str).unwrap_or_default();
            let told = Case::parse(case, kind.shapes).map(|case| children::run(kind, &[case]).remove(0));
            match told {
                Ok(Ok(told)) => println!("{told}"),
                Ok(Err(why)) | Err(why) => {
                    println!("FAILED: {why}");
                    return ExitCode::FAILURE;
                }
            }
            ExitCode::SUCCESS
        }
        (Some("show"), Some(kind)) => {
            let options = match options(arguments.drain(2..)) {
                Ok(options) => options,
                Err(e) => return usage(&e),
            };
            for n in 0..options.cases.min(1000) {
                println!("{}", made(kind, options.seed, n));
            }
            ExitCode::SUCCESS
        }
        (Some("table"), _) => table(&arguments[1..]),
        (Some(word), _) if !word.starts_with("--") => usage("what is that?"),
        _ => match options(arguments.into_iter()) {
            Ok(options) => hunt(&options),
            Err(e) => usage(&e),
        },
    }
}

/// Prints the table; whether all of it holds.
fn table(arguments: &[String]) -> ExitCode {
    let mut options = table::Options::default();
    let mut json = None;
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let mut next = || words.next().cloned();
        let mut program = || {
            let (path, module) = (next()?, next()?);
            Some(table::speed::Program { path, module })
        };
        match word.as_str() {
            "--smoke" => options.smoke = true,
            "--speed" => options.speed = program(),
            "--base" => options.base = program(),
            "--json" => json = next(),
            _ => return usage(&format!("unknown option {word}")),
        }
    }
    let table = match table::measure(&options) {
        Ok(table) => table,
        Err(e) => return usage(&e),
    };
    print!("{table}");
    let failed = table.rows.iter().filter(|r| r.holds == Some(false)).count() + table.failures.len();
    println!(
        "bounds: {} passed, {failed} failed",
        table.rows.len() - failed.min(table.rows.len())
    );
    if let Some(path) = json {
        let text = serde_json::to_string_pretty(&table).map_err(|e| e.to_string());
        if let Err(e) = text.and_then(|t| std::fs::write(&path, t + "\n").map_err(|e| e.to_string())) {
            return usage(&format!("{path}: {e}"));
        }
    }
    match failed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

fn usage(why: &str) -> ExitCode {
    eprintln!("hostile: {why}\n{USAGE}");
    ExitCode::FAILURE
}

/// The `n`th case of a seed.
fn made(kind: &Kind, seed: u64, n: u64) -> Case {
    let mut rng = Rng::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ n);
    Case::random(kind.shapes, kind.most, &mut rng)
}

fn hunt(options: &Options) -> ExitCode {
    let kinds: Vec<&Kind> = match options.kind {
        Some(kind) => vec![kind],
        None => KINDS.iter().collect(),
    };
    let share = Duration::from_secs(options.seconds) / kinds.len().max(1) as u32;
    let (mut passed, mut failed) = (0, 0);
    for kind in kinds {
        let kept = match kind.corpus() {
            Ok(kept) => kept,
            Err(e) => return usage(&e),
        };
        let mut ends = BTreeMap::new();
        // Cases that came to what they are for.
        let tried = Cell::new(0);
        let mut count = |cases: &[Case], ends: &mut BTreeMap<String, u64>| {
            for (case, told) in cases.iter().zip(children::run(kind, cases)) {
                match told {
                    Ok(told) => {
                        passed += 1;
                        tried.set(tried.get() + usize::from(was_tried(&told)));
                        *ends.entry(sort(&told)).or_default() += 1;
                    }
                    Err(why) => {
                        failed += 1;
                        tried.set(tried.get() + 1);
                        tell(kind, case, &why);
                    }
                }
            }
        };
        count(&kept, &mut ends);
        let of_kept = tried.get();
        let end = Instant::now() + share;
        let mut next = 0;
        while Instant::now() < end && next < options.cases {
            let last = options.cases.min(next + kind.batch as u64);
            let cases: Vec<Case> = (next..last).map(|n| made(kind, options.seed, n)).collect();
            count(&cases, &mut ends);
            next = last;
        }
        println!(
            "{}: {} kept, of which {of_kept} were tried, {next} random cases of seed {}, of which {} were",
            kind.name,
            kept.len(),
            options.seed,
            tried.get() - of_kept
        );
        // What every case is refused for finds nothing any more: limits and formats change.
        if of_kept * 4 < kept.len() * 3 || next >= 20 && tried.get() == of_kept {
            failed += 1;
            println!("FAILED {}: too few cases were tried", kind.name);
        }
        for (end, count) in ends {
            println!("  {end}: {count}");
        }
    }
    println!("hostile: {passed} passed, {failed} failed");
    match failed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// What became of it, without the numbers.
fn sort(told: &str) -> String {
    let words = told
        .split_whitespace()
        .filter(|w| !w.contains(|c: char| c.is_ascii_digit()));
    words.take(8).collect::<Vec<_>>().join(" ")
}

/// Says what failed, made smaller, and how to repeat it.
fn tell(kind: &Kind, case: &Case, why: &str) {
    println!("FAILED {}: {why}\n  {case}", kind.name);
    let mut small = case.clone();
    let mut reason = why.to_owned();
    small.shrink(60, |case| {
        match children::run(kind, std::slice::from_ref(case)).remove(0) {
            Ok(_) => false,
            Err(why) => {
                reason = why;
                true
            }
        }
    });
    println!("  smaller: {reason}\n  hostile try {} '{small}'", kind.name);
}
