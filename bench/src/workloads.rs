//! Whole workloads, built in several ways and run in turn.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use ringfence_runtime::{Addressing, Arena, Call, Domain, DomainOptions, Imports, LoadOptions, Module};
use serde::{Deserialize, Serialize};

use crate::build::{Built, Kitchen, Native};
use crate::configuration::{Configuration, Kind};
use crate::measure::{Summary, thread_seconds};
use crate::peer::Peer;
use crate::program::{self, Program};
use crate::progress::{Budget, Pace, Progress};

/// The better of the two ways in which users build native code: what fenced code is held against.
pub const BEST: &str = "better native";

/// What one workload came to.
#[derive(Clone, Serialize, Deserialize)]
pub struct Row {
    /// The workload.
    pub name: String,
    /// What all configurations agreed on.
    pub checksum: String,
    /// Seconds of processor time, by configuration.
    pub seconds: BTreeMap<String, Summary>,
}

impl Row {
    /// Median over the median of another configuration.
    pub fn ratio(&self, of: &str, over: &str) -> Option<f64> {
        Some(self.median(of)? / self.median(over)?)
    }

    /// Median seconds of a configuration, or of [`BEST`].
    fn median(&self, name: &str) -> Option<f64> {
        let of = |name: &str| Some(self.seconds.get(name)?.median);
        match name {
            BEST => of("native").into_iter().chain(of("executable")).reduce(f64::min),
            _ => of(name),
        }
    }
}

/// What one program came to.
#[derive(Clone, Serialize, Deserialize)]
pub struct Size {
    /// The program.
    pub name: String,
    /// Bytes of its own text, by configuration.
    pub text: BTreeMap<String, u64>,
}

/// Everything about workloads.
#[derive(Default, Clone, Serialize, Deserialize)]
pub struct Results {
    /// One entry for each workload.
    pub rows: Vec<Row>,
    /// One entry for each program.
    pub sizes: Vec<Size>,
    /// What a peer's toolchain could not build, and why.
    pub skipped: BTreeMap<String, String>,
    /// What should have worked and did not, and why. Figures of other configurations stand.
    #[serde(default)]
    pub failed: BTreeMap<String, String>,
}

impl Results {
    fn has(&self, program: &Program) -> bool {
        let measured = |w: &program::Workload| self.rows.iter().any(|r| r.name == w.name);
        self.sizes.iter().any(|s| s.name == program.name) && program.workloads.iter().all(measured)
    }
}

/// What to measure.
pub struct Plan<'a> {
    /// Interleaved rounds, at most.
    pub runs: usize,
    /// When to be ready: fewer rounds, if it has to be.
    pub budget: Budget,
    /// Thousandths of the work.
    pub permille: u64,
    /// Programs and workloads; all if empty.
    pub only: &'a [String],
    /// Leave out the libraries of `modules/` except zlib.
    pub small: bool,
    /// In which configurations.
    pub configurations: &'a [Configuration],
}

impl Plan<'_> {
    /// The programs that are asked for, with the workloads that are.
    pub fn programs(&self) -> Result<Vec<Program>, String> {
        let mut programs = program::all()?;
        for name in self.only {
            let known = |p: &Program| p.name == *name || p.workloads.iter().any(|w| w.name == *name);
            if !programs.iter().any(known) {
                let names: Vec<_> = programs
                    .iter()
                    .flat_map(|p| &p.workloads)
                    .map(|w| w.name.as_str())
                    .collect();
                return Err(format!("no workload '{name}'; there are: {}", names.join(", ")));
            }
        }
        programs.retain_mut(|p| {
            if !self.only.is_empty() && !self.only.contains(&p.name) {
                p.workloads.retain(|w| self.only.contains(&w.name));
            }
            !p.workloads.is_empty() && (!self.small || !p.recipe || p.name == "zlib" || !self.only.is_empty())
        });
        Ok(programs)
    }
}

/// Does a share of the work of a workload; gives the checksum and the seconds of processor time.
pub type Work = Box<dyn FnMut(u64) -> Result<(u64, f64), String>>;

/// Bytes of the arena that a domain of the words mode needs to have.
const ARENA: u64 = 1 << 20;

/// A program in one configuration, ready to run.
pub enum Loaded {
    /// In this process.
    Native(Native),
    /// In a domain.
    Fenced(Domain),
    /// In a process of its own.
    Peer(Peer),
}

impl Loaded {
    /// Loads what was built.
    pub fn new(file: &Path, configuration: Configuration) -> Result<Self, String> {
        match configuration.kind() {
            _ if configuration == Configuration::Executable => {
                Ok(Loaded::Peer(Peer::start(file, configuration)?))
            }
            Kind::Native => Ok(Loaded::Native(Native::load(file)?)),
            Kind::Fenced => {
                let mut options = LoadOptions::default();
                options.allow_integrity = configuration == Configuration::Integrity;
                options.allow_words = configuration == Configuration::Words;
                if configuration == Configuration::Segment {
                    options.addressing = Addressing::Segment;
                }
                let module = Module::open(file, &options).map_err(|e| e.to_string())?;
                let mut imports = Imports::new();
                if configuration == Configuration::Words {
                    // It has no object: whatever the workload reaches is its own.
                    imports = imports.arena(&Arena::new(ARENA).map_err(|e| e.to_string())?);
                }
                let domain = Domain::new(&[module], imports, &DomainOptions::default());
                Ok(Loaded::Fenced(domain.map_err(|e| e.to_string())?))
            }
            Kind::Wasm => Ok(Loaded::Peer(Peer::start(file, configuration)?)),
        }
    }

    /// Makes it ready for another workload after one that failed.
    fn recover(&self) {
        if let Loaded::Fenced(domain) = self {
            // What cannot be reset refuses the next workload too, and that is told there.
            let _ = domain.reset();
        }
    }

    /// One of its workloads.
    pub fn work(&self, symbol: &str) -> Result<Work, String> {
        match self {
            Loaded::Native(object) => {
                let run = object.symbol(symbol)?;
                // SAFETY: every workload has this type (WORKLOAD in kernel.h), and is code of this repository's choice.
                let run: extern "C" fn(u64) -> u64 = unsafe { std::mem::transmute(run) };
                Ok(Box::new(move |permille| {
                    let start = thread_seconds();
                    let sum = run(permille);
                    Ok((sum, thread_seconds() - start))
                }))
            }
            Loaded::Fenced(domain) => {
                let run = domain.entry(symbol).map_err(|e| e.to_string())?;
                Ok(Box::new(move |permille| {
                    let start = thread_seconds();
                    let sum = run
                        .call(&mut Call::ints(&[permille]))
                        .map_err(|e| e.to_string())?
                        .rax;
                    Ok((sum, thread_seconds() - start))
                }))
            }
            Loaded::Peer(peer) => {
                let (peer, symbol) = (peer.clone(), symbol.to_owned());
                Ok(Box::new(move |permille| peer.run(&symbol, permille)))
            }
        }
    }
}

/// Fewer rounds than this say too little.
const LEAST: usize = 3;

/// A program with what was built of it.
struct Ready {
    program: Program,
    built: Vec<(Configuration, Built)>,
}

/// Measures what is planned and is not in `results` yet; `save` gets them as they grow.
pub fn measure(
    kitchen: &Kitchen,
    plan: &Plan,
    progress: &Progress,
    results: &mut Results,
    save: &mut dyn FnMut(&Results) -> Result<(), String>,
) -> Result<(), String> {
    let mut programs = plan.programs()?;
    programs.retain(|p| !results.has(p));
    for program in &mut programs {
        program
            .workloads
            .retain(|w| !results.rows.iter().any(|r| r.name == w.name));
    }
    // What failed before an interruption gets another chance.
    let again = |what: &String, _: &mut String| !programs.iter().any(|p| what.starts_with(&p.name));
    results.failed.retain(again);
    results.skipped.retain(again);
    let ready = build(kitchen, plan, programs, progress, results)?;
    print!("{:<26}", "workload, ms");
    for c in plan.configurations {
        print!(" {:>9}", c.name());
    }
    println!(" {:>5}", "runs");
    let total = ready.iter().map(|r| r.program.workloads.len()).sum();
    let (pace, mut done) = (Pace::new(total), 0);
    for Ready { program, built } in ready {
        let mut loaded = Vec::new();
        for (c, built) in &built {
            match Loaded::new(&built.file, *c) {
                Ok(it) => loaded.push((*c, it)),
                Err(e) => note(results, &program.name, *c, e),
            }
        }
        for workload in &program.workloads {
            progress.say(format_args!("{}: {}", pace.left(done), workload.name));
            let row = one(workload, &loaded, plan, total - done, results);
            progress.clear();
            if let Some(row) = row {
                print_row(&row, plan.configurations);
                results.rows.push(row);
            }
            done += 1;
            save(results)?;
        }
        // One that was interrupted in the middle of a program is in already.
        if !results.sizes.iter().any(|s| s.name == program.name) {
            let text = built.iter().filter(|(_, b)| b.text > 0);
            results.sizes.push(Size {
                text: text.map(|(c, b)| (c.name().to_owned(), b.text)).collect(),
                name: program.name,
            });
        }
        save(results)?;
    }
    Ok(())
}

/// Remembers what could not be built, loaded or run: what a peer's toolchain lacks, or computes otherwise (by its long
/// of 32 bits, by another order of additions), is no failure, as long as it is said.
fn note(results: &mut Results, what: &str, configuration: Configuration, why: String) {
    let list = match configuration.kind() {
        Kind::Wasm => &mut results.skipped,
        _ => &mut results.failed,
    };
    list.insert(format!("{what} {}", configuration.name()), why);
}

/// Builds everything before anything is measured, so that the time that is left for measuring is known.
fn build(
    kitchen: &Kitchen,
    plan: &Plan,
    programs: Vec<Program>,
    progress: &Progress,
    results: &mut Results,
) -> Result<Vec<Ready>, String> {
    let total = programs.len();
    let mut ready = Vec::new();
    for mut program in programs {
        if let Err(e) = program::complete(&mut program) {
            for c in plan.configurations {
                results
                    .failed
                    .insert(format!("{} {}", program.name, c.name()), e.clone());
            }
            continue;
        }
        let mut built = Vec::new();
        for &c in plan.configurations {
            progress.say(format_args!(
                "building {} of {total}: {} {}",
                ready.len() + 1,
                program.name,
                c.name()
            ));
            match kitchen.build(&program, c) {
                Ok(b) => built.push((c, b)),
                Err(e) => note(results, &program.name, c, e),
            }
        }
        progress.clear();
        ready.push(Ready { program, built });
    }
    Ok(ready)
}

fn one(
    workload: &program::Workload,
    loaded: &[(Configuration, Loaded)],
    plan: &Plan,
    left: usize,
    results: &mut Results,
) -> Option<Row> {
    let name = &workload.name;
    let mut checksum = None;
    let mut works = Vec::new();
    let mut fail = |c: Configuration, it: &Loaded, e: String| {
        it.recover();
        note(results, name, c, e);
    };
    // The round that is not counted: here a workload shows whether it works, what its result is, and how long it takes.
    let begin = Instant::now();
    for (c, it) in loaded {
        let first = it.work(&workload.symbol).and_then(|mut work| {
            let sum = work(plan.permille)?.0;
            match *checksum.get_or_insert(sum) {
                0 => Err("the workload failed".to_owned()),
                right if right != sum => Err(different(sum, right)),
                _ => Ok(work),
            }
        });
        match first {
            Ok(work) => works.push((*c, it, work, Vec::new())),
            Err(e) => fail(*c, it, e),
        }
    }
    let checksum = checksum?;
    let runs = plan.budget.turns(begin.elapsed(), left, LEAST, plan.runs);
    for _ in 0..runs {
        works.retain_mut(|(c, it, work, samples)| {
            let outcome = work(plan.permille).and_then(|(sum, seconds)| match sum == checksum {
                true => Ok(seconds),
                false => Err(different(sum, checksum)),
            });
            match outcome {
                Ok(seconds) => samples.push(seconds),
                Err(e) => {
                    fail(*c, it, e);
                    return false;
                }
            }
            true
        });
    }
    let summaries = works.into_iter().map(|(c, _, _, samples)| (c.name(), samples));
    let seconds: BTreeMap<_, _> = summaries
        .map(|(c, samples)| (c.to_owned(), Summary::of(samples)))
        .collect();
    (!seconds.is_empty()).then(|| Row {
        name: name.clone(),
        checksum: format!("{checksum:016x}"),
        seconds,
    })
}

fn different(sum: u64, right: u64) -> String {
    format!("its result is {sum:016x} instead of {right:016x}")
}

fn print_row(row: &Row, configurations: &[Configuration]) {
    print!("{:<26}", row.name);
    for (i, c) in configurations.iter().enumerate() {
        match (
            row.seconds.get(c.name()),
            row.ratio(c.name(), configurations[0].name()),
        ) {
            (Some(s), _) if i == 0 => print!(" {:>9.1}", s.median * 1e3),
            (_, Some(ratio)) => print!(" {ratio:>8.3}x"),
            _ => print!(" {:>9}", "-"),
        }
    }
    println!(" {:>5}", row.seconds.values().map(|s| s.runs).max().unwrap_or(0));
}
