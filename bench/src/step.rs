//! Commands that make files out of others, run when they have to.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A command that makes a file out of others.
pub struct Step {
    command: Command,
    output: PathBuf,
    inputs: Vec<PathBuf>,
}

impl Step {
    /// `command` is complete except for `-o output`.
    pub fn new(mut command: Command, output: &Path, inputs: &[PathBuf]) -> Self {
        command.arg("-o").arg(output);
        let mut inputs = inputs.to_vec();
        // A compiler that changed makes everything again.
        let compiler = PathBuf::from(command.get_program());
        if compiler.is_absolute() {
            inputs.push(compiler);
        }
        Step {
            command,
            output: output.to_owned(),
            inputs,
        }
    }

    fn record(&self) -> PathBuf {
        let mut name = self.output.clone().into_os_string();
        name.push(".cmd");
        name.into()
    }

    fn fresh(&self) -> bool {
        let time = |p: &Path| p.metadata().and_then(|m| m.modified()).ok();
        let Some(made) = time(&self.output) else {
            return false;
        };
        std::fs::read_to_string(self.record()).is_ok_and(|c| c == format!("{:?}", self.command))
            && self.inputs.iter().all(|i| time(i).is_some_and(|t| t <= made))
    }

    /// Runs the command unless its output is newer than all inputs and was made by the same command.
    pub fn run(&mut self) -> Result<(), String> {
        if self.fresh() {
            return Ok(());
        }
        let run = self
            .command
            .output()
            .map_err(|e| format!("{:?}: {e}", self.command.get_program()))?;
        if !run.status.success() {
            let text = String::from_utf8_lossy(&run.stderr);
            let lines: Vec<_> = text.lines().take(30).collect();
            return Err(format!("{:?} failed:\n{}", self.command, lines.join("\n")));
        }
        std::fs::write(self.record(), format!("{:?}", self.command)).map_err(|e| e.to_string())
    }
}

/// Runs steps on all processors; gives one of the errors.
pub fn run_all(steps: Vec<Step>) -> Result<(), String> {
    let next = AtomicUsize::new(0);
    let steps: Vec<_> = steps.into_iter().map(Mutex::new).collect();
    let failed = Mutex::new(Ok(()));
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(step) = steps.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = step.lock().map_err(|e| e.to_string()).and_then(|mut s| s.run());
                    if let (Err(e), Ok(mut first)) = (outcome, failed.lock()) {
                        *first = Err(e);
                        next.store(steps.len(), Ordering::Relaxed);
                    }
                }
            });
        }
    });
    failed.into_inner().map_err(|e| e.to_string())?
}
