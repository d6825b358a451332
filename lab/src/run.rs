//! A run: faults are drawn, tried in batches that share a build, and written down as they are done.

use crate::kinds::{Kind, Mutation};
use crate::plan::{Judge, Plan, SUBJECTS};
use crate::server::Desk;
use crate::subject::{Subject, e2fsck};
use crate::table;
use crate::told::{Outcome, Told};
use crate::trial::{self, Trial};
use crate::way::Places;
use indicatif::{ProgressBar, ProgressStyle};
use ringfence_attack::rng::Rng;
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Faults that share a build.
const BATCH: usize = 64;
/// How often one is drawn anew that is no instruction.
const DRAWS: usize = 20;

/// What is to be run.
pub struct Order<'a> {
    /// How many, over all subjects.
    pub mutants: u64,
    /// What they are drawn from.
    pub seed: u64,
    /// How many batches at a time.
    pub jobs: usize,
    /// Only these subjects; all, if none.
    pub subjects: &'a [String],
    /// Only these types of faults; all, if none.
    pub kinds: &'a [Kind],
    /// The results.
    pub results: &'a Path,
}

/// Faults of one subject, by their numbers.
struct Batch<'a> {
    subject: &'a Subject,
    numbers: Vec<u64>,
}

/// The plans that were asked for and can be run here.
fn plans(names: &[String]) -> Result<Vec<&'static Plan>, String> {
    let known: Vec<_> = SUBJECTS.iter().map(|s| s.name).collect();
    if let Some(unknown) = names.iter().find(|n| !known.contains(&n.as_str())) {
        return Err(format!(
            "there is no subject {unknown}; there are {}",
            known.join(", ")
        ));
    }
    let wanted = SUBJECTS
        .iter()
        .filter(|s| names.is_empty() || names.iter().any(|n| n == s.name));
    let able = wanted.filter(|s| {
        let why = match (s.judge, s.server) {
            (Some(Judge::E2fsck), _) if e2fsck().is_none() => {
                "there is no e2fsck; scripts/setup.sh test installs e2fsprogs".into()
            }
            (_, Some(server)) => server.there().err().unwrap_or_default(),
            _ => String::new(),
        };
        if !why.is_empty() {
            println!("lab: {} is left out: {why}", s.name);
        }
        why.is_empty()
    });
    Ok(able.collect())
}

/// Whether the host survived all of them behind the fence.
///
/// # Errors
/// What has nothing to do with the faults.
pub fn run(order: &Order<'_>, places: &Places) -> Result<bool, String> {
    let plans = plans(order.subjects)?;
    let mut subjects = Vec::new();
    let ready = ProgressBar::new(plans.len() as u64);
    ready.set_style(ProgressStyle::with_template("building {msg} {pos}/{len}").map_err(|e| e.to_string())?);
    for plan in &plans {
        ready.set_message(plan.name);
        let mut subject = Subject::prepare(plan, places)?;
        if !order.kinds.is_empty() {
            subject.kinds.retain(|k| order.kinds.contains(k));
        }
        match subject.kinds.is_empty() {
            true => println!("lab: {} has no place for these types of faults", plan.name),
            false => subjects.push(subject),
        }
        ready.inc(1);
    }
    ready.finish_and_clear();
    if subjects.is_empty() {
        return Err("nothing is left to be tried".into());
    }
    let results = order.results;
    std::fs::create_dir_all(results.parent().unwrap_or(Path::new("."))).map_err(|e| e.to_string())?;
    let share = |at: usize| {
        let (all, at) = (subjects.len() as u64, at as u64);
        order.mutants / all + u64::from(at < order.mutants % all)
    };
    let mine = |t: &Trial| {
        let at = subjects.iter().position(|s| s.plan.name == t.subject);
        t.seed == order.seed && at.is_some_and(|at| t.number < share(at))
    };
    let before = match results.exists() {
        true => crate::read(results)?,
        false => Vec::new(),
    };
    let there: BTreeSet<(&str, u64)> = before
        .iter()
        .filter(|t| mine(t))
        .map(|t| (t.subject.as_str(), t.number))
        .collect();
    let mut batches: Vec<Vec<Batch<'_>>> = Vec::new();
    for (at, subject) in subjects.iter().enumerate() {
        let left = (0..share(at)).filter(|&n| !there.contains(&(subject.plan.name, n)));
        let left: Vec<u64> = left.collect();
        let own = left.chunks(BATCH).map(|numbers| Batch {
            subject,
            numbers: numbers.to_vec(),
        });
        batches.push(own.collect());
    }
    let file = OpenOptions::new().create(true).append(true).open(results);
    let file = Mutex::new(file.map_err(|e| format!("{}: {e}", results.display()))?);
    let bar = ProgressBar::new((0..subjects.len()).map(share).sum()).with_position(there.len() as u64);
    bar.set_style(ProgressStyle::with_template("{pos}/{len} {wide_bar} {eta}").map_err(|e| e.to_string())?);
    work(order, places, &in_turn(batches), &file, &bar)?;
    bar.finish_and_clear();
    let trials: Vec<Trial> = crate::read(results)?.into_iter().filter(mine).collect();
    print!("{}", table::render(&trials));
    Ok(judge(&trials))
}

/// One of each subject's, and again, so that a run that is ended early has tried all of them alike.
fn in_turn(of: Vec<Vec<Batch<'_>>>) -> Vec<Batch<'_>> {
    let mut of: Vec<_> = of.into_iter().map(Vec::into_iter).collect();
    let mut all = Vec::new();
    loop {
        let before = all.len();
        all.extend(of.iter_mut().filter_map(Iterator::next));
        if all.len() == before {
            return all;
        }
    }
}

/// Tries all batches, some at a time.
fn work(
    order: &Order<'_>,
    places: &Places,
    batches: &[Batch<'_>],
    file: &Mutex<File>,
    bar: &ProgressBar,
) -> Result<(), String> {
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(None));
    std::thread::scope(|scope| {
        for job in 0..order.jobs {
            let (next, failed) = (&next, &failed);
            // Runs beside each other have directories of their own.
            let directory = places.out.join(format!("job-{}-{job}", std::process::id()));
            scope.spawn(move || {
                let work = || -> Result<(), String> {
                    let mut desk = Desk::new(directory.clone())?;
                    while let Some(batch) = batches.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let trials = tried(order, batch, &mut desk)?;
                        let lines = trials
                            .iter()
                            .map(serde_json::to_string)
                            .collect::<Result<Vec<_>, _>>();
                        let mut file = file.lock().map_err(|e| e.to_string())?;
                        for line in lines.map_err(|e| e.to_string())? {
                            writeln!(file, "{line}")
                                .map_err(|e| format!("{}: {e}", order.results.display()))?;
                        }
                        bar.inc(batch.numbers.len() as u64);
                    }
                    Ok(())
                };
                if let (Err(why), Ok(mut first)) = (work(), failed.lock()) {
                    next.store(batches.len(), Ordering::Relaxed);
                    first.get_or_insert(why);
                }
                let _ = std::fs::remove_dir_all(&directory);
            });
        }
    });
    match failed.into_inner().map_err(|e| e.to_string())? {
        Some(why) => Err(why),
        None => Ok(()),
    }
}

/// Draws a batch's faults and tries them.
fn tried(order: &Order<'_>, batch: &Batch<'_>, desk: &mut Desk) -> Result<Vec<Trial>, String> {
    let subject = batch.subject;
    let mut random: Vec<Rng> = batch
        .numbers
        .iter()
        .map(|n| Rng::new(order.seed.wrapping_mul(0x1_0000_0000).wrapping_add(*n)))
        .collect();
    let mut drawn: Vec<Option<Mutation>> = batch.numbers.iter().map(|_| None).collect();
    let mut left: Vec<usize> = (0..drawn.len()).collect();
    for _ in 0..DRAWS {
        for &at in &left {
            let kind = subject.kinds[batch.numbers[at] as usize % subject.kinds.len()];
            drawn[at] = Mutation::choose(kind, &subject.units, &subject.lines, &mut random[at]);
        }
        let texts: Vec<&[String]> = drawn
            .iter()
            .map(|d| d.as_ref().map_or(&[][..], |d| &d.now))
            .collect();
        left = subject.senseless(&texts, &desk.directory)?;
        if left.is_empty() {
            break;
        }
    }
    for at in left {
        drawn[at] = None;
    }
    let (numbers, faults): (Vec<u64>, Vec<Mutation>) = batch
        .numbers
        .iter()
        .zip(drawn)
        .filter_map(|(n, d)| Some((*n, d?)))
        .unzip();
    let told = trial::run(subject, &faults, desk)?;
    let mut trials = Vec::new();
    for ((number, mutation), told) in numbers.into_iter().zip(faults).zip(told) {
        let [Some(native), Some(fenced), words] = told else {
            return Err("a fault was not tried".into());
        };
        trials.push(Trial {
            seed: order.seed,
            number,
            subject: subject.plan.name.into(),
            mutation,
            native,
            fenced,
            words,
        });
    }
    Ok(trials)
}

/// Names what was lost behind the fence; whether that is nothing.
fn judge(trials: &[Trial]) -> bool {
    let lost = |t: &Told| matches!(t.outcome, Outcome::Crashed | Outcome::Hung | Outcome::Harmed);
    let behind = |t: &Trial| {
        let both = [Some(&t.fenced), t.words.as_ref()];
        both.into_iter().flatten().find(|t| lost(t)).cloned()
    };
    let lost: Vec<_> = trials.iter().filter_map(|t| Some((t, behind(t)?))).collect();
    for (t, told) in &lost {
        println!(
            "LOST behind the fence: seed {}, {} {}: {} in {}.s, line {}: {} became {:?}; {}",
            t.seed,
            t.subject,
            t.number,
            t.mutation.kind.name(),
            t.mutation.unit,
            t.mutation.line + 1,
            t.mutation.was,
            t.mutation.now,
            told.symptom
        );
    }
    println!("lab: {} passed, {} failed", trials.len() - lost.len(), lost.len());
    lost.is_empty() && !trials.is_empty()
}
