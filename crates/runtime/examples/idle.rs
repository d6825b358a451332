//! Thousands of idle domains of one module: what they take, and what it costs to make, call, trim and drop them.
//!
//!     ringfence cc -O2 -nostdlib -o big.rf crates/runtime/tests/modules/big.c
//!     cargo run --release -p ringfence-runtime --example idle -- big.rf [DOMAINS…]
//!
//! For each number of domains alive (1,000, 5,000, 10,000 and 20,000 unless others are given): makes that many, calls each
//! one and looks whether it sees its own data and no other's, measures memory, trims them, and measures again. In the end
//! they are dropped again, in steps. Times are processor time of the one thread, and the clock's in brackets.

use ringfence_runtime::{Call, Domain, DomainOptions, Imports, LoadOptions, Module};
use std::time::Instant;

type Error = Box<dyn std::error::Error>;

/// What a process of so many domains takes, in bytes.
#[derive(Clone, Copy)]
struct Memory {
    resident: f64,
    proportional: f64,
    tables: f64,
    heap: f64,
    mappings: f64,
}

fn field(text: &str, name: &str) -> f64 {
    let line = text.lines().find(|l| l.starts_with(name)).expect("a field");
    let word = line.split_whitespace().nth(1).expect("a value");
    word.parse::<f64>().expect("a number") * 1024.0
}

fn memory() -> Result<Memory, Error> {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup")?;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let maps = std::fs::read("/proc/self/maps")?;
    // SAFETY: reads the allocator's statistics.
    let heap = unsafe { libc::mallinfo2() };
    Ok(Memory {
        resident: field(&rollup, "Rss:"),
        proportional: field(&rollup, "Pss:"),
        tables: field(&status, "VmPTE:"),
        heap: (heap.uordblks + heap.hblkhd) as f64,
        mappings: maps.iter().filter(|&&b| b == b'\n').count() as f64,
    })
}

fn cpu() -> f64 {
    let mut t = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: reads the calling thread's clock.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut t) };
    t.tv_sec as f64 * 1e6 + t.tv_nsec as f64 / 1e3
}

/// Prints what each of `n` repetitions took, in microseconds.
fn timed(what: &str, n: usize, mut work: impl FnMut(usize) -> Result<(), Error>) -> Result<(), Error> {
    let (clock, begin) = (Instant::now(), cpu());
    (0..n).try_for_each(&mut work)?;
    let (n, used) = (n as f64, cpu() - begin);
    println!(
        "  {what:<34} {:>8.2} us ({:.2})",
        used / n,
        clock.elapsed().as_secs_f64() * 1e6 / n
    );
    Ok(())
}

fn call(domain: &Domain, name: &str, argument: u64) -> Result<u64, Error> {
    Ok(domain.entry(name)?.call(&mut Call::ints(&[argument]))?.rax)
}

fn each(what: &str, before: &Memory, n: usize) -> Result<(), Error> {
    let now = memory()?;
    let per = |f: fn(&Memory) -> f64| (f(&now) - f(before)) / n as f64;
    println!(
        "  {what:<34} {:>8.2} KiB (resident {:.2}, of these {:.2} of the host's heap; page tables {:.2}; Pss {:.2}), {:.2} mappings",
        (per(|m| m.resident) + per(|m| m.tables)) / 1024.0,
        per(|m| m.resident) / 1024.0,
        per(|m| m.heap) / 1024.0,
        per(|m| m.tables) / 1024.0,
        per(|m| m.proportional) / 1024.0,
        per(|m| m.mappings),
    );
    Ok(())
}

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: idle MODULE.rf [DOMAINS…]")?;
    let mut steps = arguments.map(|n| n.parse()).collect::<Result<Vec<usize>, _>>()?;
    if steps.is_empty() {
        steps = vec![1000, 5000, 10_000, 20_000];
    }
    let module = Module::open(path, &LoadOptions::default())?;
    let new = || {
        Domain::new(
            std::slice::from_ref(&module),
            Imports::new(),
            &DomainOptions::default(),
        )
    };
    let mut domains: Vec<Domain> = Vec::with_capacity(*steps.iter().max().unwrap_or(&0));
    // What the first domain takes is the process's: the runtime's own tables, the shared pages.
    let first = new()?;
    call(&first, "touch", 1)?;
    call(&first, "touched", 1)?;
    first.trim()?;
    let before = memory()?;
    for &step in &steps {
        println!("{step} domains");
        let had = domains.len();
        timed("make", step - had, |_| {
            domains.push(new()?);
            Ok(())
        })?;
        timed("trim after making", step - had, |i| {
            domains[had + i].trim()?;
            Ok(())
        })?;
        each("idle, trimmed", &before, step)?;
        timed("first call (stacks are made)", step, |i| {
            // Each touches another byte of its own zeroed data.
            call(&domains[i], "touch", i as u64 & 0xFFF).map(drop)
        })?;
        timed("second call", step, |i| {
            let touched = call(&domains[i], "touched", i as u64 & 0xFFF)?;
            let other = call(&domains[i], "touched", (i as u64 + 1) & 0xFFF)?;
            // Steps go on with the domains of the last one.
            let times = steps.iter().filter(|&&s| s > i && s <= step).count() as u64;
            if (touched, other) == (times, 0) {
                return Ok(());
            }
            Err(format!("domain {i}: {touched} and {other} instead of {times} and 0").into())
        })?;
        each("after calls", &before, step)?;
        timed("trim", step, |i| {
            domains[i].trim()?;
            Ok(())
        })?;
        each("idle, called and trimmed", &before, step)?;
    }
    for &step in steps.iter().rev().skip(1).chain(&[0]) {
        let from = domains.len();
        println!("{from} to {step} domains");
        timed("drop", from - step, |_| {
            drop(domains.pop());
            Ok(())
        })?;
    }
    Ok(())
}
