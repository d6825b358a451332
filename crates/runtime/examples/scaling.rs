//! How the price of each thing grows with the number of domains in the process.
//!
//!     cargo run --release -p ringfence-runtime --example scaling -- MODULE.rf [DOMAINS]
//!
//! Makes up to DOMAINS (20,000 if the system's limit of mappings allows) of one module, and at 1, 10, 100, … of them prints: making
//! one, a call into one domain again and again, a call into another one each time, a reset, rights to a region given
//! to k domains, the size of /proc/self/maps and the time to read it, and memory for each idle domain.

use ringfence_runtime::{
    Actor, Domain, DomainOptions, Imports, LoadOptions, Module, Recipient, Region, Rights, Signature,
};
use std::time::Instant;

type Thunk = extern "C" fn(u64) -> u64;

/// Bytes: the process's own share of what is resident, and page tables.
fn memory() -> (u64, u64) {
    let field = |file: &str, name: &str| {
        let text = std::fs::read_to_string(file).expect("a file of /proc");
        let line = text
            .lines()
            .find(|l| l.starts_with(name))
            .expect("a field of status");
        line.split_whitespace()
            .nth(1)
            .and_then(|n| n.parse::<u64>().ok())
            .expect("a number")
            * 1024
    };
    (
        field("/proc/self/smaps_rollup", "Pss:"),
        field("/proc/self/status", "VmPTE:"),
    )
}

fn maps() -> (usize, f64) {
    let begin = Instant::now();
    let maps = std::fs::read("/proc/self/maps").expect("maps");
    (
        maps.iter().filter(|&&b| b == b'\n').count(),
        begin.elapsed().as_secs_f64() * 1e3,
    )
}

/// The smallest of some measurements of the processor time that one of `n` repetitions takes, in nanoseconds.
fn least(rounds: u32, n: u32, mut work: impl FnMut(u32)) -> f64 {
    (0..rounds)
        .map(|_| {
            let begin = cpu();
            (0..n).for_each(&mut work);
            (cpu() - begin) / f64::from(n)
        })
        .fold(f64::INFINITY, f64::min)
}

/// Calls in each second of processor time, by one thread and by two at once, each in its own domain.
fn throughput(module: &Module, export: &str) -> Result<(), Box<dyn std::error::Error>> {
    let domains = [0, 1].map(|_| {
        Domain::new(
            std::slice::from_ref(module),
            Imports::new(),
            &DomainOptions::default(),
        )
    });
    let [a, b] = domains;
    let entries = [a?.entry(export)?, b?.entry(export)?];
    let signature = Signature {
        ints: 1,
        int_results: 1,
        ..Signature::NOTHING
    };
    // SAFETY: thunks for one integer and an integer result; the domains live as long as their entries.
    let thunks = entries
        .each_ref()
        .map(|e| unsafe { std::mem::transmute::<*const std::ffi::c_void, Thunk>(e.thunk(signature)) });
    let run = |thunk: Thunk| {
        least(1, 2_000_000, |_| {
            thunk(1);
        })
    };
    let (mut one, mut two, mut clock) = (f64::INFINITY, f64::INFINITY, f64::INFINITY);
    for _ in 0..15 {
        one = one.min(run(thunks[0]));
        let begin = Instant::now();
        let sum: f64 = std::thread::scope(|s| {
            thunks
                .map(|t| s.spawn(move || run(t)))
                .map(|h| h.join().expect("a caller"))
                .iter()
                .sum()
        });
        clock = clock.min(begin.elapsed().as_nanos() as f64 / 2_000_000.0);
        two = two.min(sum / 2.0);
    }
    println!(
        "throughput of two threads: {:.2} times one by processor time, {:.2} times by the clock ({one:.2} ns a call)",
        2.0 * one / two,
        2.0 * one / clock
    );
    Ok(())
}

fn cpu() -> f64 {
    let mut t = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: reads the calling thread's clock.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut t) };
    t.tv_sec as f64 * 1e9 + t.tv_nsec as f64
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args()
        .nth(1)
        .ok_or("usage: scaling MODULE.rf [DOMAINS]")?;
    let most: usize = std::env::args().nth(2).map_or(Ok(20_000), |n| n.parse())?;
    let module = Module::open(path, &LoadOptions::default())?;
    let export = module
        .exports()
        .iter()
        .find(|x| x.kind == ringfence_runtime::ExportKind::Function)
        .ok_or("no function")?
        .name
        .clone();
    let region = Region::new(4096)?;
    let mut domains: Vec<Domain> = Vec::new();
    let mut calls: Vec<Thunk> = Vec::new();
    let (pss, pte) = memory();
    let (before, _) = maps();
    println!(
        "{:>7} {:>9} {:>8} {:>8} {:>8} {:>9} {:>9} {:>8} {:>9} {:>9} {:>9}",
        "domains",
        "make us",
        "call ns",
        "other ns",
        "reset us",
        "give us",
        "revoke us",
        "maps",
        "read ms",
        "KiB each",
        "maps each"
    );
    throughput(&module, &export)?;
    let mut at = 1;
    while at <= most {
        let making = Instant::now();
        let first = domains.len();
        while domains.len() < at {
            match Domain::new(
                std::slice::from_ref(&module),
                Imports::new(),
                &DomainOptions::default(),
            ) {
                Ok(d) => {
                    d.trim()?;
                    domains.push(d);
                }
                Err(e) => {
                    println!("{} domains, then: {e}", domains.len());
                    return Ok(());
                }
            }
        }
        let make = making.elapsed().as_secs_f64() * 1e6 / (at - first) as f64;
        let (r, p) = memory();
        let each = ((r + p) as f64 - (pss + pte) as f64) / 1024.0 / at as f64;
        let (lines, read) = maps();
        for d in &domains[first..] {
            let entry = d.entry(&export)?;
            let signature = Signature {
                ints: 1,
                int_results: 1,
                ..Signature::NOTHING
            };
            // SAFETY: a thunk for one integer and an integer result; nobody drops a domain.
            calls.push(unsafe {
                std::mem::transmute::<*const std::ffi::c_void, Thunk>(entry.thunk(signature))
            });
        }
        // At most as many as one lane for each allows: calling takes a lane.
        let called = calls.len().min(1000);
        for call in &calls[..called] {
            call(1);
        }
        let same = least(20, 10_000, |_| {
            calls[0](1);
        });
        let other = least(20, 10_000, |i| {
            calls[i as usize * 7 % called](1);
        });
        let reset = least(5, 20, |i| {
            calls[i as usize % called](1);
            domains[i as usize % called].reset().expect("reset");
        }) / 1e3;
        let many = at.min(1000);
        let give = least(2, 1, |_| {
            for d in &domains[..many] {
                region
                    .give(Actor::Host, Recipient::Domain(d.as_ref()), Rights::Read)
                    .expect("give");
            }
        }) / 1e3
            / many as f64;
        let revoke = least(1, 1, |_| {
            for d in &domains[..many] {
                region
                    .give(Actor::Host, Recipient::Domain(d.as_ref()), Rights::None)
                    .expect("give");
            }
        }) / 1e3
            / many as f64;
        println!(
            "{at:>7} {make:>9.1} {same:>8.2} {other:>8.2} {reset:>8.2} {give:>9.2} {revoke:>9.2} {lines:>8} {read:>9.2} {each:>9.1} {:>9.2}",
            (lines - before) as f64 / at as f64
        );
        if at == most {
            break;
        }
        at = (at * 10).min(most);
    }
    Ok(())
}
