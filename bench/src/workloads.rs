//! Whole workloads, built in several ways and run in turn.

use std::collections::BTreeMap;
use std::path::Path;

use ringfence_runtime::{Call, Domain, DomainOptions, Imports, LoadOptions, Module};
use serde::{Deserialize, Serialize};

use crate::build::{Kitchen, Native};
use crate::configuration::{Configuration, Kind};
use crate::measure::{Subject, Summary, rounds, thread_seconds};
use crate::peer::Peer;
use crate::program::{self, Program};
use crate::progress::Progress;

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
        Some(self.seconds.get(of)?.median / self.seconds.get(over)?.median)
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
    /// What could not be built or run, and why.
    pub skipped: BTreeMap<String, String>,
}

/// What to measure.
pub struct Plan<'a> {
    /// Interleaved rounds.
    pub runs: usize,
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
            Kind::Native => Ok(Loaded::Native(Native::load(file)?)),
            Kind::Fenced => {
                let mut options = LoadOptions::default();
                options.allow_integrity = configuration == Configuration::Integrity;
                let module = Module::open(file, &options).map_err(|e| e.to_string())?;
                let domain = Domain::new(&[module], Imports::new(), &DomainOptions::default());
                Ok(Loaded::Fenced(domain.map_err(|e| e.to_string())?))
            }
            Kind::Wasm => Ok(Loaded::Peer(Peer::start(file, configuration)?)),
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

/// Measures what is planned. Configurations of WebAssembly that cannot be built are left out, with the reason.
pub fn measure(kitchen: &Kitchen, plan: &Plan, progress: &Progress) -> Result<Results, String> {
    let mut results = Results::default();
    print!("{:<26}", "workload, ms");
    for c in plan.configurations {
        print!(" {:>9}", c.name());
    }
    println!();
    let programs = plan.programs()?;
    let total: usize = programs.iter().map(|p| p.workloads.len()).sum();
    for mut program in programs {
        program::complete(&mut program)?;
        let mut text = BTreeMap::new();
        let mut loaded = Vec::new();
        for &c in plan.configurations {
            progress.say(format_args!(
                "{} of {total}: building {} {}",
                results.rows.len() + 1,
                program.name,
                c.name()
            ));
            let ready = kitchen
                .build(&program, c)
                .and_then(|built| Ok((built.text, Loaded::new(&built.file, c)?)));
            match ready {
                Ok((size, it)) => {
                    if size > 0 {
                        text.insert(c.name().to_owned(), size);
                    }
                    loaded.push((c, it));
                }
                Err(e) if c.kind() == Kind::Wasm => {
                    results
                        .skipped
                        .insert(format!("{} {}", program.name, c.name()), e);
                }
                Err(e) => return Err(format!("{} {}: {e}", program.name, c.name())),
            }
        }
        for workload in &program.workloads {
            progress.say(format_args!(
                "{} of {total}: {}",
                results.rows.len() + 1,
                workload.name
            ));
            let row = one(workload, &loaded, plan, &mut results.skipped)?;
            progress.clear();
            print_row(&row, plan.configurations);
            results.rows.push(row);
        }
        results.sizes.push(Size {
            name: program.name,
            text,
        });
    }
    Ok(results)
}

fn one(
    workload: &program::Workload,
    loaded: &[(Configuration, Loaded)],
    plan: &Plan,
    skipped: &mut BTreeMap<String, String>,
) -> Result<Row, String> {
    let name = &workload.name;
    let mut checksum = None;
    let mut works = Vec::new();
    // The round that is not counted: here a workload shows whether it works, and what its result is.
    for (c, it) in loaded {
        let first = it.work(&workload.symbol).and_then(|mut work| {
            let sum = work(plan.permille)?.0;
            match *checksum.get_or_insert(sum) {
                0 => Err("the workload failed".to_owned()),
                right if right != sum => Err(format!("its result is {sum:016x} instead of {right:016x}")),
                _ => Ok(work),
            }
        });
        match first {
            Ok(work) => works.push((*c, work)),
            // The toolchains of the peers lack things that some workloads need; that shows here.
            Err(e) if c.kind() == Kind::Wasm => {
                skipped.insert(format!("{name} {}", c.name()), e);
            }
            Err(e) => return Err(format!("{name} {}: {e}", c.name())),
        }
    }
    let checksum = checksum.unwrap_or_default();
    let mut subjects: Vec<Subject> = Vec::new();
    for (c, work) in &mut works {
        let run = move || match work(plan.permille)? {
            (sum, seconds) if sum == checksum => Ok(seconds),
            (sum, _) => Err(format!("its result is {sum:016x} instead of {checksum:016x}")),
        };
        subjects.push((c.name(), Box::new(run)));
    }
    let summaries = rounds(plan.runs, &mut subjects).map_err(|e| format!("{name}: {e}"))?;
    let seconds = subjects
        .iter()
        .zip(summaries)
        .map(|((c, _), s)| ((*c).to_owned(), s))
        .collect();
    Ok(Row {
        name: name.clone(),
        checksum: format!("{checksum:016x}"),
        seconds,
    })
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
    println!();
}
