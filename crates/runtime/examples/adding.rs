//! Measures adding code to a living domain and removing it.
//!
//!     cargo run --release -p ringfence-runtime --example adding -- MODULE.rf [OTHER.rf]
//!
//! Prints medians and minima in microseconds for functions of several sizes, and for the whole module OTHER.rf, by wall clock;
//! that one must need nothing, or what MODULE.rf exports. For a function of about 1 KiB of text:
//!
//!     for i in $(seq 40); do echo "x = x * 5 + (x >> 3); if (x & $i) x ^= $i;"; done |
//!         (echo 'long f(long x) {'; cat; echo 'return x; }') > small.c
//!     ringfence cc -O1 -nostdlib -o small.rf small.c

use ringfence_runtime::{Code, Domain, DomainOptions, Imports, LoadOptions, Module};
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: adding MODULE.rf")?;
    let module = Module::open(path, &LoadOptions::default())?;
    let domain = Domain::new(&[module], Imports::new(), &DomainOptions::default())?;
    println!(
        "{:>8} {:>10} {:>10} {:>10} {:>10}",
        "bytes", "add", "min", "remove", "min"
    );
    for size in [64, 256, 1024, 4096, 16384] {
        let code = function(size);
        let code = Code {
            bytes: &code,
            entry: 0,
        };
        let (mut add, mut remove) = (Vec::new(), Vec::new());
        for round in 0..2000 {
            let begin = Instant::now();
            let entry = domain.add_code("f", &code)?;
            add.push(begin.elapsed().as_nanos() as f64 / 1000.0);
            if round % 100 == 0 {
                entry.call(&mut Default::default())?;
            }
            let begin = Instant::now();
            domain.remove_code("f")?;
            remove.push(begin.elapsed().as_nanos() as f64 / 1000.0);
        }
        for times in [&mut add, &mut remove] {
            times.sort_by(f64::total_cmp);
        }
        let middle = add.len() / 2;
        println!(
            "{size:>8} {:>10.2} {:>10.2} {:>10.2} {:>10.2}",
            add[middle], add[0], remove[middle], remove[0]
        );
    }
    match std::env::args().nth(2) {
        Some(path) => whole(&domain, &path),
        None => Ok(()),
    }
}

/// A whole module: taking its bytes apart and verifying them, mapping and relocating it, both together, taking it away, and
/// giving back what it was loaded to.
fn whole(domain: &Domain, path: &str) -> Result<(), Box<dyn std::error::Error>> {
    let bytes = std::fs::read(path)?;
    const STEPS: [&str; 5] = ["load", "add", "both", "remove", "drop"];
    let mut times = [const { Vec::new() }; STEPS.len()];
    for _ in 0..2000 {
        let begin = Instant::now();
        let module = Module::from_bytes(path, &bytes, &LoadOptions::default())?;
        let loaded = Instant::now();
        domain.add("m", &module)?;
        let added = Instant::now();
        domain.remove("m")?;
        let removed = Instant::now();
        drop(module);
        let dropped = Instant::now();
        let steps = [
            (begin, loaded),
            (loaded, added),
            (begin, added),
            (added, removed),
            (removed, dropped),
        ];
        for (times, (from, to)) in times.iter_mut().zip(steps) {
            times.push((to - from).as_nanos() as f64 / 1000.0);
        }
    }
    for (what, mut times) in STEPS.into_iter().zip(times) {
        times.sort_by(f64::total_cmp);
        println!("{what:>8} {:>10.2} {:>10.2}", times[times.len() / 2], times[0]);
    }
    Ok(())
}

/// A function of `size` bytes with an ordinary mix: confined loads and stores, arithmetic, branches.
fn function(size: usize) -> Vec<u8> {
    const BODY: [&[u8]; 5] = [
        &[0x01, 0xF8],                         // addl %edi, %eax
        &[0x65, 0x67, 0x41, 0x8B, 0x47, 0x10], // movl %gs:16(%r15d), %eax
        &[0x65, 0x67, 0x41, 0x89, 0x47, 0xF8], // movl %eax, %gs:-8(%r15d)
        &[0x48, 0x8D, 0x44, 0x10, 0x08],       // leaq 8(%rax,%rdx), %rax
        &[0x85, 0xC0, 0x74, 0x02, 0xFF, 0xC0], // testl; jz over incl
    ];
    let mut code = vec![0x0F, 0x1F, 0x84, 0x00, 0xFF, 0xFF, 0x9A, 0x62];
    for part in BODY.iter().cycle() {
        if code.len() + part.len() + 1 > size {
            break;
        }
        code.extend_from_slice(part);
    }
    code.resize(size - 1, 0x90);
    code.push(0xC3);
    code
}
