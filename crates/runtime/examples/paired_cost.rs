//! What a call, a callback, a fault and a reset cost, for `make bench-bounds BASE=REVISION`: `paired_cost MODULE.rf`, the module being
//! `tests/modules/cost.c`. This very file is also built with the other revision, so it uses nothing that has changed; both measure in
//! the same way.

use ringfence_runtime::{Call, Domain, DomainOptions, Imports, LoadOptions, Module, Signature};
use std::ffi::c_void;
use std::hint::black_box;
use std::time::{Duration, Instant};

const ADD: Signature = Signature {
    ints: 2,
    floats: 0,
    stack: 0,
    int_results: 1,
    float_results: 0,
    x87_results: 0,
    ..Signature::NOTHING
};

type Add = extern "C" fn(i64, i64) -> i64;

#[inline(never)]
extern "C" fn host_add(a: i64, b: i64) -> i64 {
    a.wrapping_add(b)
}

fn domain(module: &Module) -> Domain {
    // SAFETY: host_add is sound for all arguments.
    let imports = unsafe { Imports::new().plain("host_add", host_add as *const c_void, ADD) };
    Domain::new(std::slice::from_ref(module), imports, &DomainOptions::default()).expect("domain")
}

fn thunk(domain: &Domain, name: &str) -> Add {
    // SAFETY: the module's functions that are asked for have this type.
    unsafe { std::mem::transmute(domain.entry(name).expect("entry").thunk(ADD)) }
}

/// Nanoseconds for a call in each of many short slices.
fn calls(f: Add, all: &mut Vec<f64>) {
    const SLICE: u32 = 500;
    for _ in 0..400 {
        let start = Instant::now();
        for _ in 0..SLICE {
            black_box(black_box(f)(black_box(2), black_box(3)));
        }
        all.push(nanoseconds(start.elapsed()) / f64::from(SLICE));
    }
}

fn nanoseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e9
}

fn main() {
    let path = std::env::args().nth(1).expect("paired_cost MODULE.rf");
    let module = Module::open(path, &LoadOptions::default()).expect("module");
    let (a, b) = (domain(&module), domain(&module));
    let (add, out) = (thunk(&a, "add"), thunk(&a, "out"));
    let crash = b.entry("crash").expect("entry");
    let [mut null, mut callback, mut fault, mut reset] = [const { Vec::new() }; 4];
    for _ in 0..9 {
        calls(add, &mut null);
        calls(out, &mut callback);
        for _ in 0..400 {
            let start = Instant::now();
            let e = crash.call(&mut Call::default());
            fault.push(nanoseconds(start.elapsed()));
            assert!(e.is_err());
            let start = Instant::now();
            b.reset().expect("reset");
            reset.push(nanoseconds(start.elapsed()));
        }
    }
    for (name, mut all) in [
        ("call into a domain", null),
        ("call with a plain callback", callback),
        ("fault to the caller", fault),
        ("reset", reset),
    ] {
        all.sort_by(f64::total_cmp);
        println!("{name:28} {:10.1} ns   (best {:.1})", all[all.len() / 2], all[0]);
    }
}
