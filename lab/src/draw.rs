//! Which faults a subject gets: all different from each other, each type in turn, the same for the same seed.

use crate::kinds::{Kind, Mutation};
use crate::text::Unit;
use ringfence_attack::rng::Rng;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Numbers that are drawn together. A share that ends among them is drawn to their end, so that a larger one begins alike.
const TOGETHER: u64 = 64;
/// How often one is drawn anew that is there already or is no instruction, before another type has its turn.
const DRAWS: usize = 20;

/// What faults are drawn from.
pub struct Urn<'a> {
    units: &'a [Unit],
    /// Each type, in the order of their turns, with its places.
    kinds: Vec<(Kind, Vec<(usize, usize)>)>,
}

impl<'a> Urn<'a> {
    /// Lines of units, for some types of faults.
    pub fn new(units: &'a [Unit], lines: &[(usize, usize)], kinds: &[Kind]) -> Urn<'a> {
        let of = |&kind: &Kind| (kind, Mutation::places(kind, units, lines));
        let kinds = kinds.iter().map(of).collect();
        Urn { units, kinds }
    }
}

/// What tells two faults of a subject apart.
type Identity = (String, usize, Vec<String>);

fn identity(fault: &Mutation) -> Identity {
    (fault.unit.clone(), fault.line, fault.now.clone())
}

/// The faults with the numbers from 0 to `count`; `None` where there is no other one any more.
///
/// # Errors
/// The assembler cannot be run.
pub fn draw(urn: &Urn<'_>, seed: u64, count: u64, directory: &Path) -> Result<Vec<Option<Mutation>>, String> {
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    for first in (0..count).step_by(TOGETHER as usize) {
        let numbers: Vec<u64> = (first..first + TOGETHER).collect();
        all.extend(chunk(urn, seed, &numbers, &mut seen, directory)?);
    }
    all.truncate(count as usize);
    Ok(all)
}

fn chunk(
    urn: &Urn<'_>,
    seed: u64,
    numbers: &[u64],
    seen: &mut BTreeSet<Identity>,
    directory: &Path,
) -> Result<Vec<Option<Mutation>>, String> {
    let rng = |n: &u64| Rng::new(seed.wrapping_mul(0x1_0000_0000).wrapping_add(*n));
    let mut random: Vec<Rng> = numbers.iter().map(rng).collect();
    let mut drawn: Vec<Option<Mutation>> = vec![None; numbers.len()];
    let mut left: Vec<usize> = (0..numbers.len()).collect();
    for turn in 0..urn.kinds.len() * DRAWS {
        for &at in &left {
            let (kind, places) = &urn.kinds[(numbers[at] as usize + turn / DRAWS) % urn.kinds.len()];
            let fault = Mutation::choose(*kind, places, urn.units, &mut random[at]);
            // What is no instruction is remembered too, and not drawn again.
            drawn[at] = fault.filter(|f| seen.insert(identity(f)));
        }
        let new: Vec<usize> = left.iter().copied().filter(|&at| drawn[at].is_some()).collect();
        let now = |&at: &usize| drawn[at].as_ref().map_or(Vec::new(), |d| d.now.clone());
        let texts: Vec<Vec<String>> = new.iter().map(now).collect();
        for at in senseless(&texts, directory)? {
            drawn[new[at]] = None;
        }
        left.retain(|&at| drawn[at].is_none());
        if left.is_empty() {
            break;
        }
    }
    Ok(drawn)
}

/// Which texts, each some lines of a function, are no instructions.
///
/// # Errors
/// The assembler cannot be run.
fn senseless(texts: &[Vec<String>], directory: &Path) -> Result<Vec<usize>, String> {
    if texts.is_empty() {
        return Ok(Vec::new());
    }
    let (mut text, mut of) = (String::new(), Vec::new());
    for (number, lines) in texts.iter().enumerate() {
        let lines = lines.iter().map(String::as_str);
        for line in ["\t.cfi_startproc"]
            .into_iter()
            .chain(lines)
            .chain(["\t.cfi_endproc"])
        {
            text.push_str(line);
            text.push('\n');
            of.push(number);
        }
    }
    let from = directory.join("lines.s");
    std::fs::write(&from, text).map_err(|e| format!("{}: {e}", from.display()))?;
    let done = Command::new("as").arg(&from).args(["-o", "/dev/null"]).output();
    let said = done.map_err(|e| format!("as: {e}"))?.stderr;
    let said = String::from_utf8_lossy(&said);
    let lines = said
        .lines()
        .filter_map(|l| l.strip_prefix(from.to_str()?)?.strip_prefix(':')?.split_once(':'));
    let errors = lines.filter(|(_, what)| what.trim_start().starts_with("Error"));
    let mut found: Vec<usize> = errors
        .filter_map(|(line, _)| of.get(line.parse::<usize>().ok()?.checked_sub(1)?).copied())
        .collect();
    found.dedup();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "f:\n\tmovq\t%rsi, 16(%rbx)\n\tcmpl\t$7, %eax\n\tjle\t.L2\n.L2:\n\tret\n";

    fn drawn(seed: u64, count: u64) -> Vec<Option<Mutation>> {
        let units = [Unit::new("f", TEXT)];
        let lines: Vec<_> = (0..units[0].lines.len()).map(|l| (0, l)).collect();
        let kinds = [Kind::Source, Kind::Branch, Kind::OffByOne, Kind::Delete];
        let directory = std::env::temp_dir().join(format!("lab-draw-{seed}-{count}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let all = draw(&Urn::new(&units, &lines, &kinds), seed, count, &directory).expect("an assembler");
        let _ = std::fs::remove_dir_all(directory);
        all
    }

    fn line(fault: &Option<Mutation>) -> Option<(usize, &[String])> {
        fault.as_ref().map(|f| (f.line, &f.now[..]))
    }

    #[test]
    fn faults_are_different_until_there_is_no_other() {
        let all = drawn(3, 128);
        let there: Vec<_> = all.iter().filter_map(line).collect();
        let different: BTreeSet<_> = there.iter().collect();
        assert_eq!(there.len(), different.len());
        // Eleven other registers, a jump missing or turned, two other bounds, two lines missing.
        assert_eq!(there.len(), 11 + 2 + 2 + 2);
    }

    #[test]
    fn a_larger_share_begins_with_the_smaller_one() {
        let (few, many) = (drawn(4, 9), drawn(4, 70));
        let few: Vec<_> = few.iter().map(line).collect();
        let many: Vec<_> = many.iter().take(9).map(line).collect();
        assert_eq!(few, many);
    }

    #[test]
    fn lines_that_are_no_instructions_are_told() {
        let texts =
            [&["\tnop"][..], &["\tmovq\t%eax, %rdi"], &[]].map(|t| t.iter().map(|&l| l.into()).collect());
        let directory = std::env::temp_dir().join(format!("lab-senseless-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        assert_eq!(senseless(&texts, &directory).expect("an assembler"), [1]);
        let _ = std::fs::remove_dir_all(directory);
    }
}
