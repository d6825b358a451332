//! Child processes: each tries a few cases, so that whatever ends it is seen, and told with the case.

use crate::Kind;
use crate::case::Case;
use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};

/// Processor time of one child, in seconds: behind it something is endless.
const SECONDS: u64 = 120;
/// Seconds until somebody waits for something that will not come.
const WAIT: u32 = 600;
/// Data that a child may have: less than what would hurt the machine.
const DATA: u64 = 6 << 30;

/// What became of one case.
pub type Told = Result<String, String>;

/// Tries cases in children, one after the other; a case that ends its child is an error, and the next child goes on behind it.
///
/// # Panics
/// If there are no processes to be had.
pub fn run(kind: &Kind, cases: &[Case]) -> Vec<Told> {
    let mut told: Vec<Told> = Vec::new();
    while told.len() < cases.len() {
        let rest = &cases[told.len()..];
        let rest = &rest[..rest.len().min(kind.batch)];
        let (mut some, end, complaint) = child(kind, rest);
        if some.len() < rest.len() {
            some.push(Err(format!("{}{complaint}", died(end))));
        }
        told.extend(some);
    }
    told
}

fn died(end: ExitStatus) -> String {
    match end.signal() {
        Some(libc::SIGABRT) => "the process was aborted".into(),
        Some(libc::SIGXCPU | libc::SIGKILL) => format!("the process took more than {SECONDS} s"),
        Some(libc::SIGALRM) => format!("the process waited more than {WAIT} s"),
        Some(signal) => format!("the process was ended by signal {signal}"),
        None => format!("the process ended with {}", end.code().unwrap_or(-1)),
    }
}

/// Runs a child; what it told, how it ended, the last that it complained of.
fn child(kind: &Kind, cases: &[Case]) -> (Vec<Told>, ExitStatus, String) {
    let mut command = Command::new("/proc/self/exe");
    command.args(["child", kind.name]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // SAFETY: these calls may be made between fork and exec.
    unsafe {
        command.pre_exec(|| {
            let limit = |what, value| {
                let limit = libc::rlimit {
                    rlim_cur: value,
                    rlim_max: value,
                };
                libc::setrlimit(what, &raw const limit);
            };
            limit(libc::RLIMIT_CPU, SECONDS);
            limit(libc::RLIMIT_DATA, DATA);
            limit(libc::RLIMIT_CORE, 0);
            libc::alarm(WAIT);
            Ok(())
        });
    }
    let mut child = command.spawn().expect("a child");
    let mut text = String::new();
    for case in cases {
        let _ = writeln!(text, "{case}");
    }
    // What does not arrive was not read, because the child has ended.
    let _ = child.stdin.take().expect("piped").write_all(text.as_bytes());
    let out = child.wait_with_output().expect("our child");
    let lines = String::from_utf8_lossy(&out.stdout);
    let told = lines.lines().filter_map(|line| {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "ok" => Some(Ok(rest.to_owned())),
            "failed" => Some(Err(rest.to_owned())),
            _ => None,
        }
    });
    let complaint = String::from_utf8_lossy(&out.stderr);
    let complaint: Vec<&str> = complaint.lines().rev().take(3).collect();
    let complaint: String = complaint.into_iter().rev().map(|l| format!("; {l}")).collect();
    (told.collect(), out.status, complaint)
}

/// What a child does: tries each line of its input.
///
/// # Panics
/// If the parent does not read.
pub fn serve(kind: &Kind) {
    for line in std::io::stdin().lines() {
        let line = line.expect("text");
        // For each anew: on a busy machine many short ones take long.
        // SAFETY: a number only.
        unsafe { libc::alarm(WAIT) };
        let told = Case::parse(&line, kind.shapes).and_then(|case| (kind.run)(&case));
        let plain = |text: String| text.replace('\n', " ");
        let mut out = std::io::stdout().lock();
        match told {
            Ok(told) => writeln!(out, "ok {}", plain(told)),
            Err(why) => writeln!(out, "failed {}", plain(why)),
        }
        .and_then(|()| out.flush())
        .expect("the parent reads");
    }
}
