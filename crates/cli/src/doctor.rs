//! `ringfence doctor`: whether this machine can fence and run modules, and what to do where it cannot.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use ringfence_driver::args::Front;
use serde_json::json;

use crate::output::{self, Colour, paint};

/// Options of `ringfence doctor`.
#[derive(clap::Args)]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// As it should be.
    Good,
    /// Works, with less.
    Less,
    /// Modules cannot be made or run.
    Bad,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            State::Good => "good",
            State::Less => "less",
            State::Bad => "bad",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug)]
struct Finding {
    name: &'static str,
    state: State,
    /// What there is.
    found: String,
    /// What to do; empty if nothing.
    remedy: String,
}

impl Finding {
    fn new(name: &'static str, state: State, found: impl Into<String>, remedy: &str) -> Finding {
        Finding {
            name,
            state,
            found: found.into(),
            remedy: if state == State::Good {
                String::new()
            } else {
                remedy.to_owned()
            },
        }
    }
}

/// Runs the command: 0, or 1 if modules cannot be made or run here.
pub fn run(args: &Args) -> ExitCode {
    let mut findings = machine(Path::new("/"));
    findings.push(process(&ringfence::process_confinement()));
    findings.extend(tools());
    let bad = findings.iter().any(|f| f.state == State::Bad);
    if args.json {
        let list: Vec<_> = findings
            .iter()
            .map(|f| json!({"name": f.name, "state": f.state.word(), "found": f.found, "remedy": f.remedy}))
            .collect();
        let all = json!({"usable": !bad, "findings": list});
        output::out(serde_json::to_string_pretty(&all).unwrap_or_default());
    } else {
        for f in &findings {
            let colour = match f.state {
                State::Good => Colour::Green,
                State::Less => Colour::Bold,
                State::Bad => Colour::Red,
            };
            let word = paint(colour, format_args!("{:<5}", f.state.word()));
            output::out(format_args!("{word} {:<16} {}", f.name, f.found));
            if !f.remedy.is_empty() {
                output::out(format_args!("{:22} {}", "", f.remedy));
            }
        }
    }
    ExitCode::from(u8::from(bad))
}

/// The processor, the kernel and its limits, as the files below `root` tell of them.
fn machine(root: &Path) -> Vec<Finding> {
    let read = |name: &str| fs::read(root.join(name)).unwrap_or_default();
    let text = |name: &str| String::from_utf8_lossy(&read(name)).trim().to_owned();
    vec![
        processor(&text("proc/cpuinfo"), &read("proc/self/auxv")),
        kernel(&text("proc/sys/kernel/osrelease")),
        mappings(&text("proc/sys/vm/max_map_count")),
        address_space(&text("proc/self/limits")),
        descriptors(&text("proc/self/limits")),
        seccomp(&text("proc/self/status")),
        landlock(&text("sys/kernel/security/lsm")),
    ]
}

fn processor(cpuinfo: &str, auxv: &[u8]) -> Finding {
    let field = |name: &str| {
        let line = cpuinfo
            .lines()
            .find(|l| l.split(':').next().is_some_and(|n| n.trim() == name));
        line.and_then(|l| l.split_once(':'))
            .map(|(_, v)| v.trim().to_owned())
    };
    let model = field("model name").unwrap_or_else(|| "unknown processor".into());
    let has = field("flags").is_some_and(|f| f.split_whitespace().any(|f| f == "fsgsbase"));
    // AT_HWCAP2, and in it the kernel's word that programs may use the instructions.
    let enabled = auxv.chunks_exact(16).any(|pair| {
        let word = |at: usize| u64::from_ne_bytes(pair[at..at + 8].try_into().unwrap_or_default());
        word(0) == 26 && word(8) & 2 != 0
    });
    match (cfg!(target_arch = "x86_64"), has, enabled) {
        (false, ..) => Finding::new(
            "processor",
            State::Bad,
            format!("{model}: not x86-64"),
            "use an x86-64 machine; there is no other fence",
        ),
        (_, _, true) => Finding::new("processor", State::Good, format!("{model}, fsgsbase"), ""),
        (_, true, false) => Finding::new(
            "processor",
            State::Bad,
            format!("{model}: the kernel keeps fsgsbase from programs"),
            "boot without nofsgsbase, with Linux 5.9 or newer; some virtual machines and gVisor hide it: ask for another kind",
        ),
        (_, false, false) => Finding::new(
            "processor",
            State::Bad,
            format!("{model}: no fsgsbase"),
            "use a processor of 2013 or newer (Intel), 2015 or newer (AMD), or a virtual machine that shows the instruction",
        ),
    }
}

fn kernel(release: &str) -> Finding {
    let mut numbers = release
        .split(['.', '-', '+'])
        .map(|n| n.parse::<u32>().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let found = format!("Linux {release}");
    match version {
        v if v >= (6, 7) => Finding::new("kernel", State::Good, found, ""),
        v if v >= (5, 9) => Finding::new(
            "kernel",
            State::Less,
            found,
            "from 6.7 on a reset copies what was written, and drops less: faster",
        ),
        _ => Finding::new("kernel", State::Bad, found, "Linux 5.9 or newer is needed"),
    }
}

fn mappings(count: &str) -> Finding {
    let remedy = "for thousands of domains in a process: sysctl -w vm.max_map_count=1048576";
    match count.parse::<u64>() {
        Ok(n) if n >= 1 << 18 => Finding::new("vm.max_map_count", State::Good, count, ""),
        Ok(n) => Finding::new(
            "vm.max_map_count",
            State::Less,
            format!("{n}: about {} domains in a process", n / 7),
            remedy,
        ),
        Err(_) => Finding::new("vm.max_map_count", State::Less, "unknown", remedy),
    }
}

/// A soft limit in `/proc/self/limits`; `None` if there is none.
fn limit(limits: &str, name: &str) -> Option<u64> {
    let line = limits.lines().find_map(|l| l.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

fn address_space(limits: &str) -> Finding {
    match limit(limits, "Max address space") {
        None => Finding::new("address space", State::Good, "unlimited", ""),
        Some(bytes) => Finding::new(
            "address space",
            if bytes < 12 << 30 { State::Bad } else { State::Less },
            format!(
                "limited to {} GiB, and a domain reserves 4 GiB and more",
                bytes >> 30
            ),
            "ulimit -v unlimited; memory is limited by domain (--memory-limit) or by cgroup",
        ),
    }
}

fn descriptors(limits: &str) -> Finding {
    match limit(limits, "Max open files") {
        Some(n) if n < 1024 => Finding::new(
            "open files",
            State::Less,
            n.to_string(),
            "ulimit -n 4096: each module and each region has a descriptor",
        ),
        n => Finding::new(
            "open files",
            State::Good,
            n.map_or_else(|| "unlimited".to_owned(), |n| n.to_string()),
            "",
        ),
    }
}

fn seccomp(status: &str) -> Finding {
    let mode = status
        .lines()
        .find_map(|l| l.strip_prefix("Seccomp:"))
        .map(str::trim);
    match mode {
        Some("0") => Finding::new("seccomp", State::Good, "available, no filter on this process", ""),
        Some("2") => Finding::new(
            "seccomp",
            State::Less,
            "a filter is on this process",
            "if domains cannot be made, the filter has to allow memfd_create, mmap, mprotect, madvise, sigaltstack and futex",
        ),
        Some(_) => Finding::new(
            "seccomp",
            State::Bad,
            "strict mode",
            "nothing can be made in this process",
        ),
        None => Finding::new(
            "seccomp",
            State::Less,
            "not in this kernel",
            "the back end `process` does not start without it; take a kernel with CONFIG_SECCOMP_FILTER",
        ),
    }
}

fn landlock(modules: &str) -> Finding {
    if modules.split(',').any(|m| m == "landlock") {
        return Finding::new("landlock", State::Good, "available", "");
    }
    Finding::new(
        "landlock",
        State::Less,
        "not active, or not visible",
        "the back end `process` has one lock less on files, beside its filter; boot with lsm=landlock,…",
    )
}

/// The back end `process`, tried.
fn process(told: &Result<ringfence::Confinement, ringfence::DomainError>) -> Finding {
    match told {
        Ok(held) if held.namespaces && held.landlock => {
            Finding::new("own processes", State::Good, held.to_string(), "")
        }
        Ok(held) => Finding::new(
            "own processes",
            State::Less,
            held.to_string(),
            "the filter alone keeps files and network away; namespaces want user namespaces (sysctl user.max_user_namespaces), \
             Landlock Linux 5.13",
        ),
        Err(e) => Finding::new(
            "own processes",
            State::Less,
            e.to_string(),
            "--backend process needs it; the other back ends do not",
        ),
    }
}

/// What modules are made with.
fn tools() -> Vec<Finding> {
    let mut found = Vec::new();
    for (name, front, variable) in [
        ("gcc", Front::C, "RINGFENCE_CC"),
        ("g++", Front::Cxx, "RINGFENCE_CXX"),
    ] {
        found.push(match ringfence_driver::compiler(front) {
            Ok(version) => Finding::new(name, State::Good, version, ""),
            // Modules can be run without a compiler, and C fenced without one for C++.
            Err(e) => Finding::new(
                name,
                if front == Front::C {
                    State::Bad
                } else {
                    State::Less
                },
                e.to_string(),
                &format!("install gcc 12 or newer, or name one by {variable}"),
            ),
        });
    }
    found.push(match first_line("as") {
        Some(version) => Finding::new("assembler", State::Good, version, ""),
        None => Finding::new("assembler", State::Bad, "none", "install binutils"),
    });
    if let Some(version) = first_line("clang") {
        found.push(Finding::new(
            "clang",
            State::Good,
            format!("{version}; not used: it can keep three registers free from 23 on"),
            "",
        ));
    }
    found.push(match ringfence_driver::sysroot() {
        Ok(Some(dir)) => Finding::new("libraries", State::Good, dir.display().to_string(), ""),
        Ok(None) => Finding::new(
            "libraries",
            State::Less,
            "no sysroot: modules without a libc only",
            "ringfence setup, or make build in Ringfence's sources; RINGFENCE_SYSROOT names one",
        ),
        Err(e) => Finding::new(
            "libraries",
            State::Bad,
            e.to_string(),
            "name the right one by RINGFENCE_SYSROOT",
        ),
    });
    found
}

fn first_line(tool: &str) -> Option<String> {
    let out = Command::new(tool).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&out.stdout);
    text.lines().next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn auxv(value: u64) -> Vec<u8> {
        [26u64, value, 0, 0]
            .iter()
            .flat_map(|w| w.to_ne_bytes())
            .collect()
    }

    const INFO: &str = "processor : 0\nmodel name\t: Some Processor\nflags\t\t: fpu fsgsbase avx\n";

    #[test]
    fn the_kernel_decides_about_fsgsbase() {
        assert_eq!(processor(INFO, &auxv(2)).state, State::Good);
        let hidden = processor(INFO, &auxv(0));
        assert_eq!(hidden.state, State::Bad);
        assert!(hidden.remedy.contains("nofsgsbase"));
        let old = processor(&INFO.replace("fsgsbase", "sse"), &auxv(0));
        assert!(old.found.contains("no fsgsbase") && old.state == State::Bad);
    }

    #[test]
    fn what_holds_processes() {
        let mut held = ringfence::Confinement::default();
        held.system_calls = true;
        let less = process(&Ok(held));
        assert!(
            less.state == State::Less && less.found.contains("Landlock: no"),
            "{less:?}"
        );
        (held.namespaces, held.landlock) = (true, true);
        assert_eq!(process(&Ok(held)).state, State::Good);
        let reason = "there is no worker".to_owned();
        let none = process(&Err(ringfence::DomainError::Worker { reason }));
        assert!(none.state == State::Less && none.found.contains("no worker"));
    }

    #[test]
    fn kernels() {
        let state = |release: &str| kernel(release).state;
        assert_eq!(state("6.18.5-amd64"), State::Good);
        assert_eq!(state("5.15.0+"), State::Less);
        assert_eq!(state("5.4.0-150-generic"), State::Bad);
        assert_eq!(state(""), State::Bad);
    }

    #[test]
    fn limits_are_read() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units\n\
                      Max open files            256                  1048576              files\n\
                      Max address space         4294967296           unlimited            bytes\n";
        assert_eq!(address_space(limits).state, State::Bad);
        assert_eq!(descriptors(limits).state, State::Less);
        let unlimited = limits.replace("4294967296", "unlimited");
        assert_eq!(address_space(&unlimited).state, State::Good);
        assert_eq!(mappings("65530").state, State::Less);
        assert_eq!(mappings("1048576").state, State::Good);
        assert_eq!(seccomp("Name: x\nSeccomp:\t2\n").state, State::Less);
        assert_eq!(landlock("lockdown,landlock,yama").state, State::Good);
    }

    /// A root without files tells nothing good, and does not end the command.
    #[test]
    fn an_empty_root() {
        let bad = machine(Path::new("/nowhere/at/all"));
        assert!(bad.iter().any(|f| f.state == State::Bad));
        assert!(bad.iter().all(|f| f.state == State::Good || !f.remedy.is_empty()));
    }
}
