//! The process that loads and runs modules, one after the other, and its owner's end of the line.
//!
//! A worker that dies takes nothing along: its death is that program's result, and the next program
//! gets a new worker.

use crate::outcome::Outcome;
use ringfence_policy::program::{self, RunError};
use ringfence_policy::{Captured, Policy, Rights, Stream};
use ringfence_runtime::{
    Arena, Call, CallError, Domain, DomainOptions, Fault, Imports, Isolation, LoadOptions, Module,
};
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

    /// Loads a module, calls its `main`, and tells whether that came to an end with status 0.
    pub fn run(&mut self, module: &Path) -> Outcome {
        match self.ask(module) {
            Ok(answer) if answer.starts_with(GOOD) => Outcome::Pass,
            Ok(answer) | Err(answer) => Outcome::Run(answer),
        }
    }

    /// Loads a module and calls its `main`: how it ended, and after a [`GOOD`] end what it wrote.
    pub fn ask(&mut self, module: &Path) -> Result<String, String> {
        let mut running = match self.running.take().map_or_else(Running::start, Ok) {
            Ok(running) => running,
            Err(e) => return Err(format!("cannot start a worker: {e}")),
        };
        let sent = writeln!(running.requests, "{}", module.display());
        let answer = match sent {
            Ok(()) => running.answers.recv_timeout(PATIENCE),
            Err(_) => Err(RecvTimeoutError::Disconnected),
        };
        match answer {
            Ok(answer) => {
                self.running = Some(running);
                Ok(answer)
            }
            Err(RecvTimeoutError::Timeout) => Err(format!(
                "THE HOST HANGS: no answer within {} s",
                PATIENCE.as_secs()
            )),
            Err(RecvTimeoutError::Disconnected) => {
                let status = running
                    .child
                    .wait()
                    .map_or_else(|e| e.to_string(), |s| s.to_string());
                Err(format!("THE HOST DIED: {status}"))
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

/// How the answer for a program begins that came to its end; what it wrote follows, escaped.
pub const GOOD: &str = "exit 0 ";

/// Runs modules named on standard input until it ends.
pub fn serve() {
    let scratch = std::env::temp_dir().join(format!("rf-torture-{}", std::process::id()));
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let written = Captured::default();
        let answer = match run_module(Path::new(&line), &written, &scratch) {
            Ok(status) => {
                let bytes = written.take_first(MOST);
                format!("exit {status} {}", bytes.escape_ascii())
            }
            Err(why) => why.replace('\n', "; "),
        };
        // The next program finds it empty.
        let _ = std::fs::remove_dir_all(&scratch);
        println!("{ANSWER}{answer}");
    }
}

/// Bytes of the arena of a program with rights to words.
const ARENA: u64 = 64 << 20;

/// Most that is compared of what a program writes.
const MOST: usize = 1 << 16;

/// Runs a program that may write to its streams and make files in a directory of its own.
fn run_module(file: &Path, written: &Captured, scratch: &Path) -> Result<i32, String> {
    std::fs::create_dir_all(scratch).map_err(|e| format!("{}: {e}", scratch.display()))?;
    let mut load = LoadOptions::default();
    load.allow_words = true;
    let module = Module::open(file, &load).map_err(|e| e.to_string())?;
    let mut options = DomainOptions::default();
    options.time_limit = Some(LIMIT);
    let monitor = Policy::new()
        .dir(scratch, "/tmp", Rights::Write)
        .stdin(Stream::Null)
        .stdout(Stream::Capture(written.clone()))
        .stderr(Stream::Capture(written.clone()))
        .clocks(true)
        .args(["program"])
        .start()
        .map_err(|e| e.to_string())?;
    let mut imports = Imports::new().policy(monitor.clone());
    if module.isolation() == Isolation::Words {
        // What it allocates are objects there, so that it has both kinds of pointers.
        let arena = Arena::new(ARENA).map_err(|e| e.to_string())?;
        arena.check_heaps();
        imports = imports.arena(&arena);
    }
    let domain = Domain::new(&[module], imports, &options).map_err(|e| e.to_string())?;
    // A program with a libc starts there; without one, at its main.
    let result = match program::run(&domain, &monitor) {
        Err(RunError::NoMain(_)) => {
            let main = domain.entry("main").map_err(|e| e.to_string())?;
            match main.call(&mut Call::ints(&[])) {
                Ok(returned) => Ok(returned.rax as i32),
                Err(CallError::Exit(status)) => Ok(status),
                Err(e) => Err(e.into()),
            }
        }
        other => other,
    };
    result.map_err(|e| match e {
        RunError::Call(CallError::Fault(fault)) => describe(&fault),
        other => other.to_string(),
    })
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
