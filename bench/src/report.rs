//! Tables out of figures: the summary on the terminal, and the generated parts of `docs/performance.md`.
//!
//! The page has `<!-- bench:NAME -->` and `<!-- /bench:NAME -->` around each generated part. Everything between is
//! replaced; a part for which the figures have nothing stays as it is, and that is said.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use crate::Results;
use crate::calls::process;
use crate::figures::{against, cost, mean_and_worst, ratios, text_growth};
use crate::measure::geometric_mean;
use crate::workloads::BEST;
use crate::{breakeven, plot, targets};

/// Renders a part, if there are figures for it.
type Part = fn(&Results) -> Option<String>;

/// The parts of the page, each made from the figures.
const PARTS: [(&str, Part); 10] = [
    ("machine", machine),
    ("calls", calls),
    ("strings", strings),
    ("workloads", workloads),
    ("peers", peers),
    ("sizes", sizes),
    ("crossings", crossings),
    ("break-even", breakeven::table),
    ("loading", loading),
    ("instructions", instructions),
];

/// Renders a part out of the figures of all machines.
type Across = fn(&[Results]) -> Option<String>;

/// Those parts.
const ACROSS: [(&str, Across); 2] = [("targets", targets::table), ("machines", targets::workloads)];

/// The plots that stand above tables: part, file, and what they show.
const PLOTS: [(&str, &str, &str); 4] = [
    (
        "workloads",
        "overhead",
        "Time of fenced code over native code, a bar for each workload",
    ),
    (
        "peers",
        "peers",
        "Time over native code of Ringfence, wasm2c and Wasmtime",
    ),
    (
        "strings",
        "string-reverse",
        "Nanoseconds to reverse strings of 32 to 4096 bytes",
    ),
    (
        "break-even",
        "break-even",
        "Crossings per second above which a fence costs less than another process",
    ),
];

/// The means, for the terminal.
pub fn summary(results: &Results) -> String {
    let mut text = String::new();
    for over in [BEST, "native", "executable", "aligned"] {
        for of in [
            "executable",
            "aligned",
            "o3",
            "v3",
            "full",
            "full-o3",
            "full-v3",
            "segment",
            "integrity",
            "words",
            "check",
            "wasm2c",
            "wasmtime",
        ] {
            let list = ratios(results, of, over);
            if let (true, Some((mean, name, worst))) = (of != over, mean_and_worst(&list)) {
                let _ = writeln!(
                    text,
                    "{of:>10} over {over:<13} geometric mean {mean:.3}, worst {worst:.3} ({name}), of {}",
                    list.len()
                );
            }
        }
    }
    for (of, over) in [("full-o3", "o3"), ("full-v3", "v3")] {
        if let Some((mean, name, worst)) = mean_and_worst(&ratios(results, of, over)) {
            let _ = writeln!(
                text,
                "{of:>10} over {over:<13} geometric mean {mean:.3}, worst {worst:.3} ({name})"
            );
        }
    }
    text
}

/// Replaces the generated parts of `performance.md` in `docs`, and its plots.
pub fn update(json: &Path, counts: &Path, docs: &Path) -> Result<(), String> {
    let read = |p: &Path| std::fs::read_to_string(p).map_err(|e| format!("{}: {e}", p.display()));
    let mut results = Results::read(json)?;
    if counts.exists() {
        results.instructions =
            serde_json::from_str(&read(counts)?).map_err(|e| format!("{}: {e}", counts.display()))?;
    }
    let page = docs.join("performance.md");
    let mut text = read(&page)?;
    for (name, part) in PARTS {
        match part(&results) {
            Some(made) => {
                let plot = PLOTS.iter().find(|p| p.0 == name);
                let picture = plot.map(|(_, file, shows)| picture(file, shows) + "\n\n");
                text = replace(&text, name, &(picture.unwrap_or_default() + &made))?;
            }
            None => println!("{name}: the figures have nothing for it; left as it is"),
        }
    }
    let all = with_others(&mut results, &docs.join("performance"))?;
    for (name, part) in ACROSS {
        let made = part(&all).ok_or_else(|| format!("{name}: there are no figures"))?;
        text = replace(&text, name, &made)?;
    }
    std::fs::write(&page, text).map_err(|e| format!("{}: {e}", page.display()))?;
    plot::draw(docs, &results)?;
    println!(
        "{} and its plots are up to date with {}",
        page.display(),
        json.display()
    );
    Ok(())
}

/// Keeps this machine's figures in `dir`, and reads those of the others. In the order of their files.
fn with_others(results: &mut Results, dir: &Path) -> Result<Vec<Results>, String> {
    std::fs::create_dir_all(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    for why in results.workloads.skipped.values_mut() {
        *why = reason(why).to_owned();
    }
    results.write(&dir.join(format!("{}.json", results.machine.slug())))?;
    let entries = std::fs::read_dir(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let mut files: Vec<_> = entries.flatten().map(|e| e.path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "json"));
    files.sort();
    files.iter().map(|f| Results::read(f)).collect()
}

/// A plot in the colours that the reader's page has.
pub fn picture(file: &str, shows: &str) -> String {
    format!(
        "<picture><source media=\"(prefers-color-scheme: dark)\" srcset=\"{file}-dark.svg\">\
         <img alt=\"{shows}\" src=\"{file}-light.svg\"></picture>"
    )
}

/// Puts what was made between the marks of a part.
pub fn replace(text: &str, name: &str, made: &str) -> Result<String, String> {
    let (open, close) = (
        format!("<!-- bench:{name} -->\n"),
        format!("<!-- /bench:{name} -->"),
    );
    let missing = || format!("the page has no part {} … {close}", open.trim());
    let (before, rest) = text.split_once(&open).ok_or_else(missing)?;
    let (_, after) = rest.split_once(&close).ok_or_else(missing)?;
    Ok(format!("{before}{open}\n{}\n\n{close}{after}", made.trim()))
}

fn machine(results: &Results) -> Option<String> {
    let rows = &results.workloads.rows;
    let runs = || rows.iter().flat_map(|r| r.seconds.values()).map(|s| s.runs);
    let (least, most) = (runs().min()?, runs().max()?);
    let runs = match least == most {
        true => format!("{most}"),
        false => format!("{least} to {most}"),
    };
    let mut spreads: Vec<f64> = rows
        .iter()
        .flat_map(|r| r.seconds.values())
        .map(|s| s.spread / s.median)
        .collect();
    spreads.sort_by(f64::total_cmp);
    Some(format!(
        "{}.\n{} workloads, {runs} interleaved runs each.\n\
         The quartiles of a figure lie {:.1} % of its median apart for the middle figure,\n\
         {:.1} % for nine of ten.",
        results.machine.to_string().replace(", Linux", ",\nLinux"),
        rows.len(),
        100.0 * spreads[spreads.len() / 2],
        100.0 * spreads[spreads.len() * 9 / 10]
    ))
}

fn calls(results: &Results) -> Option<String> {
    if results.costs.is_empty() {
        return None;
    }
    let mut text = String::from(
        "| what | median | quartiles apart | over the plain call | target |\n|---|---|---|---|---|\n",
    );
    for c in &results.costs {
        let digits = if c.summary.median < 100.0 { 1 } else { 0 };
        let ratio = c.ratio.map_or(String::new(), |r| format!("{r:.1} ×"));
        let _ = writeln!(
            text,
            "| {} | {:.digits$} {} | {:.digits$} | {ratio} | {} |",
            c.name, c.summary.median, c.unit, c.summary.spread, c.target
        );
    }
    Some(text)
}

fn strings(results: &Results) -> Option<String> {
    results.strings.first()?;
    let mut text = String::from(
        "| bytes | plain call | fenced | with copies in and out | process, shared memory | process, pipe | process, socket |\n|---|---|---|---|---|---|---|\n",
    );
    for r in &results.strings {
        let _ = writeln!(
            text,
            "| {} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} |",
            r.size,
            r.plain.median,
            r.fenced.median,
            r.copied.median,
            r.shared.median,
            r.pipe.median,
            r.socket.median
        );
    }
    Some(text)
}

/// What a tool's complaints say most plainly, without the place where these sources are.
pub fn reason(complaint: &str) -> &str {
    let error = complaint.lines().find_map(|l| l.split_once("error: "));
    match error {
        Some((_, what)) => what.trim(),
        None => complaint.lines().next().unwrap_or_default().trim(),
    }
}

/// What was left out, in one row for all engines that left it out for the same reason.
fn left_out(skipped: &BTreeMap<String, String>) -> String {
    let mut rows: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for (what, why) in skipped {
        let (workload, engine) = what.rsplit_once(' ').unwrap_or((what, ""));
        rows.entry((workload, reason(why))).or_default().push(engine);
    }
    let mut text = String::from("| left out | by | because |\n|---|---|---|\n");
    for ((workload, why), engines) in rows {
        let _ = writeln!(text, "| {workload} | {} | {why} |", engines.join(", "));
    }
    text
}

/// What should have been there and is not, with its reason.
fn failures(results: &Results) -> String {
    let mut text = String::new();
    if !results.workloads.failed.is_empty() {
        text.push_str("\nFailed:\n\n");
        for (what, why) in &results.workloads.failed {
            let _ = writeln!(text, "* {what}: {}", reason(why));
        }
    }
    text
}

fn cell(value: Option<f64>) -> String {
    match value {
        None => "–".to_owned(),
        Some(v) if v > 1.03 => format!("**{v:.3}**"),
        Some(v) => format!("{v:.3}"),
    }
}

/// A table of ratios with its geometric means.
fn ratio_table(results: &Results, columns: &[(&str, &str, &str)]) -> String {
    let mut text = String::from("| workload | native, ms |");
    for (title, ..) in columns {
        let _ = write!(text, " {title} |");
    }
    let _ = write!(text, "\n|---|---|{}\n", "---|".repeat(columns.len()));
    for row in &results.workloads.rows {
        let native = row
            .seconds
            .get("native")
            .map_or("–".to_owned(), |s| format!("{:.0}", s.median * 1e3));
        let _ = write!(text, "| {} | {native} |", row.name);
        for (_, of, over) in columns {
            let failed = results
                .workloads
                .failed
                .contains_key(&format!("{} {of}", row.name));
            match failed {
                true => text.push_str(" failed |"),
                false => {
                    let _ = write!(text, " {} |", cell(row.ratio(of, over)));
                }
            }
        }
        text.push('\n');
    }
    text.push_str("| **geometric mean** | |");
    for (_, of, over) in columns {
        let mean = mean_and_worst(&ratios(results, of, over))
            .map_or("–".to_owned(), |m| format!("**{:.3}**", m.0));
        let _ = write!(text, " {mean} |");
    }
    text.push('\n');
    text
}

fn workloads(results: &Results) -> Option<String> {
    mean_and_worst(&ratios(results, "full", BEST))?;
    let all = [
        ("executable", "executable", "native"),
        ("aligned", "aligned", "native"),
        ("full", "full", BEST),
        ("full over aligned", "full", "aligned"),
        ("segment", "segment", BEST),
        ("segment over full", "segment", "full"),
        ("integrity", "integrity", BEST),
        ("integrity over aligned", "integrity", "aligned"),
        ("words", "words", BEST),
        ("words over full", "words", "full"),
        ("check", "check", BEST),
    ];
    let present = |c: &&(&str, &str, &str)| !ratios(results, c.1, c.2).is_empty();
    let columns: Vec<_> = all.iter().filter(present).copied().collect();
    Some(ratio_table(results, &columns) + &failures(results))
}

fn peers(results: &Results) -> Option<String> {
    let all = [
        ("full", "full", BEST),
        ("wasm2c", "wasm2c", BEST),
        ("Wasmtime", "wasmtime", BEST),
        ("wasm2c over full", "wasm2c", "full"),
        ("Wasmtime over full", "wasmtime", "full"),
    ];
    let present = |c: &&(&str, &str, &str)| !ratios(results, c.1, c.2).is_empty();
    let columns: Vec<_> = all.iter().filter(present).copied().collect();
    if columns.len() < 3 {
        return None;
    }
    let mut text = ratio_table(results, &columns);
    text.push('\n');
    for peer in ["wasm2c", "wasmtime"] {
        if let Some((mean, wins, count)) = against(results, peer) {
            let _ = writeln!(
                text,
                "* Faster than {peer} on {wins} of {count} workloads, {mean:.2} × in the geometric mean."
            );
        }
    }
    if !results.workloads.skipped.is_empty() {
        text.push('\n');
        text.push_str(&left_out(&results.workloads.skipped));
    }
    Some(text)
}

fn sizes(results: &Results) -> Option<String> {
    let mean = text_growth(results)?;
    let mut text = String::from(
        "| program | native, bytes | aligned | full | segment | integrity | words | check |\n|---|---|---|---|---|---|---|---|\n",
    );
    for size in &results.workloads.sizes {
        let Some(native) = size.text.get("native") else {
            continue;
        };
        let _ = write!(text, "| {} | {native} |", size.name);
        for c in ["aligned", "full", "segment", "integrity", "words", "check"] {
            let ratio = size.text.get(c).map(|t| *t as f64 / *native as f64);
            let _ = write!(text, " {} |", ratio.map_or("–".to_owned(), |r| format!("{r:.2}")));
        }
        text.push('\n');
    }
    let _ = writeln!(text, "| **geometric mean** | | | **{mean:.2}** | | | |");
    Some(text)
}

/// Crossings, and what the paper that started it (Wahbe and others, 1993) paid for the same over a plain call.
const CROSSINGS: [(&str, &str, &str); 8] = [
    ("plain call", "plain indirect call", "1"),
    (
        "fenced, callee-saved integer registers saved",
        "null call, no vector register in the module",
        "",
    ),
    (
        "the same, vector registers cleared",
        "null call, window selected",
        "",
    ),
    (
        "the same, x87 unit put back",
        "null call, x87 in the module",
        "28",
    ),
    ("process, spinning on another processor", process::SPINNING, ""),
    ("process, shared memory and futex", process::SHARED, ""),
    ("process, pipe", process::PIPE, ""),
    ("process, Unix socket", process::SOCKET, ""),
];

fn crossings(results: &Results) -> Option<String> {
    cost(results, CROSSINGS[0].1)?;
    let mut text = String::from("| crossing | here, ns | over a plain call | 1993 |\n|---|---|---|---|\n");
    for (what, name, then) in CROSSINGS {
        let here = cost(results, name).map_or("– | –".to_owned(), |c| {
            format!("{:.1} | {:.1}", c.summary.median, c.ratio.unwrap_or(1.0))
        });
        let _ = writeln!(text, "| {what} | {here} | {then} |");
    }
    Some(text)
}

fn loading(results: &Results) -> Option<String> {
    results.loads.first()?;
    let mut text = String::from(
        "| library | text, KB | dlopen, µs | module: read and verified, µs | domain made and dropped, µs | Wasmtime: compiled, µs | instance, µs |\n|---|---|---|---|---|---|---|\n",
    );
    for r in &results.loads {
        let optional = |s: Option<crate::Summary>| s.map_or("–".to_owned(), |s| format!("{:.0}", s.median));
        let _ = writeln!(
            text,
            "| {} | {:.0} | {:.0} | {:.0} | {:.0} | {} | {} |",
            r.name,
            r.text as f64 / 1e3,
            r.dlopen.median,
            r.module.median,
            r.domain.median,
            optional(r.wasm_compile),
            optional(r.wasm_instance)
        );
    }
    Some(text)
}

/// What fencing adds to the instructions, and what to the time: the rest is latency, prefixes and layout.
fn instructions(results: &Results) -> Option<String> {
    results.instructions.first()?;
    let mut text = String::from(
        "| workload | instructions, native | full: instructions | full: time | time over instructions | integrity: instructions | integrity: time |\n|---|---|---|---|---|---|---|\n",
    );
    let mut rows: Vec<_> = results.instructions.iter().collect();
    // In the order of the other tables.
    let place = |name: &str| results.workloads.rows.iter().position(|w| w.name == name);
    rows.sort_by_key(|r| place(&r.name).unwrap_or(usize::MAX));
    let mut means = [const { Vec::new() }; 5];
    for r in rows {
        let Some(base) = r.instructions.get("native") else {
            continue;
        };
        let _ = write!(text, "| {} | {base} |", r.name);
        let timed = results.workloads.rows.iter().find(|w| w.name == r.name);
        let counted = |c: &str| r.instructions.get(c).map(|n| *n as f64 / *base as f64);
        let time = |c: &str| timed.and_then(|w| w.ratio(c, "aligned"));
        let over = time("full").zip(counted("full")).map(|(t, n)| t / n);
        let cells = [
            counted("full"),
            time("full"),
            over,
            counted("integrity"),
            time("integrity"),
        ];
        for (value, mean) in cells.into_iter().zip(&mut means) {
            mean.extend(value);
            let _ = write!(text, " {} |", value.map_or("–".to_owned(), |v| format!("{v:.3}")));
        }
        text.push('\n');
    }
    text.push_str("| **geometric mean** | |");
    for mean in means {
        let value = (!mean.is_empty()).then(|| format!("**{:.3}**", geometric_mean(&mean)));
        let _ = write!(text, " {} |", value.unwrap_or("–".to_owned()));
    }
    text.push('\n');
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::{left_out, replace};
    use std::collections::BTreeMap;

    #[test]
    fn parts_are_replaced() {
        let page = "a\n<!-- bench:x -->\nold\n<!-- /bench:x -->\nb\n";
        let new = replace(page, "x", "| new |\n").expect("a page");
        assert_eq!(new, "a\n<!-- bench:x -->\n\n| new |\n\n<!-- /bench:x -->\nb\n");
        assert_eq!(replace(&new, "x", "| new |\n").as_deref(), Ok(&*new));
        assert!(replace(page, "y", "").is_err());
    }
    #[test]
    fn what_engines_left_out_for_one_reason_is_one_row() {
        let why = "clang failed:\n/somewhere/a.cpp:3:9: error: cannot use 'try'\n    try {";
        let same = [
            ("a wasm2c", why),
            ("a wasmtime", why),
            ("b wasm2c", "other\nmore"),
        ];
        let skipped: BTreeMap<_, _> = same.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        let rows = "| a | wasm2c, wasmtime | cannot use 'try' |\n| b | wasm2c | other |\n";
        assert_eq!(left_out(&skipped).split_once("---|\n").map(|t| t.1), Some(rows));
    }
}
