//! A run: faults are drawn, tried in batches that share a build, and written down as they are done.

use crate::draw::{Urn, draw};
use crate::keep::Room;
use crate::kinds::{Kind, Mutation};
use crate::pause;
use crate::plan::{Judge, Plan, SUBJECTS};
use crate::server::Desk;
use crate::subject::{Subject, Unready, e2fsck};
use crate::table;
use crate::told::{Outcome, Told};
use crate::trial::{self, Trial};
use crate::way::Places;
use indicatif::{ProgressBar, ProgressStyle};
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Faults that share a build.
const BATCH: usize = 64;
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

/// Faults of one subject, with their numbers.
struct Batch<'a> {
    subject: &'a Subject,
    faults: Vec<(u64, Mutation)>,
}

/// The plans that were asked for, each with what keeps it from being run here.
fn plans(names: &[String]) -> Result<Vec<(&'static Plan, Option<String>)>, String> {
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
    let able = wanted.map(|s| {
        let why = match (s.judge, s.server) {
            (Some(Judge::E2fsck), _) if e2fsck().is_none() => {
                Some("there is no e2fsck; scripts/setup.sh test installs e2fsprogs".into())
            }
            (_, Some(server)) => server.there().err(),
            _ => None,
        };
        (s, why)
    });
    Ok(able.collect())
}

/// What becomes of a subject whose source or server is not here: it is left out visibly, and nothing may be where `CI` is `true`.
fn left_out(name: &str, why: &str, ci: Option<&str>) -> Result<(), String> {
    match ci {
        Some("true") => Err(format!("{name} would be left out, which CI forbids: {why}")),
        _ => {
            println!("lab: {name} is left out: {why}");
            Ok(())
        }
    }
}

/// Builds the subjects, some at a time; the first plans take longest.
fn prepare(order: &Order<'_>, places: &Places) -> Result<Vec<Subject>, String> {
    let plans = plans(order.subjects)?;
    let ready = ProgressBar::new(plans.len() as u64);
    ready.set_style(ProgressStyle::with_template("building {msg} {pos}/{len}").map_err(|e| e.to_string())?);
    let next = AtomicUsize::new(0);
    let done: Vec<Mutex<Option<Result<Subject, Unready>>>> = plans.iter().map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for _ in 0..order.jobs {
            scope.spawn(|| {
                while let Some(at) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&at| at < plans.len())
                {
                    let (plan, why) = &plans[at];
                    ready.set_message(plan.name);
                    let subject = match why {
                        Some(why) => Err(Unready::Missing(why.clone())),
                        None => Subject::prepare(plan, places),
                    };
                    if let Ok(mut done) = done[at].lock() {
                        *done = Some(subject);
                    }
                    ready.inc(1);
                }
            });
        }
    });
    ready.finish_and_clear();
    let ci = std::env::var("CI").ok();
    let mut subjects = Vec::new();
    for ((plan, _), done) in plans.iter().zip(done) {
        let done = done.into_inner().map_err(|e| e.to_string())?;
        let mut subject = match done.ok_or_else(|| format!("{}: it was not built", plan.name))? {
            Ok(subject) => subject,
            Err(Unready::Broken(why)) => return Err(why),
            Err(Unready::Missing(why)) => {
                left_out(plan.name, &why, ci.as_deref())?;
                continue;
            }
        };
        if !order.kinds.is_empty() {
            subject.kinds.retain(|k| order.kinds.contains(k));
        }
        match subject.kinds.is_empty() {
            true => println!("lab: {} has no place for these types of faults", plan.name),
            false => subjects.push(subject),
        }
    }
    match subjects.is_empty() {
        true => Err("nothing is left to be tried".into()),
        false => Ok(subjects),
    }
}

/// Whether the host survived all of them behind the fence.
///
/// # Errors
/// What has nothing to do with the faults.
pub fn run(order: &Order<'_>, places: &Places) -> Result<bool, String> {
    pause::watch();
    let subjects = prepare(order, places)?;
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
    let room = Room::new(&places.rooms())?;
    for (at, subject) in subjects.iter().enumerate() {
        let name = subject.plan.name;
        let urn = Urn::new(&subject.units, &subject.lines, &subject.kinds);
        let drawn = draw(&urn, order.seed, share(at), room.path())?;
        let number = drawn.iter().filter(|d| d.is_some()).count();
        if number < drawn.len() {
            println!("lab: {name} has place for {number} different faults only");
        }
        let numbered = (0..).zip(drawn).filter_map(|(n, d)| Some((n, d?)));
        let left: Vec<(u64, Mutation)> = numbered.filter(|(n, _)| !there.contains(&(name, *n))).collect();
        let own = left.chunks(BATCH).map(|faults| Batch {
            subject,
            faults: faults.to_vec(),
        });
        batches.push(own.collect());
    }
    drop(room);
    let file = OpenOptions::new().create(true).append(true).open(results);
    let file = Mutex::new(file.map_err(|e| format!("{}: {e}", results.display()))?);
    let left: usize = batches.iter().flatten().map(|b| b.faults.len()).sum();
    let bar = ProgressBar::new((there.len() + left) as u64).with_position(there.len() as u64);
    bar.set_style(ProgressStyle::with_template("{pos}/{len} {wide_bar} {eta}").map_err(|e| e.to_string())?);
    work(order, places, &in_turn(batches), &file, &bar)?;
    bar.finish_and_clear();
    let trials: Vec<Trial> = crate::read(results)?.into_iter().filter(mine).collect();
    print!("{}", table::render(&trials));
    match pause::again() {
        0 => {}
        n => println!("lab: {n} trials were made again, because the machine stood still meanwhile"),
    }
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
        for _ in 0..order.jobs {
            scope.spawn(|| {
                let work = || -> Result<(), String> {
                    let mut desk = Desk::new(&places.rooms())?;
                    while let Some(batch) = batches.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let trials = tried(order.seed, batch, &mut desk)?;
                        let lines = trials
                            .iter()
                            .map(serde_json::to_string)
                            .collect::<Result<Vec<_>, _>>();
                        let mut file = file.lock().map_err(|e| e.to_string())?;
                        for line in lines.map_err(|e| e.to_string())? {
                            writeln!(file, "{line}")
                                .map_err(|e| format!("{}: {e}", order.results.display()))?;
                        }
                        bar.inc(batch.faults.len() as u64);
                    }
                    Ok(())
                };
                if let (Err(why), Ok(mut first)) = (work(), failed.lock()) {
                    next.store(batches.len(), Ordering::Relaxed);
                    first.get_or_insert(why);
                }
            });
        }
    });
    match failed.into_inner().map_err(|e| e.to_string())? {
        Some(why) => Err(why),
        None => Ok(()),
    }
}

/// Tries a batch's faults.
fn tried(seed: u64, batch: &Batch<'_>, desk: &mut Desk) -> Result<Vec<Trial>, String> {
    let subject = batch.subject;
    let (numbers, faults): (Vec<u64>, Vec<Mutation>) = batch.faults.iter().cloned().unzip();
    let told = trial::run(subject, &faults, desk)?;
    let mut trials = Vec::new();
    for ((number, mutation), told) in numbers.into_iter().zip(faults).zip(told) {
        let [Some(native), Some(fenced), words] = told else {
            return Err("a fault was not tried".into());
        };
        trials.push(Trial {
            seed,
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_subject_is_left_out_but_not_where_nothing_may_be() {
        assert!(left_out("zlib", "no source", None).is_ok());
        assert!(left_out("zlib", "no source", Some("false")).is_ok());
        let refused = left_out("zlib", "no source", Some("true")).expect_err("in CI");
        assert!(refused.contains("zlib") && refused.contains("no source"));
    }

    #[test]
    fn a_missing_source_is_told_from_what_does_not_build() {
        let root = std::env::temp_dir().join(format!("lab-missing-{}", std::process::id()));
        let script = |name: &str, text: &str| {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().expect("one")).expect("made");
            std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("written");
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("set");
        };
        script("ringfence", "echo compile: -O2");
        script("modules/make.sh", "echo no network >&2; exit 1");
        let places = Places {
            ringfence: root.join("ringfence"),
            out: root.join("out"),
            root: root.clone(),
        };
        let why = |plan: &'static Plan| Subject::prepare(plan, &places).err().expect("not ready");
        let Unready::Missing(said) = why(&SUBJECTS[0]) else {
            panic!("a source that cannot be fetched is not missing");
        };
        assert!(said.contains("no network"));
        script("modules/make.sh", "[ $1 = sources ] && echo group zlib");
        assert!(matches!(why(&SUBJECTS[0]), Unready::Broken(_)));
        let _ = std::fs::remove_dir_all(root);
    }
}
