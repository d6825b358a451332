//! Which programs are built at which levels.

use crate::program::Program;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Optimisation levels, and of how many programs one is taken in a normal run.
const LEVELS: [(&str, usize); 7] = [
    ("-O2", 1),
    ("-O0", 8),
    ("-O1", 8),
    ("-O3", 8),
    ("-Os", 8),
    ("-O2 -g", 16),
    ("-O3 -march=x86-64-v3", 8),
];

const USAGE: &str = "\
usage: torture [--all] [--every N] [--level 'FLAGS'] [--only NAME] [--jobs N] [--verbose] SOURCES BUILD
       torture --random N [--seed S] [--jobs N] BUILD
  --all            every program at every level
  --every N        every Nth program at every level
  --level FLAGS    only this level (repeatable)
  --only NAME      only programs whose name contains NAME, at every level (repeatable)
  --random N       N programs by csmith instead, from seed S (default 1) on
  --keep           keep modules and objects in BUILD
  --jobs N         at once (default: the number of processors)
  --verbose        print every program";

/// The command line.
pub struct Options {
    /// Serve as the process that runs modules.
    pub worker: bool,
    /// This many random programs instead of the suite.
    pub random: Option<usize>,
    /// The first one's seed.
    pub seed: u64,
    /// Where the suite's programs are.
    pub sources: PathBuf,
    /// Where to build.
    pub build: PathBuf,
    /// How many at once.
    pub jobs: usize,
    /// Print every program.
    pub verbose: bool,
    /// Keep what was built.
    pub keep: bool,
    every: Option<usize>,
    levels: Vec<String>,
    only: Vec<String>,
}

impl Options {
    /// Reads the command line; an error is the text to show.
    pub fn parse(args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Options {
            worker: false,
            random: None,
            seed: 1,
            sources: PathBuf::new(),
            build: PathBuf::new(),
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
            verbose: false,
            keep: false,
            every: None,
            levels: Vec::new(),
            only: Vec::new(),
        };
        let mut paths = Vec::new();
        let mut args = args;
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or(format!("{arg} needs a value\n{USAGE}"));
            match arg.as_str() {
                "--worker" => options.worker = true,
                "--all" => options.every = Some(1),
                "--every" => options.every = Some(number(&value()?)?),
                "--level" => options.levels.push(value()?),
                "--only" => options.only.push(value()?),
                "--random" => options.random = Some(number(&value()?)?),
                "--seed" => options.seed = number(&value()?)? as u64,
                "--jobs" => options.jobs = number(&value()?)?,
                "--verbose" => options.verbose = true,
                "--keep" => options.keep = true,
                _ if arg.starts_with('-') => return Err(USAGE.into()),
                _ => paths.push(PathBuf::from(arg)),
            }
        }
        if options.random.is_some() {
            [options.build] = paths.try_into().map_err(|_| USAGE)?;
        } else if !options.worker {
            [options.sources, options.build] = paths.try_into().map_err(|_| USAGE)?;
        }
        Ok(options)
    }
}

fn number(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|n| *n > 0)
        .ok_or(format!("'{text}' is not a positive number"))
}

/// Collects C and C++ files below `dir`.
fn find(dir: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let entries = std::fs::read_dir(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    for path in entries.flatten().map(|e| e.path()) {
        if path.is_dir() {
            // programs in several files, each with a library of its own
            if !path.ends_with("builtins") {
                find(&path, files)?;
            }
        } else if path.extension().is_some_and(|e| e == "c" || e == "C") {
            files.push(path);
        }
    }
    Ok(())
}

/// The work, in a fixed order.
pub struct Plan {
    programs: Vec<Program>,
    jobs: Vec<(usize, &'static str)>,
    expected: HashMap<String, String>,
}

impl Plan {
    /// Reads the suite and the list of expected failures.
    pub fn new(options: &Options) -> Result<Self, String> {
        let mut files = Vec::new();
        find(&options.sources, &mut files)?;
        files.sort();
        let mut programs = Vec::new();
        for file in &files {
            programs.extend(Program::read(file, &options.sources)?);
        }
        let mut jobs = Vec::new();
        for (phase, (level, step)) in LEVELS.iter().enumerate() {
            if !options.levels.is_empty() && !options.levels.iter().any(|l| l == level) {
                continue;
            }
            let step = if options.only.is_empty() {
                options.every.unwrap_or(*step)
            } else {
                1
            };
            for (i, program) in programs.iter().enumerate() {
                // each level starts elsewhere, so that together they see more programs
                let named = options.only.is_empty() || options.only.iter().any(|n| program.name.contains(n));
                if i % step == phase % step && named {
                    jobs.push((i, *level));
                }
            }
        }
        let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("expected.txt");
        let text = std::fs::read_to_string(&list).map_err(|e| format!("{}: {e}", list.display()))?;
        let expected = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.split_once(':'))
            .map(|(name, reason)| (name.trim().to_owned(), reason.trim().to_owned()))
            .collect();
        Ok(Plan {
            programs,
            jobs,
            expected,
        })
    }

    /// The `index`th thing to do.
    pub fn job(&self, index: usize) -> Option<(&Program, &'static str)> {
        self.jobs
            .get(index)
            .map(|&(program, level)| (&self.programs[program], level))
    }

    /// Why this program is expected to fail at this level, if it is. A name in the list that ends in a slash stands for a directory;
    /// one with a level behind it is meant at that level only.
    pub fn expected(&self, name: &str, level: &str) -> Option<&str> {
        let directory = || name.split_once('/').map(|(first, _)| format!("{first}/"));
        let entry = self.listed(name, level).or_else(directory)?;
        self.expected.get(&entry).map(String::as_str)
    }

    /// The entry of the list that means this very program at this level.
    pub fn listed(&self, name: &str, level: &str) -> Option<String> {
        let candidates = [name.to_owned(), format!("{name} {level}")];
        candidates.into_iter().find(|c| self.expected.contains_key(c))
    }
}
