//! What calls, faults and resets cost beside what an earlier revision's cost, in turn: figures of the runtime's example `paired_cost`.

use std::process::Command;

/// A program `paired_cost` with its module.
#[derive(Clone, Debug)]
pub struct Program {
    /// The program.
    pub path: String,
    /// Its argument.
    pub module: String,
}

/// What is compared, as `paired_cost` names it.
pub const NAMES: [&str; 4] = [
    "call into a domain",
    "call with a plain callback",
    "fault to the caller",
    "reset",
];

/// Rounds: each runs every program once.
const ROUNDS: u32 = 15;

/// The best of all rounds, in nanoseconds, of each name, for each program.
///
/// # Errors
/// What a program said, or did not say.
pub fn run(programs: &[&Program]) -> Result<Vec<[f64; NAMES.len()]>, String> {
    let mut best = vec![[f64::INFINITY; NAMES.len()]; programs.len()];
    for _ in 0..ROUNDS {
        for (program, best) in programs.iter().zip(&mut best) {
            let out = Command::new(&program.path).arg(&program.module).output();
            let out = out.map_err(|e| format!("{}: {e}", program.path))?;
            let text = String::from_utf8_lossy(&out.stdout);
            for (name, best) in NAMES.iter().zip(best) {
                let figure = figure(&text, name);
                *best = best.min(figure.ok_or(format!("{} tells nothing of '{name}'", program.path))?);
            }
        }
    }
    Ok(best)
}

/// The best of one run: `name  12.3 ns  (best 11.9)`.
fn figure(text: &str, name: &str) -> Option<f64> {
    let rest = text
        .lines()
        .find_map(|l| l.strip_prefix(name).filter(|r| r.starts_with("  ")))?;
    let best = rest.split_once("(best ")?.1;
    best.trim_end_matches(')').parse().ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn lines_are_read_by_their_whole_name() {
        let text = "reset of all        1.0 ns   (best 0.5)\nreset        4.8 ns   (best 4.5)\n";
        assert_eq!(super::figure(text, "reset"), Some(4.5));
        assert_eq!(super::figure(text, "fault"), None);
    }
}
