//! What came of all faults, in tables.

use crate::kinds::KINDS;
use crate::trial::{OUTCOMES, Outcome, Told, Trial};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The tables in Markdown.
pub fn render(trials: &[Trial]) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{} faults, each in a line that runs.\n", trials.len());
    outcomes(&mut text, trials);
    kinds(&mut text, trials);
    storage(&mut text, trials);
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
        let counts = OUTCOMES.map(|o| trials.iter().filter(|t| told(t).outcome == o).count().to_string());
        let _ = writeln!(text, "| {way} | {} |", counts.join(" | "));
    }
    text.push('\n');
}

/// Natively or fenced, and where a trial has that.
type Side = (&'static str, fn(&Trial) -> &Told);

fn ways() -> [Side; 2] {
    [("native", |t| &t.native), ("fenced", |t| &t.fenced)]
}

/// Type by outcome: natively / fenced.
fn kinds(text: &mut String, trials: &[Trial]) {
    header(
        text,
        "type: native / fenced",
        OUTCOMES.into_iter().map(Outcome::name),
    );
    for kind in KINDS {
        let of: Vec<_> = trials.iter().filter(|t| t.mutation.kind == kind).collect();
        if of.is_empty() {
            continue;
        }
        let cells = OUTCOMES.map(|o| {
            let [native, fenced] = ways().map(|(_, told)| of.iter().filter(|t| told(t).outcome == o).count());
            if native + fenced == 0 {
                String::new()
            } else {
                format!("{native} / {fenced}")
            }
        });
        let _ = writeln!(text, "| {} | {} |", kind.name(), cells.join(" | "));
    }
    text.push('\n');
}

/// What was left in the host's storage.
fn storage(text: &mut String, trials: &[Trial]) {
    let kept: Vec<_> = trials.iter().filter(|t| t.native.whole.is_some()).collect();
    if kept.is_empty() {
        return;
    }
    header(text, "storage of the host", ["whole", "corrupt"].into_iter());
    for (way, told) in ways() {
        // What was refused at load has written nothing.
        let corrupt = kept.iter().filter(|t| told(t).whole == Some(false)).count();
        let _ = writeln!(text, "| {way} | {} | {corrupt} |", kept.len() - corrupt);
    }
    text.push('\n');
}

/// What the fence noticed, and whether a wrong answer had been given before.
fn symptoms(text: &mut String, trials: &[Trial]) {
    let mut found: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    let caught = trials
        .iter()
        .map(|t| &t.fenced)
        .filter(|t| t.outcome == Outcome::Contained);
    let mut recovered: Vec<u64> = Vec::new();
    for told in caught {
        found.entry(symptom(&told.symptom)).or_default()[usize::from(told.propagated)] += 1;
        recovered.extend(&told.recovered);
    }
    header(
        text,
        "symptom, fenced",
        ["caught before a wrong answer", "behind one"].into_iter(),
    );
    for (symptom, [before, behind]) in found {
        let _ = writeln!(text, "| {symptom} | {before} | {behind} |");
    }
    recovered.sort_unstable();
    if let (Some(middle), Some(last)) = (recovered.get(recovered.len() / 2), recovered.last()) {
        let [middle, last] = [*middle, *last].map(|n| n as f64 / 1000.0);
        let _ = writeln!(
            text,
            "\nThe domain was ready again after {middle:.1} µs in the middle, {last:.1} µs at most."
        );
    }
}

/// A message without what differs from one fault to the next: what follows the file's name, up to the first number.
fn symptom(message: &str) -> String {
    let what = message.split(": ").nth(1).unwrap_or(message);
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
        assert_eq!(symptom("m.rf: abort(0) in abort"), "abort");
        assert_eq!(
            symptom("m.rf: illegal instruction in free"),
            "illegal instruction"
        );
    }
}
