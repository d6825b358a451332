//! The process that loads and runs modules, one after the other, and its owner's end of the line.
//!
//! A worker that dies takes nothing along: its death is that program's result, and the next program
//! gets a new worker.

use crate::program::Outcome;
use ringfence_runtime::{Call, CallError, Domain, DomainOptions, Fault, Imports, LoadOptions, Module};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// How long a program may run inside the worker before the domain's time limit ends it.
const LIMIT: Duration = Duration::from_secs(20);
/// How long the worker may take to answer: longer than its own limit, or the limit did not work.
const PATIENCE: Duration = Duration::from_secs(40);

/// A worker, started when it is first needed.
pub struct Worker {
    running: Option<Running>,
}

struct Running {
    child: Child,
    requests: ChildStdin,
    answers: Receiver<String>,
}

impl Worker {
    /// A worker that is not running yet.
    pub fn new() -> Self {
        Worker { running: None }
    }

    /// Loads a module and calls its `main`.
    pub fn run(&mut self, module: &Path) -> Outcome {
        let mut running = match self.running.take().map_or_else(Running::start, Ok) {
            Ok(running) => running,
            Err(e) => return Outcome::Run(format!("cannot start a worker: {e}")),
        };
        let sent = writeln!(running.requests, "{}", module.display());
        let answer = match sent {
            Ok(()) => running.answers.recv_timeout(PATIENCE),
            Err(_) => Err(RecvTimeoutError::Disconnected),
        };
        match answer {
            Ok(answer) => {
                self.running = Some(running);
                if answer == "pass" {
                    Outcome::Pass
                } else {
                    Outcome::Run(answer)
                }
            }
            Err(RecvTimeoutError::Timeout) => Outcome::Run(format!(
                "THE HOST HANGS: no answer within {} s",
                PATIENCE.as_secs()
            )),
            Err(RecvTimeoutError::Disconnected) => {
                let status = running
                    .child
                    .wait()
                    .map_or_else(|e| e.to_string(), |s| s.to_string());
                Outcome::Run(format!("THE HOST DIED: {status}"))
            }
        }
    }
}

impl Running {
    fn start() -> std::io::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("--worker")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(requests), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(std::io::Error::other("no pipes"));
        };
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                // what the programs print is not an answer
                if let Some(answer) = line.rsplit(ANSWER).next().filter(|a| a.len() < line.len()) {
                    let _ = sender.send(answer.to_owned());
                }
            }
        });
        Ok(Running {
            child,
            requests,
            answers,
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What stands before an answer.
const ANSWER: &str = "\u{1}answer: ";

/// Runs modules named on standard input until it ends.
pub fn serve() {
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let answer = match run_module(Path::new(&line)) {
            Ok(0) => "pass".to_owned(),
            Ok(status) => format!("exit status {status}"),
            Err(why) => why.replace('\n', "; "),
        };
        println!("{ANSWER}{answer}");
    }
}

fn run_module(file: &Path) -> Result<i32, String> {
    let module = Module::open(file, &LoadOptions::default()).map_err(|e| e.to_string())?;
    let mut options = DomainOptions::default();
    options.time_limit = Some(LIMIT);
    let domain = Domain::new(&[module], Imports::new(), &options).map_err(|e| e.to_string())?;
    let main = domain.entry("main").map_err(|e| e.to_string())?;
    match main.call(&mut Call::ints(&[])) {
        Ok(returned) => Ok(returned.rax as i32),
        Err(CallError::Exit(status)) => Ok(status),
        Err(CallError::Fault(fault)) => Err(describe(&fault)),
        Err(other) => Err(other.to_string()),
    }
}

/// A fault with its innermost functions.
fn describe(fault: &Fault) -> String {
    let mut text = fault.to_string();
    for frame in fault.backtrace().iter().take(3) {
        let name = frame.function.as_deref().unwrap_or("?");
        text.push_str(&format!(" < {name}+{:#x}", frame.offset));
    }
    text
}
