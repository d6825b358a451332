//! Which programs are built at which levels.

use crate::options::Options;
use crate::program::Program;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Optimisation levels, and of how many programs one is taken in a normal run.
const LEVELS: [(&str, usize); 9] = [
    ("-O2", 1),
    ("-O0", 8),
    ("-O1", 8),
    ("-O3", 8),
    ("-Os", 8),
    ("-O2 -g", 16),
    ("-O3 -march=x86-64-v3", 8),
    ("-O2 --isolation=words", 8),
    ("-Os --isolation=words", 16),
];

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
