//! Faults, natively, fenced and with rights to words: built, run, and what became of them.

use crate::kinds::Mutation;
use crate::pause::steady;
use crate::server::Desk;
use crate::subject::Subject;
use crate::told::{ENDED, Outcome, PROCESSOR, Told, bound, serve};
use crate::way::{WAYS, Way};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A fault and what became of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Trial {
    /// What it was drawn from.
    pub seed: u64,
    /// Its number.
    pub number: u64,
    /// The subject.
    pub subject: String,
    /// The fault.
    pub mutation: Mutation,
    /// Linked with the host.
    pub native: Told,
    /// Behind the fence.
    pub fenced: Told,
    /// With rights to words, if the subject can be had so.
    pub words: Option<Told>,
}

/// Tries faults that share their builds, each under its number in the list, from 1: what became of it each way.
///
/// # Errors
/// What has nothing to do with the faults.
pub fn run(
    subject: &Subject,
    faults: &[Mutation],
    desk: &mut Desk,
) -> Result<Vec<[Option<Told>; WAYS.len()]>, String> {
    let numbered: Vec<_> = faults.iter().enumerate().map(|(n, f)| (n + 1, f)).collect();
    let mut told: Vec<[Option<Told>; WAYS.len()]> =
        faults.iter().map(|_| [const { None }; WAYS.len()]).collect();
    let directory = desk.directory().to_path_buf();
    for way in subject.plan.ways() {
        for (part, built) in build(subject, &numbered, &directory, way) {
            for (number, _) in part {
                told[number - 1][way as usize] = Some(match &built {
                    Err(why) => refused(why.lines().last().unwrap_or_default()),
                    Ok(program) => steady(|| ask(subject, program, desk, (way, number)))?,
                });
            }
            if let Ok(program) = built {
                let _ = std::fs::remove_file(program);
            }
        }
    }
    Ok(told)
}

/// One of them, each way.
fn ask(
    subject: &Subject,
    program: &Path,
    desk: &mut Desk,
    (way, fault): (Way, usize),
) -> Result<Told, String> {
    if let Some(server) = subject.plan.server {
        return desk.ask(&subject.place, &subject.answers, server, program, (way, fault));
    }
    let directory = desk.directory().to_path_buf();
    let mut command = subject.command(program, &directory, way, fault)?;
    let seconds = match way {
        Way::Native => {
            bound(&mut command);
            PROCESSOR
        }
        Way::Fenced | Way::Words => PROCESSOR + ENDED,
    };
    let told = serve(&mut command, seconds)?;
    let whole = subject.whole(&directory);
    Ok(Told { whole, ..told })
}

type Part<'a> = Vec<(usize, &'a Mutation)>;

/// Builds of all these faults: one, or where something refuses that, one for each half, until what is refused is alone.
fn build<'a>(
    subject: &Subject,
    faults: &[(usize, &'a Mutation)],
    directory: &Path,
    way: Way,
) -> Vec<(Part<'a>, Result<PathBuf, String>)> {
    match subject.build(faults, directory, way) {
        Err(_) if faults.len() > 1 => {
            let (a, b) = faults.split_at(faults.len() / 2);
            let mut parts = build(subject, a, directory, way);
            parts.extend(build(subject, b, directory, way));
            parts
        }
        built => vec![(faults.to_vec(), built)],
    }
}

fn refused(why: &str) -> Told {
    Told {
        outcome: Outcome::Refused,
        propagated: false,
        symptom: why.into(),
        recovered: Vec::new(),
        whole: None,
    }
}
