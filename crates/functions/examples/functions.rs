//! What functions from text cost: to compile, to add, to delete, and to run beside `gcc -O2`.
//!
//!     cargo run --release -p ringfence-functions --example functions [NAME...] [--json FILE]

use std::ffi::c_long;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use libloading::{Library, Symbol};
use ringfence::{DomainOptions, Ptr};
use ringfence_functions::{BuiltIns, Runtime, compile};

#[path = "support/figures.rs"]
mod figures;
use figures::{Figures, Series};

/// Bytes that each function works on.
const BYTES: usize = 1 << 16;

macro_rules! kernels {
    ($($name:literal)*) => { [$(($name, include_str!(concat!("kernels/", $name, ".c")))),*] };
}
const KERNELS: [(&str, &str); 15] = kernels!(
    "grey" "scale" "filter" "parse" "list" "crc" "sort" "matrix" "mandelbrot" "search" "hash" "sieve" "machine" "recursion"
    "grey66"
);

type Native = unsafe extern "C" fn(*mut u8, c_long) -> c_long;

/// The shortest of some runs: what else the machine does makes none shorter.
fn best(rounds: usize, mut act: impl FnMut()) -> Duration {
    let time = |()| {
        let begun = Instant::now();
        act();
        begun.elapsed()
    };
    (0..rounds).map(|_| ()).map(time).min().unwrap_or_default()
}

/// The middle of some runs.
fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_nanos() as f64 / 1000.0
}

/// Data that only look random.
fn data() -> Vec<u8> {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as u8
    };
    (0..BYTES).map(|_| next()).collect()
}

/// Microseconds to compile, to verify and add, and to delete.
fn costs(text: &str) -> [f64; 3] {
    let runtime = Runtime::new(BuiltIns::new(), &DomainOptions::default()).expect("a runtime");
    let mut times: [Vec<Duration>; 3] = Default::default();
    for round in 0..1200 {
        let begun = Instant::now();
        let compiled = compile(text).expect("the text compiles");
        let done = begun.elapsed();
        runtime.create_compiled("run", compiled).expect("it is added");
        let added = begun.elapsed();
        let begun = Instant::now();
        runtime.delete("run").expect("it is deleted");
        let deleted = begun.elapsed();
        // The first rounds warm up.
        if round >= 200 {
            times[0].push(done);
            times[1].push(added - done);
            times[2].push(deleted);
        }
    }
    times.map(median)
}

/// Nanoseconds of a run, fenced and from gcc, and whether their results are the same.
fn runs(directory: &Path, name: &str, text: &str) -> (f64, f64, bool) {
    let source = directory.join(format!("{name}.c"));
    let library = directory.join(format!("{name}.so"));
    std::fs::write(&source, text).expect("a file");
    let gcc = Command::new("gcc")
        .args(["-O2", "-w", "-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .status();
    assert!(gcc.expect("gcc").success());
    // SAFETY: what gcc has just made of our own text.
    let library = unsafe { Library::new(&library) }.expect("a library");
    // SAFETY: the type that each text gives it.
    let native: Symbol<'_, Native> = unsafe { library.get(b"run\0") }.expect("the function");

    let runtime = Runtime::new(BuiltIns::new(), &DomainOptions::default()).expect("a runtime");
    let func = runtime.create("run", text).expect("the text compiles");
    let func = func.typed::<(Ptr<u8>, i64), i64>().expect("its type");
    let fenced = runtime.memory().put_slice(&data()).expect("memory");
    let mut plain = data();
    let mut sum = [0_i64; 2];
    let mut call_fenced = || {
        let result = func.call(fenced.ptr(), BYTES as i64).expect("no fault");
        sum[0] = sum[0]
            .wrapping_mul(31)
            .wrapping_add(result.into_inner_unchecked());
    };
    let mut call_plain = |to: &mut i64| {
        // SAFETY: the function stays in the bytes that it is given.
        let result = unsafe { native(plain.as_mut_ptr(), BYTES as c_long) };
        *to = to.wrapping_mul(31).wrapping_add(result);
    };
    let mut other = 0;
    // In turns, so that both meet the same machine.
    let (mut ours, mut theirs) = (Duration::MAX, Duration::MAX);
    for _ in 0..8 {
        ours = ours.min(best(40, &mut call_fenced));
        theirs = theirs.min(best(40, || call_plain(&mut other)));
    }
    sum[1] = other;
    (ours.as_nanos() as f64, theirs.as_nanos() as f64, sum[0] == sum[1])
}

fn main() {
    let only: Vec<String> = std::env::args().skip(1).take_while(|a| a != "--json").collect();
    let directory = std::env::temp_dir().join(format!("rf-functions-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let (mut figures, mut rows, mut sizes) = (Figures::default(), Vec::new(), Vec::new());
    let (mut logs, mut worst, mut wrong) = (Vec::new(), ("", 0.0_f64), false);
    for (name, text) in KERNELS {
        if !only.is_empty() && !only.iter().any(|o| o == name) {
            continue;
        }
        let [compiling, adding, deleting] = costs(text);
        let (ours, theirs, same) = runs(&directory, name, text);
        let ratio = ours / theirs;
        logs.push(ratio.ln());
        if ratio > worst.1 {
            worst = (name, ratio);
        }
        sizes.push((text.lines().count() as f64, compiling + adding, deleting));
        let mut row = vec![name.to_owned(), text.lines().count().to_string()];
        let values = [
            compiling,
            adding,
            compiling + adding,
            deleting,
            ours / 1000.0,
            theirs / 1000.0,
        ];
        row.extend(values.map(|v| format!("{v:.1}")));
        row.push(format!("{ratio:.2}"));
        rows.push(row);
        if !same {
            println!("{name}: another result than gcc's");
            wrong = true;
        }
    }
    let _ = std::fs::remove_dir_all(&directory);
    figures.table(
        "texts",
        &[
            "function",
            "lines",
            "compile, µs",
            "verify and add, µs",
            "together, µs",
            "delete, µs",
            "run, µs",
            "gcc -O2, µs",
            "ratio",
        ],
        rows,
    );
    sizes.sort_by(|a, b| a.0.total_cmp(&b.0));
    figures.chart(
        "texts-lines",
        [
            "A text becomes a function that can be called, and goes",
            "lines",
            "microseconds",
        ],
        &[
            Series::new("text to verified function", sizes.iter().map(|s| (s.0, s.1))),
            Series::new("deleted", sizes.iter().map(|s| (s.0, s.2))),
        ],
    );
    let mean = (logs.iter().sum::<f64>() / logs.len().max(1) as f64).exp();
    println!(
        "geometric mean of {}: {mean:.2}; worst: {} {:.2}",
        logs.len(),
        worst.0,
        worst.1
    );
    assert!(!wrong, "results differ");
    figures.end().expect("the file of figures");
}
