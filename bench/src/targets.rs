//! What is asked for, and what was reached, machine by machine.

use std::fmt::Write;

use crate::Results;
use crate::figures::{against, cost, mean_and_worst, ratios, text_growth};
use crate::workloads::BEST;

/// One figure: what is asked for differs by the make of processor, since loads through `gs` cost two cycles more on some.
struct Target {
    what: &'static str,
    /// The limit on AMD's, and on others.
    limits: [f64; 2],
    /// Whether the limit is the least, not the most.
    least: bool,
    unit: &'static str,
    digits: usize,
    /// The figure, and what belongs to it.
    measured: fn(&Results) -> Option<(f64, String)>,
}

fn mean(results: &Results, of: &str, over: &str) -> Option<(f64, String)> {
    let (mean, ..) = mean_and_worst(&ratios(results, of, over))?;
    Some((mean, String::new()))
}

fn price(results: &Results, name: &str) -> Option<(f64, String)> {
    Some((cost(results, name)?.summary.median, String::new()))
}

fn faster(results: &Results, peer: &str) -> Option<(f64, String)> {
    let (mean, wins, count) = against(results, peer)?;
    Some((mean, format!(" on {wins} of {count}")))
}

/// Most of them, in the order of the table.
const TARGETS: [Target; 22] = [
    most("full isolation, mean", [1.005, 1.030], "", 3, |r| {
        mean(r, "full", BEST)
    }),
    most(
        "the same over native with aligned loops, mean",
        [1.015, 1.035],
        "",
        3,
        |r| mean(r, "full", "aligned"),
    ),
    most("full isolation, worst", [1.08, 1.15], "", 2, |r| {
        let (_, name, worst) = mean_and_worst(&ratios(r, "full", BEST))?;
        Some((worst, format!(" ({name})")))
    }),
    most("integrity only, mean", [1.000, 1.010], "", 3, |r| {
        mean(r, "integrity", BEST)
    }),
    most("rights to words, mean", [1.100, 1.100], "", 3, |r| {
        mean(r, "words", BEST)
    }),
    most("rights to words, worst", [1.35, 1.35], "", 2, |r| {
        let (_, name, worst) = mean_and_worst(&ratios(r, "words", BEST))?;
        Some((worst, format!(" ({name})")))
    }),
    most(
        "null call over a plain indirect call",
        [2.0, 5.0],
        " ×",
        1,
        |r| Some((cost(r, "null call, window selected")?.ratio?, String::new())),
    ),
    most("typed call, its outcome looked at", [9.0, 12.0], " ns", 1, |r| {
        price(r, "call with two integers, its outcome looked at")
    }),
    most(
        "call in a batch, an element over a plain call",
        [3.0, 3.0],
        " ns",
        1,
        |r| {
            let median = |name| Some(cost(r, name)?.summary.median);
            let plain = median("plain indirect call, two integers")?;
            let element = median("call with two integers in a batch of 1,000, an element")?;
            Some((element - plain, String::new()))
        },
    ),
    most("null call, x87 in the module", [12.0, 12.0], " ns", 1, |r| {
        price(r, "null call, x87 in the module")
    }),
    most(
        "call of another domain, within a call",
        [25.0, 25.0],
        " ns",
        1,
        |r| price(r, "call with one call of another domain"),
    ),
    most("null call with window switch", [20.0, 20.0], " ns", 1, |r| {
        price(r, "null call with window switch")
    }),
    most("call with one callback", [11.0, 11.0], " ns", 1, |r| {
        price(r, "call with one callback, C function")
    }),
    most("fault delivered", [3.0, 3.0], " µs", 1, |r| {
        price(r, "fault delivered to the caller")
    }),
    most("domain created", [15.0, 15.0], " µs", 1, |r| {
        price(r, "domain created, 1 MiB module")
    }),
    most("domain reset, 16 pages dirty", [4.0, 4.0], " µs", 1, |r| {
        price(r, "domain reset, 16 pages dirty")
    }),
    most("module of 1 MB loaded", [4000.0, 4000.0], " µs", 0, |r| {
        let library = r.loads.iter().find(|l| l.name == "sqlite")?;
        Some((
            library.module.median,
            format!(" ({:.0} KB)", library.text as f64 / 1e3),
        ))
    }),
    most("text over native", [1.20, 1.20], " ×", 2, |r| {
        Some((text_growth(r)?, String::new()))
    }),
    least("verifier", [330.0, 250.0], " MB/s", 0, |r| price(r, "verifier")),
    least("faster than wasm2c, mean", [1.25, 1.20], " ×", 2, |r| {
        faster(r, "wasm2c")
    }),
    least("faster than Wasmtime, mean", [1.40, 1.35], " ×", 2, |r| {
        faster(r, "wasmtime")
    }),
    least("workloads", [60.0, 60.0], "", 0, |r| {
        Some((r.workloads.rows.len() as f64, String::new()))
    }),
];

const fn most(
    what: &'static str,
    limits: [f64; 2],
    unit: &'static str,
    digits: usize,
    measured: fn(&Results) -> Option<(f64, String)>,
) -> Target {
    Target {
        what,
        limits,
        least: false,
        unit,
        digits,
        measured,
    }
}

const fn least(
    what: &'static str,
    limits: [f64; 2],
    unit: &'static str,
    digits: usize,
    measured: fn(&Results) -> Option<(f64, String)>,
) -> Target {
    Target {
        least: true,
        ..most(what, limits, unit, digits, measured)
    }
}

impl Target {
    fn cell(&self, results: &Results) -> String {
        let limit = self.limits[usize::from(!results.machine.is_amd())];
        let Some((value, more)) = (self.measured)(results) else {
            return "–".to_owned();
        };
        let reached = if self.least {
            value >= limit
        } else {
            value <= limit
        };
        let (digits, unit) = (self.digits, self.unit);
        let sign = if self.least { '≥' } else { '≤' };
        let value = match reached {
            true => format!("{value:.digits$}"),
            false => format!("**{value:.digits$}**"),
        };
        format!("{value}{unit}{more} ({sign} {limit:.digits$})")
    }
}

/// A column for each machine. What is not reached is bold.
pub fn table(all: &[Results]) -> Option<String> {
    all.first()?;
    let mut text = String::from("| figure |");
    for results in all {
        let _ = write!(text, " {} |", results.machine.title());
    }
    let _ = write!(text, "\n|---|{}\n", "---|".repeat(all.len()));
    for target in &TARGETS {
        let _ = write!(text, "| {} |", target.what);
        for results in all {
            let _ = write!(text, " {} |", target.cell(results));
        }
        text.push('\n');
    }
    Some(text)
}

/// What fenced code takes on each machine, by workload.
pub fn workloads(all: &[Results]) -> Option<String> {
    let mut names: Vec<&str> = Vec::new();
    for row in all.iter().flat_map(|r| &r.workloads.rows) {
        if !names.contains(&row.name.as_str()) {
            names.push(&row.name);
        }
    }
    names.first()?;
    let (mut head, mut rule) = (String::from("| workload |"), String::from("|---|"));
    for results in all {
        let _ = write!(head, " {0}: full | integrity |", results.machine.title());
        rule += "---|---|";
    }
    let mut text = format!("{head}\n{rule}\n");
    for name in names {
        let _ = write!(text, "| {name} |");
        for results in all {
            let row = results.workloads.rows.iter().find(|r| r.name == name);
            for of in ["full", "integrity"] {
                let ratio = row.and_then(|r| r.ratio(of, BEST));
                let _ = write!(text, " {} |", ratio.map_or("–".to_owned(), |r| format!("{r:.3}")));
            }
        }
        text.push('\n');
    }
    text.push_str("| **geometric mean** |");
    for results in all {
        for of in ["full", "integrity"] {
            let mean = mean_and_worst(&ratios(results, of, BEST));
            let _ = write!(
                text,
                " {} |",
                mean.map_or("–".to_owned(), |m| format!("**{:.3}**", m.0))
            );
        }
    }
    text.push('\n');
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::{table, workloads};
    use crate::Results;
    use crate::program::here;

    #[test]
    fn each_machine_whose_figures_are_kept_has_a_column() {
        let kept = std::fs::read_dir(here().join("../docs/performance")).expect("kept figures");
        let all: Vec<_> = kept
            .map(|file| Results::read(&file.expect("a file").path()).expect("figures"))
            .collect();
        let makes: Vec<_> = all.iter().map(|r| r.machine.is_amd()).collect();
        assert!(makes.contains(&true) && makes.contains(&false), "both makes");
        for made in [table(&all), workloads(&all)] {
            let head = made.expect("a table").lines().next().expect("a head").to_owned();
            for results in &all {
                assert!(head.contains(&results.machine.title()), "{head}");
            }
        }
    }
}
