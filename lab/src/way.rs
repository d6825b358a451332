//! The ways in which a subject is built and run, and where that is done.

use crate::keep::guard;
use std::path::PathBuf;
use std::process::Command;

/// Requests of a run.
pub const REQUESTS: u32 = 8;

/// Where things are.
#[derive(Clone)]
pub struct Places {
    /// The top of the repository.
    pub root: PathBuf,
    /// The command `ringfence`.
    pub ringfence: PathBuf,
    /// Where all is built.
    pub out: PathBuf,
}

impl Places {
    /// Where the rooms of runs are.
    pub fn rooms(&self) -> PathBuf {
        self.out.join("rooms")
    }
}

/// All ways.
pub const WAYS: [Way; 3] = [Way::Native, Way::Fenced, Way::Words];

/// How a subject is built and run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Linked with the host.
    Native,
    /// A module in a domain of the host.
    Fenced,
    /// The same, with rights to words of the host's objects.
    Words,
}

impl Way {
    /// The name in tables and of files.
    pub fn name(self) -> &'static str {
        ["native", "fenced", "words"][self as usize]
    }

    /// Its compiler.
    pub fn compiler(self, places: &Places) -> Command {
        let mut command = match self {
            Way::Native => return Command::new("gcc"),
            _ => Command::new(&places.ringfence),
        };
        command.arg("cc");
        if self == Way::Words {
            command.arg(WORDS);
        }
        command
    }
}

/// What makes a module one with rights to words.
pub const WORDS: &str = "--isolation=words";

/// Runs a command to its end; its standard output.
///
/// # Errors
/// What it said of its failure.
pub fn run(command: &mut Command) -> Result<String, String> {
    guard(command);
    let done = command
        .output()
        .map_err(|e| format!("{:?}: {e}", command.get_program()))?;
    let said = String::from_utf8_lossy(&done.stderr);
    match done.status.success() {
        true => Ok(String::from_utf8_lossy(&done.stdout).into_owned()),
        false => Err(format!("{command:?}:\n{}", said.trim_end())),
    }
}
