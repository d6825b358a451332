//! Workloads behind another engine: a process that answers requests on its standard streams.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::rc::Rc;

use crate::configuration::Configuration;

struct Process {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

/// One such process. It ends with its last clone.
///
/// Requests are lines `SYMBOL THOUSANDTHS`, answers lines `CHECKSUM SECONDS`, the checksum in hexadecimal, or
/// `error TEXT`. The process measures its own thread.
#[derive(Clone)]
pub struct Peer(Rc<RefCell<Process>>);

impl Peer {
    /// Starts the engine of a configuration on what was built for it.
    pub fn start(file: &Path, configuration: Configuration) -> Result<Self, String> {
        let mut command = match configuration {
            Configuration::Wasmtime => {
                let mut command = Command::new(wasmtime()?);
                command.arg(file);
                command
            }
            _ => Command::new(file),
        };
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = spawned.map_err(|e| format!("{command:?}: {e}"))?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(format!("{command:?}: no pipes"));
        };
        Ok(Peer(Rc::new(RefCell::new(Process {
            child,
            to,
            from: BufReader::new(from),
        }))))
    }

    /// Sends a line and gives the words of the answer.
    pub fn ask(&self, request: &str) -> Result<Vec<String>, String> {
        let mut process = self.0.borrow_mut();
        let mut line = String::new();
        let sent = writeln!(process.to, "{request}").and_then(|()| process.to.flush());
        let got = sent.and_then(|()| process.from.read_line(&mut line));
        match (got, line.strip_prefix("error ")) {
            (Ok(n), None) if n > 0 => Ok(line.split_whitespace().map(str::to_owned).collect()),
            (Ok(_), Some(text)) => Err(text.trim().to_owned()),
            _ => Err(format!(
                "the peer ended at '{request}': {:?}",
                process.child.wait()
            )),
        }
    }

    /// Runs a workload.
    pub fn run(&self, symbol: &str, permille: u64) -> Result<(u64, f64), String> {
        let words = self.ask(&format!("{symbol} {permille}"))?;
        let parsed = match &words[..] {
            [sum, seconds] => u64::from_str_radix(sum, 16).ok().zip(seconds.parse().ok()),
            _ => None,
        };
        parsed.ok_or_else(|| format!("the peer answered '{}'", words.join(" ")))
    }
}

/// The program in `bench/wasmtime`, as `bench/run.sh` built it.
fn wasmtime() -> Result<PathBuf, String> {
    std::env::var_os("RINGFENCE_WASMTIME")
        .filter(|p| !p.is_empty())
        .map(PathBuf::from)
        .ok_or_else(|| "Wasmtime was not built; scripts/setup.sh bench says why".to_owned())
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
