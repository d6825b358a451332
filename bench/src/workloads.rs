//! Whole workloads, fenced against native.

use crate::build::{Configuration, Kitchen, Native};
use crate::measure::{Subject, Summary, geometric_mean, interleave, thread_seconds};
use ringfence_runtime::{Call, Domain, DomainOptions, Imports, LoadOptions, Module};
use serde::Serialize;
use std::cell::Cell;
use std::path::PathBuf;

/// What one workload came to. Ratios are of medians; the yardstick is the faster of the two native builds.
#[derive(Serialize)]
pub struct Row {
    /// The workload.
    pub name: String,
    /// Seconds, `gcc -O2`.
    pub native: Summary,
    /// Seconds, `gcc -O2` with aligned loops.
    pub aligned: Summary,
    /// Seconds, fenced.
    pub fenced: Summary,
    /// Fenced over native.
    pub ratio: f64,
    /// Fenced over native with aligned loops.
    pub ratio_aligned: f64,
    /// Size of the text, fenced over native.
    pub text: f64,
}

/// The configurations that are compared.
const CONFIGURATIONS: [Configuration; 3] = [
    Configuration::Native,
    Configuration::Aligned,
    Configuration::Fenced,
];

/// Measures all workloads, or those named in `only`, printing a line for each.
pub fn measure(kitchen: &Kitchen, runs: usize, only: &[String]) -> Result<Vec<Row>, String> {
    let kernels = kitchen.sources().join("kernels");
    let entries = std::fs::read_dir(&kernels).map_err(|e| format!("{}: {e}", kernels.display()))?;
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|e| Some(e.file_name().to_str()?.strip_suffix(".c")?.to_owned()))
        .collect();
    names.sort();
    println!(
        "{:<18} {:>10} {:>10} {:>10} {:>9} {:>11} {:>7}",
        "workload", "native s", "aligned s", "fenced s", "ratio", "to aligned", "text"
    );
    let mut rows = Vec::new();
    for name in names {
        let file = kernels.join(format!("{name}.c"));
        rows.extend(one(kitchen, &name, &[file], &[], runs, only)?);
    }
    let (sources, flags) = zlib(kitchen)?;
    rows.extend(one(kitchen, "zlib", &sources, &flags, runs, only)?);
    Ok(rows)
}

/// The sources of zlib with a driver, and the flags to build them.
pub fn zlib(kitchen: &Kitchen) -> Result<(Vec<PathBuf>, Vec<String>), String> {
    let dir = std::env::var_os("ZLIB_SOURCES")
        .map(PathBuf::from)
        .ok_or("ZLIB_SOURCES is not set; use bench/run.sh")?;
    let mut sources = vec![kitchen.sources().join("modules/zlib_work.c")];
    for file in [
        "adler32", "crc32", "deflate", "inffast", "inflate", "inftrees", "trees", "zutil",
    ] {
        sources.push(dir.join(file).with_extension("c"));
    }
    let include = |dir: &std::path::Path| format!("-I{}", dir.display());
    let flags = vec![
        "-DZ_SOLO".to_owned(),
        include(&dir),
        include(&kitchen.sources().join("kernels")),
    ];
    Ok((sources, flags))
}

fn one(
    kitchen: &Kitchen,
    name: &str,
    sources: &[PathBuf],
    flags: &[String],
    runs: usize,
    only: &[String],
) -> Result<Option<Row>, String> {
    if !only.is_empty() && !only.iter().any(|n| n == name) {
        return Ok(None);
    }
    let checksum = Cell::new(None);
    let check = |sum: u64| match checksum.replace(Some(sum)) {
        Some(other) if other != sum => Err(format!("{name}: checksums differ: {other:016x} and {sum:016x}")),
        _ => Ok(()),
    };
    let mut subjects: Vec<Subject> = Vec::new();
    let mut sizes = Vec::new();
    for configuration in CONFIGURATIONS {
        let file = kitchen.build(name, sources, flags, configuration)?;
        sizes.push(text_size(&file)?);
        let mut work = load(&file, configuration)?;
        subjects.push((
            configuration.name(),
            Box::new(move || {
                let start = thread_seconds();
                let sum = work()?;
                let seconds = thread_seconds() - start;
                check(sum)?;
                Ok(seconds)
            }),
        ));
    }
    let summaries = interleave(runs, &mut subjects)?;
    let [native, aligned, fenced] = [summaries[0], summaries[1], summaries[2]];
    let row = Row {
        name: name.to_owned(),
        native,
        aligned,
        fenced,
        ratio: fenced.median / native.median,
        ratio_aligned: fenced.median / aligned.median,
        text: sizes[2] as f64 / sizes[0] as f64,
    };
    println!(
        "{:<18} {:>10.4} {:>10.4} {:>10.4} {:>9.3} {:>11.3} {:>7.2}",
        row.name, native.median, aligned.median, fenced.median, row.ratio, row.ratio_aligned, row.text
    );
    Ok(Some(row))
}

type Work = Box<dyn FnMut() -> Result<u64, String>>;

fn load(file: &std::path::Path, configuration: Configuration) -> Result<Work, String> {
    match configuration {
        Configuration::Native | Configuration::Aligned => {
            let run = Native::load(file)?.symbol("run")?;
            // SAFETY: every workload's run() has this type, and is code of this repository or of zlib.
            let run: extern "C" fn() -> u64 = unsafe { std::mem::transmute(run) };
            Ok(Box::new(move || Ok(run())))
        }
        Configuration::Fenced | Configuration::Integrity => {
            let mut options = LoadOptions::default();
            options.allow_integrity = configuration == Configuration::Integrity;
            let module = Module::open(file, &options).map_err(|e| e.to_string())?;
            let domain = Domain::new(&[module], Imports::new(), &DomainOptions::default())
                .map_err(|e| e.to_string())?;
            let run = domain.entry("run").map_err(|e| e.to_string())?;
            Ok(Box::new(move || {
                Ok(run.call(&mut Call::ints(&[])).map_err(|e| e.to_string())?.rax)
            }))
        }
    }
}

/// Bytes of executable sections.
fn text_size(file: &std::path::Path) -> Result<u64, String> {
    use object::{Object, ObjectSection, SectionKind};
    let bytes = std::fs::read(file).map_err(|e| e.to_string())?;
    let elf = object::File::parse(&*bytes).map_err(|e| e.to_string())?;
    Ok(elf
        .sections()
        .filter(|s| s.kind() == SectionKind::Text)
        .map(|s| s.size())
        .sum())
}

/// The geometric means, and the extremes.
pub fn print_means(rows: &[Row]) {
    if rows.is_empty() {
        return;
    }
    let mean = |of: fn(&Row) -> f64| geometric_mean(&rows.iter().map(of).collect::<Vec<_>>());
    println!(
        "{:<18} {:>10} {:>10} {:>10} {:>9.3} {:>11.3} {:>7.2}",
        "geometric mean",
        "",
        "",
        "",
        mean(|r| r.ratio),
        mean(|r| r.ratio_aligned),
        mean(|r| r.text)
    );
    if let Some(worst) = rows.iter().max_by(|a, b| a.ratio.total_cmp(&b.ratio)) {
        println!("worst: {} {:.3}", worst.name, worst.ratio);
    }
}
