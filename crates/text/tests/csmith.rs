//! Programs that csmith makes up: each gives the same checksum here and with gcc.
//!
//! `RINGFENCE_CSMITH_ROUNDS` and `RINGFENCE_CSMITH_SEED` say how many, and from which on. Without csmith it is skipped, visibly.

mod support;

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use support::{Machine, Outcome};

/// Headers in the place of a C library's.
const HEADERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/csmith");

/// What csmith is asked for beside its usual programs, in turns. Its floats are no C: it assigns their addresses to pointers to
/// integers; `random.rs` has floats.
const KINDS: [&[&str]; 4] = [
    &[],
    &["--max-funcs", "5", "--max-expr-complexity", "14"],
    &["--max-funcs", "4", "--max-block-depth", "3", "--no-volatiles"],
    &[
        "--max-struct-fields",
        "12",
        "--max-array-dim",
        "4",
        "--inline-function",
    ],
];

/// What became of a seed.
#[derive(PartialEq)]
enum Compared {
    Equal,
    /// It runs too long with gcc, or csmith makes nothing of it in time.
    Long,
}

/// Runs a command for at most so many seconds; its output, `None` if it failed or took longer.
fn within(seconds: u32, command: &[&str], directory: &Path) -> Option<Vec<u8>> {
    let mut timeout = Command::new("timeout");
    timeout
        .arg(seconds.to_string())
        .args(command)
        .current_dir(directory);
    let out = timeout.stderr(Stdio::null()).output().expect("timeout");
    out.status.success().then_some(out.stdout)
}

/// The program of a seed, without a preprocessor's lines. `test` runs it.
fn program(seed: u64, directory: &Path) -> Option<String> {
    let seed_text = seed.to_string();
    let mut csmith = vec![
        "csmith",
        "--seed",
        &seed_text,
        "--no-argc",
        "--no-packed-struct",
        "-o",
        "program.c",
    ];
    csmith.extend(KINDS[(seed % KINDS.len() as u64) as usize]);
    within(20, &csmith, directory)?;
    let mut gcc = vec![
        "gcc",
        "-E",
        "-P",
        "-nostdinc",
        "-Dmain=csmith_main",
        "-I",
        HEADERS,
    ];
    gcc.extend(["-include", "stdint.h", "-I/usr/include/csmith", "program.c"]);
    let text = within(20, &gcc, directory).expect("gcc takes the program");
    let text = String::from_utf8(text).expect("ASCII");
    Some(text + "long test(long a, long b) { csmith_main(); return (long)checksum; }\n")
}

fn compare(machine: &Machine, seed: u64, directory: &Path) -> Compared {
    let Some(text) = program(seed, directory) else {
        return Compared::Long;
    };
    let source = directory.join("native.c");
    let printing =
        "extern int printf(const char *, ...);\nint main(void) { printf(\"%ld\", test(0, 0)); return 0; }\n";
    std::fs::write(&source, format!("{text}{printing}")).unwrap();
    let gcc = [
        "gcc",
        "-O1",
        "-w",
        "-fwrapv",
        "-ffp-contract=off",
        "-o",
        "native",
        "native.c",
    ];
    within(60, &gcc, directory).unwrap_or_else(|| panic!("seed {seed}: gcc does not take it"));
    let Some(expected) = within(2, &["./native"], directory) else {
        return Compared::Long;
    };
    let expected = String::from_utf8_lossy(&expected).parse().expect("a number");
    let kept = support::scratch().join(format!("csmith-{seed}.c"));
    let told = |what: String| {
        std::fs::write(&kept, &text).unwrap();
        panic!("seed {seed}: {what}; the text is in {}", kept.display());
    };
    let compiled = ringfence_text::compile(&text).unwrap_or_else(|e| told(e.to_string()));
    let got = machine.call(&compiled, "test", [0, 0]);
    if got != Outcome::Value(expected) {
        told(format!("{got:?}, not {expected}"));
    }
    Compared::Equal
}

#[test]
fn programs_of_csmith_do_what_gcc_makes_them_do() {
    // It leaves a file where it runs.
    if Command::new("csmith")
        .current_dir(support::scratch())
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .is_err()
    {
        println!("skipped: there is no csmith (scripts/setup.sh test installs it)");
        return;
    }
    let number = |name: &str, usual: u64| {
        std::env::var(name)
            .ok()
            .and_then(|n| n.parse().ok())
            .unwrap_or(usual)
    };
    let first = number("RINGFENCE_CSMITH_SEED", 1);
    let end = first + number("RINGFENCE_CSMITH_ROUNDS", 16);
    let (next, equal, long) = (AtomicU64::new(first), AtomicU64::new(0), AtomicU64::new(0));
    let work = |thread: usize| {
        let machine = Machine::new();
        let directory = support::scratch().join(format!("csmith-{thread}"));
        std::fs::create_dir_all(&directory).unwrap();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= end {
                return;
            }
            let count = match compare(&machine, seed, &directory) {
                Compared::Equal => &equal,
                Compared::Long => &long,
            };
            count.fetch_add(1, Ordering::Relaxed);
        }
    };
    let work = &work;
    std::thread::scope(|scope| {
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        (0..count).for_each(|thread| {
            scope.spawn(move || work(thread));
        });
    });
    let (equal, long) = (equal.into_inner(), long.into_inner());
    println!("{equal} programs of csmith do the same; {long} run too long to compare");
    assert!(equal > long, "most can be compared");
}
