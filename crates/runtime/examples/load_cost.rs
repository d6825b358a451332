//! How long it takes to read and verify a module, the median and the best of 51 rounds by the clock:
//!
//!     cargo run --release -p ringfence-runtime --example load_cost -- build/bench/out/sqlite.full.rf [ROUNDS]

use ringfence_runtime::{LoadOptions, Module};
use std::time::Instant;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().expect("a module");
    let rounds = arguments
        .next()
        .map_or(51, |n| n.parse::<usize>().expect("a number"))
        .max(1);
    let mut times: Vec<f64> = (0..rounds)
        .map(|_| {
            let start = Instant::now();
            let module = Module::open(&file, &LoadOptions::default()).expect("a sound module");
            let took = start.elapsed().as_secs_f64() * 1e6;
            drop(module);
            took
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!("{file}: {:.0} µs, best {:.0}", times[rounds / 2], times[0]);
}
