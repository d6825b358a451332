//! What came of all faults, in tables.

use crate::kinds::KINDS;
use crate::plan::SUBJECTS;
use crate::told::{DENIED, OUTCOMES, Outcome, Told};
use crate::trial::Trial;
use crate::way::Way;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The tables in Markdown.
pub fn render(trials: &[Trial]) -> String {
    let mut text = String::new();
    let places = trials.iter().map(|t| {
        let m = &t.mutation;
        (&t.subject, &m.unit, m.line, &m.now)
    });
    let different = places.collect::<BTreeSet<_>>().len();
    let _ = writeln!(
        text,
        "{} faults, each in a line that runs; {different} of them different.\n",
        trials.len()
    );
    outcomes(&mut text, trials);
    kinds(&mut text, trials);
    subjects(&mut text, trials);
    storage(&mut text, trials);
    rights(&mut text, trials);
    symptoms(&mut text, trials);
    text
}

fn header(text: &mut String, first: &str, columns: impl Iterator<Item = &'static str>) {
    let columns: Vec<_> = columns.collect();
    let _ = writeln!(text, "| {first} | {} |", columns.join(" | "));
    let _ = writeln!(text, "|{}", "---|".repeat(columns.len() + 1));
}

/// Both ways beside each other.
fn outcomes(text: &mut String, trials: &[Trial]) {
    header(text, "", OUTCOMES.into_iter().map(Outcome::name));
    for (way, told) in ways() {
        let of = |o| move |t: &&Trial| told(t).is_some_and(|t| t.outcome == o);
        let counts = OUTCOMES.map(|o| trials.iter().filter(of(o)).count().to_string());
        let _ = writeln!(text, "| {way} | {} |", counts.join(" | "));
    }
    text.push('\n');
}

/// A way, and where a trial has what became of it.
type Side = (&'static str, fn(&Trial) -> Option<&Told>);

fn ways() -> [Side; 3] {
    [
        (Way::Native.name(), |t| Some(&t.native)),
        (Way::Fenced.name(), |t| Some(&t.fenced)),
        (Way::Words.name(), |t| t.words.as_ref()),
    ]
}

/// The same for all ways, or their numbers.
fn cell(counts: [usize; 3]) -> String {
    match counts {
        [0, 0, 0] => String::new(),
        counts => counts.map(|n| n.to_string()).join(" / "),
    }
}

/// Type by outcome.
fn kinds(text: &mut String, trials: &[Trial]) {
    header(
        text,
        "type: native / fenced / words",
        OUTCOMES.into_iter().map(Outcome::name),
    );
    for kind in KINDS {
        let of: Vec<_> = trials.iter().filter(|t| t.mutation.kind == kind).collect();
        if of.is_empty() {
            continue;
        }
        let cells = OUTCOMES.map(|o| {
            let has =
                |t: &&&Trial, told: fn(&Trial) -> Option<&Told>| told(t).is_some_and(|t| t.outcome == o);
            cell(ways().map(|(_, told)| of.iter().filter(|t| has(t, told)).count()))
        });
        let _ = writeln!(text, "| {} | {} |", kind.name(), cells.join(" | "));
    }
    text.push('\n');
}

/// The subjects that trials are of, in the order of the plans.
fn present(trials: &[Trial]) -> Vec<&'static str> {
    let names = SUBJECTS.iter().map(|s| s.name);
    names.filter(|n| trials.iter().any(|t| t.subject == *n)).collect()
}

/// Subject by outcome.
fn subjects(text: &mut String, trials: &[Trial]) {
    header(
        text,
        "subject: native / fenced / words",
        OUTCOMES.into_iter().map(Outcome::name),
    );
    for name in present(trials) {
        let of: Vec<_> = trials.iter().filter(|t| t.subject == name).collect();
        let has = |t: &&&Trial, told: fn(&Trial) -> Option<&Told>, o| told(t).is_some_and(|t| t.outcome == o);
        let cells =
            OUTCOMES.map(|o| cell(ways().map(|(_, told)| of.iter().filter(|t| has(t, told, o)).count())));
        let _ = writeln!(text, "| {name} | {} |", cells.join(" | "));
    }
    text.push('\n');
}

/// What was left in the host's storage.
fn storage(text: &mut String, trials: &[Trial]) {
    let kept: Vec<_> = trials.iter().filter(|t| t.native.whole.is_some()).collect();
    if kept.is_empty() {
        return;
    }
    let columns = ["whole", "corrupt", "corrupt, and nothing was noticed"];
    header(text, "storage of the host", columns.into_iter());
    let names = present(trials);
    for name in names {
        for (way, told) in ways() {
            // What was refused at load has written nothing.
            let there = kept.iter().filter(|t| t.subject == name);
            let there: Vec<_> = there
                .filter_map(|t| told(t))
                .filter(|t| t.whole.is_some())
                .collect();
            if there.is_empty() {
                continue;
            }
            let corrupt: Vec<_> = there.iter().filter(|t| t.whole == Some(false)).collect();
            let quiet = |t: &&&&Told| matches!(t.outcome, Outcome::None | Outcome::Wrong);
            let quiet = corrupt.iter().filter(quiet).count();
            let whole = there.len() - corrupt.len();
            let _ = writeln!(text, "| {name}, {way} | {whole} | {} | {quiet} |", corrupt.len());
        }
    }
    text.push('\n');
}

/// What rights to words caught, and how the same faults ended with the fence alone.
fn rights(text: &mut String, trials: &[Trial]) {
    let words = |t: &Trial| t.words.as_ref().map(|w| (w.outcome, w.whole));
    let caught = trials
        .iter()
        .filter(|t| words(t).is_some_and(|(o, _)| o == Outcome::Denied));
    let mut found: BTreeMap<(&str, &str), [usize; 3]> = BTreeMap::new();
    for t in caught {
        let counts = found.entry((&t.subject, t.fenced.outcome.name())).or_default();
        counts[0] += 1;
        counts[1] += usize::from(t.fenced.whole == Some(false));
        counts[2] += usize::from(words(t).is_some_and(|(_, whole)| whole == Some(false)));
    }
    let columns = ["faults", "storage corrupt, fence alone", "storage corrupt, words"];
    header(
        text,
        "caught by rights to words; with the fence alone it ended as",
        columns.into_iter(),
    );
    for ((subject, outcome), counts) in found {
        let _ = writeln!(
            text,
            "| {subject}: {outcome} | {} |",
            counts.map(|n| n.to_string()).join(" | ")
        );
    }
    text.push('\n');
}

/// What was noticed behind the fence, and whether a wrong answer had been given before.
fn symptoms(text: &mut String, trials: &[Trial]) {
    for (way, told) in &ways()[1..] {
        let mut found: BTreeMap<String, [u64; 2]> = BTreeMap::new();
        let caught = trials.iter().filter_map(|t| told(t));
        let caught = caught.filter(|t| matches!(t.outcome, Outcome::Contained | Outcome::Denied));
        let mut recovered: Vec<u64> = Vec::new();
        for told in caught {
            found.entry(symptom(&told.symptom)).or_default()[usize::from(told.propagated)] += 1;
            recovered.extend(&told.recovered);
        }
        let columns = ["caught before a wrong answer", "behind one"];
        header(text, &format!("symptom, {way}"), columns.into_iter());
        for (symptom, [before, behind]) in found {
            let _ = writeln!(text, "| {symptom} | {before} | {behind} |");
        }
        text.push('\n');
        recovered.sort_unstable();
        if let (Some(middle), Some(last)) = (recovered.get(recovered.len() / 2), recovered.last()) {
            let [middle, last] = [*middle, *last].map(|n| n as f64 / 1000.0);
            let _ = writeln!(
                text,
                "The domain was ready again after {middle:.1} µs in the middle, {last:.1} µs at most.\n"
            );
        }
    }
}

/// A message without what differs from one fault to the next: what follows the file's name, up to the first number.
fn symptom(message: &str) -> String {
    // A file's name stands before what happened; a server says first whose function it was.
    let what = message.rsplit(": ").next().unwrap_or(message);
    if what.contains(DENIED) {
        let access = what.split(' ').next().unwrap_or("access");
        return format!("{access} without the right to it");
    }
    let end = what
        .find(|c: char| c.is_ascii_digit() || c == '(')
        .unwrap_or(what.len());
    let what = what[..end].split(" in ").next().unwrap_or_default();
    match what.trim_end().trim_end_matches(" at") {
        "" => "another message".into(),
        what => what.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_of_one_kind_have_one_symptom() {
        assert_eq!(
            symptom("m.rf: bad read at 0x20 in f"),
            symptom("n.rf: bad read at 0x3021 in g")
        );
        assert_eq!(
            symptom("m.rf: write of 8 bytes at 0x10 denied; the domain has no rights there in f"),
            "write without the right to it"
        );
        assert_eq!(symptom("m.rf: abort(0) in abort"), "abort");
        assert_eq!(
            symptom("m.rf: illegal instruction in free"),
            "illegal instruction"
        );
    }
}
