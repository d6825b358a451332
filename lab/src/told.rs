//! What a host tells by its output and its end.

use crate::keep::guard;
use crate::way::REQUESTS;
use serde::{Deserialize, Serialize};
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// What became of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// All requests were served as without the fault.
    None,
    /// The subject told an error by itself.
    Error,
    /// A request got another answer.
    Wrong,
    /// A call ended with a fault or limit, and the host served on.
    Contained,
    /// The same, because it had no right to a word of the host's.
    Denied,
    /// The host's own data was changed.
    Harmed,
    /// The host was killed.
    Crashed,
    /// The host hung.
    Hung,
    /// The rewriter, linker or verifier refused it.
    Refused,
}

/// All outcomes.
pub const OUTCOMES: [Outcome; 9] = [
    Outcome::None,
    Outcome::Error,
    Outcome::Wrong,
    Outcome::Contained,
    Outcome::Denied,
    Outcome::Harmed,
    Outcome::Crashed,
    Outcome::Hung,
    Outcome::Refused,
];

impl Outcome {
    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::None => "none",
            Outcome::Error => "error",
            Outcome::Wrong => "wrong answer",
            Outcome::Contained => "contained, host goes on",
            Outcome::Denied => "caught by rights to words, host goes on",
            Outcome::Harmed => "host's data changed",
            Outcome::Crashed => "host crashed",
            Outcome::Hung => "host hung",
            Outcome::Refused => "refused at load",
        }
    }
}

/// What a run told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Told {
    /// What became of it.
    pub outcome: Outcome,
    /// Whether a wrong answer was given before anything was noticed.
    pub propagated: bool,
    /// The first fault's message, or why the host ended.
    pub symptom: String,
    /// Nanoseconds of each reset.
    pub recovered: Vec<u64>,
    /// Whether what it left in the host's storage is whole; `None` if it keeps nothing there.
    pub whole: Option<bool>,
}

/// Seconds of processor time that a host may take: twenty times what it does without a fault.
pub const PROCESSOR: u64 = 2;

/// What a host with a fence may take besides: it ends a call whose system calls do not end after five seconds by the clock (`host.c`), in
/// which four threads may work.
pub const ENDED: u64 = 4 * 5;

/// Bytes of addresses that a host without a fence may take: some hundred threads' stacks.
const ADDRESSES: u64 = 4 << 30;
/// Naps between two looks at a host's threads.
const NAPS: u32 = 20;
const NAP: Duration = Duration::from_millis(1);
/// How often in succession all threads sleep, without having run in between, until a host hangs.
const SLEEPING: u32 = 150;
/// For one that neither ends nor sleeps nor runs: so many looks.
const PATIENCE: u32 = 15_000;

/// What the message of a denied access has.
pub const DENIED: &str = "; the domain has ";

/// Whether all threads of a process sleep, and the processor time that they have had, in ticks.
fn asleep(pid: i32) -> Option<(bool, u64)> {
    let (mut sleep, mut ticks) = (true, 0);
    for thread in std::fs::read_dir(format!("/proc/{pid}/task")).ok()? {
        let stat = std::fs::read_to_string(thread.ok()?.path().join("stat")).ok()?;
        // Behind the name, which is in brackets: the state, and as 12th and 13th the time.
        let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
        sleep &= fields.first() == Some(&"S");
        ticks += fields
            .get(11..13)?
            .iter()
            .filter_map(|n| n.parse::<u64>().ok())
            .sum::<u64>();
    }
    Some((sleep, ticks))
}

/// How long some processes have slept, in looks.
#[derive(Default)]
struct Sleep {
    ticks: u64,
    looks: u32,
}

impl Sleep {
    fn look(&mut self, pids: &[i32]) {
        let told: Vec<_> = pids.iter().map(|&p| asleep(p).unwrap_or((false, 0))).collect();
        let ticks = told.iter().map(|(_, t)| t).sum();
        let still = told.iter().all(|(s, _)| *s) && ticks == self.ticks;
        self.looks = if still { self.looks + 1 } else { 0 };
        self.ticks = ticks;
    }
}

/// The child's end; none if it hangs: it sleeps, and so do the others that it may be waiting for.
///
/// Looks are counted, not time: a machine that stands still lets nobody hang.
///
/// # Errors
/// It cannot be asked.
pub fn end(child: &mut Child, others: &dyn Fn() -> Vec<i32>) -> Result<Option<ExitStatus>, String> {
    let pid = i32::try_from(child.id()).map_err(|e| e.to_string())?;
    let (mut own, mut all) = (Sleep::default(), Sleep::default());
    for nap in 1..PATIENCE * NAPS {
        if let Some(status) = child.try_wait().map_err(|e| e.to_string())? {
            return Ok(Some(status));
        }
        std::thread::sleep(NAP);
        if nap % NAPS != 0 {
            continue;
        }
        own.look(&[pid]);
        // Only then: a server has many processes.
        if own.looks < SLEEPING {
            all = Sleep::default();
            continue;
        }
        let mut pids = others();
        pids.push(pid);
        all.look(&pids);
        if pids.len() == 1 || all.looks > SLEEPING {
            break;
        }
    }
    let _ = child.kill();
    let _ = child.wait();
    Ok(None)
}

/// Nobody else is waited for.
pub fn alone() -> Vec<i32> {
    Vec::new()
}

/// Limits what a host's process may take: so many seconds of processor time. It does not outlive the laboratory.
pub fn limit(command: &mut Command, seconds: u64) {
    guard(command);
    limits(command, [(libc::RLIMIT_CPU, seconds), (libc::RLIMIT_CORE, 0)]);
}

/// Limits what a host without a fence may take of addresses, and so of threads: one that makes them without end would leave no processes for
/// anybody.
pub fn bound(command: &mut Command) {
    limits(command, [(libc::RLIMIT_AS, ADDRESSES)]);
}

fn limits<const N: usize>(command: &mut Command, all: [(libc::__rlimit_resource_t, u64); N]) {
    // SAFETY: system calls that are safe between fork and exec, on structures of the stack.
    unsafe {
        command.pre_exec(move || {
            for (resource, most) in all {
                let limit = libc::rlimit {
                    rlim_cur: most,
                    rlim_max: most,
                };
                if libc::setrlimit(resource, &raw const limit) != 0 {
                    return Err(std::io::Error::last_os_error());
                }
            }
            Ok(())
        });
    }
}

/// A host's end when all is well.
pub fn well() -> ExitStatus {
    ExitStatus::from_raw(0)
}

/// A host's end when it is not.
pub fn failed() -> ExitStatus {
    ExitStatus::from_raw(1 << 8)
}

/// Runs a host, which may take so many seconds of processor time, to its end.
///
/// # Errors
/// It cannot be run.
pub fn serve(command: &mut Command, seconds: u64) -> Result<Told, String> {
    limit(command, seconds);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| format!("{:?}: {e}", command.get_program()))?;
    let mut out = child.stdout.take().ok_or("no output")?;
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        // What was told before the end counts; nothing else can be read then.
        let _ = out.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    });
    let status = end(&mut child, &alone)?;
    let text = reader.join().map_err(|_| "the reader failed")?;
    Ok(judge(&text, status))
}

/// What a host's output and end say.
pub fn judge(text: &str, status: Option<ExitStatus>) -> Told {
    let has = |word: &str| text.lines().any(|l| l.split(' ').next() == Some(word));
    let first = |word: &str| text.lines().find_map(|l| l.strip_prefix(word)).map(str::trim);
    let killed = status.and_then(|s| s.signal());
    let served = text
        .lines()
        .filter(|l| {
            matches!(
                l.split(' ').next(),
                Some("ok" | "error" | "wrong" | "fault" | "over")
            )
        })
        .count();
    let ended = text.ends_with("end\n") && served == REQUESTS as usize && status.is_some_and(|s| s.success());
    let outcome = match (ended, killed) {
        (false, Some(libc::SIGXCPU | libc::SIGKILL)) => Outcome::Hung,
        (false, None) if status.is_none() => Outcome::Hung,
        (false, _) if has("refused") => Outcome::Refused,
        (false, _) => Outcome::Crashed,
        (true, _) if !text.contains("heap ok\n") => Outcome::Harmed,
        (true, _) if first("fault ").is_some_and(|f| f.contains(DENIED)) => Outcome::Denied,
        (true, _) if has("fault") => Outcome::Contained,
        (true, _) if has("wrong") => Outcome::Wrong,
        (true, _) if has("error") => Outcome::Error,
        (true, _) => Outcome::None,
    };
    let numbers = text
        .lines()
        .filter_map(|l| l.strip_prefix("recovered ")?.parse().ok());
    Told {
        outcome,
        propagated: has("wrong"),
        symptom: ["fault ", "refused ", "lost "]
            .into_iter()
            .find_map(first)
            .map_or_else(
                || killed.map(|s| format!("signal {s}")).unwrap_or_default(),
                String::from,
            ),
        recovered: numbers.collect(),
        whole: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper() -> Child {
        let sleep = Command::new("sleep").arg("1000").spawn();
        sleep.expect("a process")
    }

    #[test]
    fn a_host_without_a_fence_has_few_addresses() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "ulimit -v"]);
        bound(&mut shell);
        let said = shell.output().expect("a shell").stdout;
        let said = String::from_utf8_lossy(&said);
        assert_eq!(said.trim().parse(), Ok(ADDRESSES >> 10));
    }

    #[test]
    fn a_host_that_sleeps_for_good_hangs() {
        let mut child = sleeper();
        assert!(end(&mut child, &alone).expect("asked").is_none());
        assert!(child.try_wait().expect("asked").is_some(), "it has ended");
    }

    #[test]
    fn a_host_that_waits_for_somebody_who_works_does_not_hang() {
        let mut busy = Command::new("sh").args(["-c", "while :; do :; done"]).spawn();
        let busy = busy.as_mut().expect("a process");
        let other = i32::try_from(busy.id()).expect("a number");
        let looked = std::cell::Cell::new(0);
        let mut child = sleeper();
        let others = || {
            looked.set(looked.get() + 1);
            // Beyond what a host that hangs gets.
            if looked.get() == 2 * SLEEPING {
                // SAFETY: a system call on numbers.
                unsafe { libc::kill(other, libc::SIGKILL) };
                return Vec::new();
            }
            vec![other]
        };
        assert!(end(&mut child, &others).expect("asked").is_none());
        assert_eq!(looked.get(), 2 * SLEEPING);
        let _ = busy.wait();
    }

    fn told(text: &str, status: i32) -> Outcome {
        judge(text, Some(ExitStatus::from_raw(status))).outcome
    }

    #[test]
    fn the_output_and_the_end_decide() {
        let good = "ok\n".repeat(REQUESTS as usize);
        assert_eq!(told(&format!("{good}heap ok\nend\n"), 0), Outcome::None);
        assert_eq!(told(&format!("{good}heap wrong\nend\n"), 0), Outcome::Harmed);
        assert_eq!(told(&good, libc::SIGSEGV), Outcome::Crashed);
        assert_eq!(told(&good, libc::SIGXCPU), Outcome::Hung);
        assert_eq!(told(&format!("{good}heap ok\nend\n"), 256), Outcome::Crashed);
        let fault = good.replacen("ok\n", "fault somewhere\nrecovered 12\n", 1);
        let fault = judge(&format!("{fault}heap ok\nend\n"), Some(ExitStatus::from_raw(0)));
        assert_eq!(
            (fault.outcome, fault.recovered, fault.propagated),
            (Outcome::Contained, vec![12], false)
        );
        let denied = good.replacen(
            "ok\n",
            "fault m.rf: read of 8 bytes at 0x10 denied; the domain has no rights there in f\n",
            1,
        );
        assert_eq!(told(&format!("{denied}heap ok\nend\n"), 0), Outcome::Denied);
        assert_eq!(judge("", None).outcome, Outcome::Hung);
        let lost = judge(
            "ok\nlost the domain is busy\n",
            Some(ExitStatus::from_raw(4 << 8)),
        );
        assert_eq!(
            (lost.outcome, &lost.symptom[..]),
            (Outcome::Crashed, "the domain is busy")
        );
        assert_eq!(told("refused no\n", 3 << 8), Outcome::Refused);
    }
}
