//! The command line.

use std::path::PathBuf;

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

/// What is to be done.
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
    /// Every so manyth program, at every level.
    pub every: Option<usize>,
    /// Only these levels; none stands for all.
    pub levels: Vec<String>,
    /// Only programs whose names contain one of these; none stands for all.
    pub only: Vec<String>,
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
