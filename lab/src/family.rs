//! Many faults in one build: each is in a copy of its function, and the function begins with the question which copy is to run.
//!
//! So a build's cost is shared, and what runs for a fault is the function as it was but for that fault. `lab_chosen` (`lab/subjects/lab.h`)
//! is 0 for none of them. Local labels and parts of a function that stand in other sections are copied along.

use crate::kinds::Mutation;
use crate::text::Unit;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The variable that the host sets.
const CHOSEN: &str = "lab_chosen";

/// The unit's text with all faults of this unit among those given, each under its number (from 1).
pub fn text(unit: &Unit, faults: &[(usize, &Mutation)]) -> String {
    let mut of: BTreeMap<usize, Vec<(usize, &Mutation)>> = BTreeMap::new();
    let functions = unit.functions();
    for &(number, fault) in faults.iter().filter(|(_, f)| f.unit == unit.name) {
        if let Some(at) = functions.iter().position(|f| f.contains(&fault.line)) {
            of.entry(at).or_default().push((number, fault));
        }
    }
    let mut text = String::new();
    let mut next = 0;
    for (at, faults) in of {
        let lines = functions[at].clone();
        copy(&mut text, unit, next..entry(unit, lines.start));
        for (number, _) in &faults {
            let _ = writeln!(text, "\tcmpl\t${number}, {CHOSEN}(%rip)");
            let _ = writeln!(text, "\tje\t{}", name(unit, lines.start, *number));
        }
        copy(&mut text, unit, entry(unit, lines.start)..lines.end);
        for (number, fault) in faults {
            broken(&mut text, unit, lines.clone(), number, fault);
        }
        next = lines.end;
    }
    copy(&mut text, unit, next..unit.lines.len());
    text
}

fn copy(text: &mut String, unit: &Unit, lines: std::ops::Range<usize>) {
    unit.lines[lines].iter().for_each(|l| line(text, l));
}

fn line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

/// The first line of a function, from its label, that is behind the marks of its entry.
fn entry(unit: &Unit, label: usize) -> usize {
    let marks = |&at: &usize| {
        unit.instruction(at)
            .is_some_and(|i| !i.name.starts_with("endbr") && !i.name.starts_with("notrack"))
    };
    (label..unit.lines.len()).find(marks).unwrap_or(label)
}

fn name(unit: &Unit, label: usize, number: usize) -> String {
    renamed(unit.lines[label].trim_end_matches(':'), number)
}

/// A label's name in the copy of that number.
fn renamed(label: &str, number: usize) -> String {
    format!("{label}.lab{number}")
}

/// A copy of a function with a fault in it.
fn broken(text: &mut String, unit: &Unit, lines: std::ops::Range<usize>, number: usize, fault: &Mutation) {
    let labels: Vec<&str> = unit.lines[lines.clone()]
        .iter()
        .filter_map(|l| label(l))
        .collect();
    let _ = writeln!(text, "\t.p2align 4");
    let _ = writeln!(text, "\t.type\t{}, @function", name(unit, lines.start, number));
    for at in lines {
        let now = match at == fault.line {
            true => &fault.now[..],
            false => std::slice::from_ref(&unit.lines[at]),
        };
        for l in now {
            line(text, &with_labels(l, &labels, number));
        }
    }
}

/// The label that a line is.
fn label(line: &str) -> Option<&str> {
    let name = line.strip_suffix(':')?;
    (!name.is_empty() && name.chars().all(is_name)).then_some(name)
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$')
}

/// The line with these labels as they are called in a copy.
fn with_labels(line: &str, labels: &[&str], number: usize) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(is_name) {
        text.push_str(&rest[..at]);
        let end = rest[at..].find(|c| !is_name(c)).map_or(rest.len(), |n| at + n);
        let word = &rest[at..end];
        match labels.contains(&word) {
            true => text.push_str(&renamed(word, number)),
            false => text.push_str(word),
        }
        rest = &rest[end..];
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Kind;

    const TEXT: &str = "\t.text
\t.globl\tf
\t.type\tf, @function
f:
\t.cfi_startproc
\tendbr64
\ttestl\t%edi, %edi
\tje\t.L2
\tjmp\tf.cold
.L2:
\tcall\tg@PLT
\tret
\t.section\t.text.unlikely
f.cold:
\tjmp\t.L2
\t.text
\t.size\tf, .-f
g:
\tret
\t.size\tg, .-g";

    #[test]
    fn a_fault_is_in_a_copy_with_labels_of_its_own() {
        let unit = Unit::new("u", TEXT);
        let fault = Mutation {
            kind: Kind::Branch,
            unit: "u".into(),
            line: 7,
            was: "je .L2".into(),
            now: vec!["\tjne\t.L2".into()],
        };
        let made = text(&unit, &[(3, &fault)]);
        let (whole, copy) = made.split_once("\t.p2align 4\n").expect("a copy");
        assert!(whole.contains("\tendbr64\n\tcmpl\t$3, lab_chosen(%rip)\n\tje\tf.lab3\n\ttestl"));
        assert!(whole.contains("\tje\t.L2\n"), "{whole}");
        assert!(
            copy.contains("f.lab3:\n") && copy.contains("\tjne\t.L2.lab3\n"),
            "{copy}"
        );
        assert!(copy.contains("\tjmp\tf.cold.lab3\n") && copy.contains("f.cold.lab3:\n"));
        assert!(copy.contains("\t.size\tf.lab3, .-f.lab3\n") && copy.contains("\tcall\tg@PLT\n"));
        assert!(copy.ends_with("g:\n\tret\n\t.size\tg, .-g\n"));
    }

    #[test]
    fn a_unit_without_a_fault_stays() {
        let unit = Unit::new("u", TEXT);
        assert_eq!(text(&unit, &[]), format!("{TEXT}\n"));
    }
}
