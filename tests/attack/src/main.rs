//! `attack step|…`: bounded attacks on the boundary, with figures.

use ringfence_attack::gates::{self, Event, Kind};
use ringfence_attack::{calls, corpus, files, fuzz, races, step};
use std::process::ExitCode;
use std::time::Duration;

const USAGE: &str = "\
attack step [--seconds N] [--stride N] [--seed N]
    executes accepted encodings one by one and compares with the decoder
attack fuzz [--seconds N] [--programs N] [--seed N] [--trace 1]
    executes programs that the verifier accepts in domains and looks at the host
attack words [--seconds N] [--programs N] [--seed N] [--trace 1]
    the same for the words mode, beside objects of the host's; a model tells which accesses are allowed
attack gates [--stride N] [--event 0..10] [--kind 0..8] [--first N]
    makes something happen at every instruction of a call in, out, back and back
attack files [--seconds N] [--seed N] FILE...
    bends module files, loads them, and calls what the loader accepts
attack unpack DIRECTORY | attack pack DIRECTORY
    writes the corpus of tests/cover as files, or keeps files as the corpus
attack calls [--seconds N] [--seed N]
    makes random system calls under several policies and looks at the host
attack races [--seconds N]
    rewrites memory in one lane while the host validates it for another
attack holes [--seconds N] [--seed N] [--first N] [--programs N]
    plants mistakes in the verifier, one at a time (0: none), and fuzzes; needs the feature of that name";

/// Passed, failed.
type Tally = (u64, u64);

struct Options {
    seconds: u64,
    stride: Option<u64>,
    seed: u64,
    programs: u64,
    trace: bool,
    event: Option<u64>,
    kind: Option<u64>,
    first: u64,
    files: Vec<String>,
}

fn options(arguments: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options {
        seconds: 10,
        stride: None,
        seed: 1,
        programs: u64::MAX,
        trace: false,
        event: None,
        kind: None,
        first: 0,
        files: Vec::new(),
    };
    let mut arguments = arguments;
    while let Some(name) = arguments.next() {
        if !name.starts_with("--") {
            options.files.push(name);
            continue;
        }
        let value = arguments
            .next()
            .and_then(|v| v.parse().ok())
            .ok_or_else(|| format!("{name} needs a number"))?;
        match name.as_str() {
            "--seconds" => options.seconds = value,
            "--stride" => options.stride = Some(value.max(1)),
            "--programs" => options.programs = value,
            "--trace" => options.trace = value != 0,
            "--event" => options.event = Some(value),
            "--kind" => options.kind = Some(value),
            "--first" => options.first = value,
            "--seed" => options.seed = value,
            _ => return Err(format!("unknown option {name}")),
        }
    }
    Ok(options)
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next().unwrap_or_default();
    let options = match options(arguments) {
        Ok(options) => options,
        Err(e) => {
            eprintln!("attack: {e}\n{USAGE}");
            return ExitCode::FAILURE;
        }
    };
    let (passed, failed) = match command.as_str() {
        "step" => steps(&options),
        "fuzz" => programs(&options, false),
        "words" => programs(&options, true),
        "files" => bent_files(&options),
        "gates" => gate_steps(&options),
        "calls" => system_calls(&options),
        "pack" | "unpack" => keep(&command, &options),
        "races" => double_fetches(&options),
        #[cfg(feature = "holes")]
        "holes" => holes(&options),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::FAILURE;
        }
    };
    println!("{:.1} s of processor time", processor_time());
    println!("attack {command}: {passed} passed, {failed} failed");
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Of this process and the children that it has waited for, user and system, in seconds.
fn processor_time() -> f64 {
    [libc::RUSAGE_SELF, libc::RUSAGE_CHILDREN]
        .into_iter()
        .map(|who| {
            // SAFETY: all zeroes is a valid `rusage`, which the call fills in.
            let used = unsafe {
                let mut used: libc::rusage = std::mem::zeroed();
                libc::getrusage(who, &raw mut used);
                used
            };
            let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
            seconds(used.ru_utime) + seconds(used.ru_stime)
        })
        .sum()
}

fn steps(options: &Options) -> Tally {
    let outcome = step::run(step::Options {
        seed: options.seed,
        stride: options.stride.unwrap_or(997),
        limit: Duration::from_secs(options.seconds),
    });
    println!(
        "{} encodings, {} accepted in {} forms ({} with operands through r14): {} completed, {} faulted inside the window, {} not of this processor",
        outcome.tried,
        outcome.accepted,
        outcome.forms,
        outcome.through_r14,
        outcome.completed,
        outcome.faulted,
        outcome.unknown
    );
    for (opcode, count) in &outcome.unknown_forms {
        println!("  not of this processor: {opcode} ({count})");
    }
    for violation in &outcome.violations {
        println!("VIOLATION {violation}");
    }
    (outcome.accepted, outcome.violations.len() as u64)
}

fn programs(options: &Options, words: bool) -> Tally {
    let started = std::time::Instant::now();
    let outcome = fuzz::run(fuzz::Options {
        seed: options.seed,
        limit: Duration::from_secs(options.seconds),
        programs: options.programs,
        draws: 4_000_000,
        trace: options.trace,
        words,
    });
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{} programs made, {} accepted and executed ({:.0} a second), {} returned",
        outcome.made,
        outcome.accepted,
        outcome.accepted as f64 / seconds,
        outcome.returned
    );
    println!(
        "{} of {} mutated or hostile programs accepted",
        outcome.accepted_bent, outcome.bent
    );
    println!(
        "{} of {} forms of instructions executed, {} operands through r14, {} calls of host functions",
        outcome.forms.0, outcome.forms.1, outcome.through_r14, outcome.host_calls
    );
    if words {
        println!(
            "{} operands behind the window, {} programs whose accesses were all compared with the model",
            outcome.views.0, outcome.views.1
        );
    }
    for (end, count) in &outcome.ends {
        println!("  {end}: {count}");
    }
    for violation in &outcome.violations {
        println!("VIOLATION {violation}");
    }
    (outcome.accepted, outcome.violations.len() as u64)
}

fn gate_steps(options: &Options) -> Tally {
    let (mut passed, mut failed) = (0, 0);
    for event in Event::ALL {
        if options.event.is_some_and(|e| e != event as u64) {
            continue;
        }
        for kind in Kind::ALL {
            if options.kind.is_some_and(|k| k != kind as u64) || !kind.bears(event) {
                continue;
            }
            for on_stack in [false, true] {
                // SAFETY: there is one thread; the child does not come back.
                let child = unsafe { libc::fork() };
                if child == 0 {
                    let stride = options.stride.unwrap_or(1);
                    let outcome = gates::run(event, kind, on_stack, stride, options.first);
                    println!("{event:?}, {kind:?}, alternate stack {on_stack}: {outcome:?}");
                    // SAFETY: ends the child.
                    unsafe { libc::_exit(i32::from(!outcome.violations.is_empty())) };
                }
                let mut status = 0;
                // SAFETY: our own child.
                unsafe { libc::waitpid(child, &raw mut status, 0) };
                if status != 0 {
                    println!("{event:?}, {kind:?}, alternate stack {on_stack}: child ended with {status:#x}");
                    failed += 1;
                } else {
                    passed += 1;
                }
            }
        }
    }
    (passed, failed)
}

fn system_calls(options: &Options) -> Tally {
    let outcome = calls::run(options.seed, Duration::from_secs(options.seconds));
    println!(
        "{} system calls of {} kinds, {} succeeded; the host looked at {} times",
        outcome.calls, outcome.kinds, outcome.succeeded, outcome.comparisons
    );
    for (end, count) in &outcome.ends {
        println!("  {end}: {count}");
    }
    for violation in &outcome.violations {
        println!("VIOLATION {violation}");
    }
    (outcome.calls, outcome.violations.len() as u64)
}

fn keep(command: &str, options: &Options) -> Tally {
    let [directory] = &options.files[..] else {
        eprintln!("attack: {command} needs a directory");
        return (0, 1);
    };
    let directory = std::path::Path::new(directory);
    let done = match command {
        "pack" => corpus::pack(directory, 280 << 10),
        _ => corpus::unpack(directory),
    };
    match done {
        Ok(count) => (count as u64, 0),
        Err(e) => {
            eprintln!("attack: {}: {e}", directory.display());
            (0, 1)
        }
    }
}

fn double_fetches(options: &Options) -> Tally {
    let (mut passed, mut failed) = (0, 0);
    for race in races::run(Duration::from_secs(options.seconds) / 6) {
        println!(
            "{}: {} times, saw one {}, the other {}",
            race.name, race.tries, race.saw.0, race.saw.1
        );
        for violation in &race.violations {
            println!("VIOLATION {}: {violation}", race.name);
        }
        passed += race.tries;
        failed += race.violations.len() as u64;
    }
    (passed, failed)
}

/// Whether each hole was found; a hole that execution cannot show is no failure, but something found without a hole is.
#[cfg(feature = "holes")]
fn holes(options: &Options) -> Tally {
    let (mut found, mut failed) = (0, 0);
    let all = ringfence_mistakes::MISTAKES.len() as u64;
    let last = options.first.saturating_add(options.programs).min(all + 1);
    for hole in options.first..last {
        let limit = Duration::from_secs(options.seconds);
        let result = ringfence_attack::holes::try_one(hole as u32, options.seed, limit);
        let noticed = u64::from(result.how.is_some());
        if hole == 0 {
            failed += noticed;
        } else {
            found += noticed;
        }
        println!(
            "{hole:2} {}: {} ({:.1} s)",
            result.what,
            result.how.as_deref().unwrap_or("nothing noticed"),
            result.after.as_secs_f64()
        );
    }
    println!("{found} of {all} holes found by execution");
    (found, failed)
}

fn bent_files(options: &Options) -> Tally {
    let mut seeds = Vec::new();
    for path in &options.files {
        match std::fs::read(path) {
            Ok(bytes) => seeds.push(bytes),
            Err(e) => {
                eprintln!("attack: {path}: {e}");
                return (0, 1);
            }
        }
    }
    if seeds.is_empty() {
        seeds.push(gates::seed());
    }
    let limit = Duration::from_secs(options.seconds);
    let outcome = files::run(&seeds, options.seed, limit, options.programs);
    println!(
        "{} files made of {}, {} loaded ({} with changed code), {} domains, {} calls, {} returned",
        outcome.files,
        seeds.len(),
        outcome.loaded,
        outcome.changed_code,
        outcome.domains,
        outcome.calls,
        outcome.returned
    );
    for violation in &outcome.violations {
        println!("VIOLATION {violation}");
    }
    (outcome.files, outcome.violations.len() as u64)
}
