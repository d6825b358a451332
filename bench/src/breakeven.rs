//! When fencing in software costs less than another address space.
//!
//! A program spends the share `f` of its time in an extension and crosses the boundary `n` times a second. A fence adds
//! `f · h + n · c`, with `h` what it costs inside and `c` one crossing; another process adds `n · p`. They break even
//! at `n = f · h / (p − c)`: with more crossings, the fence is cheaper.

use std::fmt::Write;

use crate::Results;
use crate::calls::process;
use crate::figures::{Line, cost, mean_and_worst, ratios};
use crate::workloads::BEST;

/// One comparison.
struct Case {
    name: String,
    /// What a fence adds inside, as a share of the time there.
    inside: f64,
    /// Seconds that a crossing by process costs more than one by fence.
    saved: f64,
}

impl Case {
    fn crossings(&self, share: f64) -> f64 {
        (share * self.inside / self.saved).max(0.0)
    }
}

fn cases(results: &Results) -> Vec<Case> {
    let seconds = |name: &str| cost(results, name).map(|c| c.summary.median / 1e9);
    let Some(fence) = seconds("null call by the checked interface") else {
        return Vec::new();
    };
    let added = |of: &str| mean_and_worst(&ratios(results, of, BEST)).map(|m| (m.0 - 1.0, m.2 - 1.0));
    let (shared, pipe) = (process::SHARED, process::PIPE);
    let mut list = Vec::new();
    let mut push = |what: &str, inside: Option<f64>, other: &str, crossing: Option<f64>| {
        if let (Some(inside), Some(process), Some(crossing)) = (inside, seconds(other), crossing) {
            list.push(Case {
                name: format!("{what}, against a {other}"),
                inside,
                saved: process - crossing,
            });
        }
    };
    let full = added("full");
    push("mean workload", full.map(|f| f.0), shared, Some(fence));
    push("mean workload", full.map(|f| f.0), pipe, Some(fence));
    push("mean workload", full.map(|f| f.0), process::SPINNING, Some(fence));
    push("worst workload", full.map(|f| f.1), shared, Some(fence));
    push(
        "wasm2c, mean",
        added("wasm2c").map(|f| f.0),
        shared,
        seconds("wasm2c, null call"),
    );
    push(
        "Wasmtime, mean",
        added("wasmtime").map(|f| f.0),
        shared,
        seconds("Wasmtime, null call"),
    );
    list.retain(|c| c.saved > 0.0);
    list
}

/// The curves: per cent of time inside, crossings per second. One that fencing always wins is left out.
pub fn curves(results: &Results) -> Vec<Line> {
    cases(results)
        .into_iter()
        .filter(|c| c.inside > 0.0)
        .map(|c| Line {
            points: (1..=100)
                .map(|p| (f64::from(p), c.crossings(f64::from(p) / 100.0)))
                .collect(),
            name: c.name,
        })
        .collect()
}

/// The same as a table.
pub fn table(results: &Results) -> Option<String> {
    let cases = cases(results);
    let mut text = String::from(
        "| crossings per second, with this share of the time inside: | 10 % | 30 % | 50 % | 100 % |\n|---|---|---|---|---|\n",
    );
    for case in &cases {
        let _ = write!(text, "| {} |", case.name);
        for share in [0.1, 0.3, 0.5, 1.0] {
            let _ = write!(text, " {:.0} |", case.crossings(share));
        }
        text.push('\n');
    }
    (!cases.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::Case;

    #[test]
    fn both_cost_the_same_at_the_break_even() {
        let case = Case {
            name: String::new(),
            inside: 0.02,
            saved: 4e-6 - 20e-9,
        };
        let n = case.crossings(0.5);
        assert!((0.5 * 0.02 + n * 20e-9 - n * 4e-6).abs() < 1e-12, "{n}");
    }
}
