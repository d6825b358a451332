//! What crossing the boundary costs: medians of interleaved runs, of which each is the best of many short ones. On a busy machine the
//! best of all is what compares.
//!
//! `call_cost MODULE.rf`, the module being `tests/modules/cost.c` built with
//! `ringfence cc -O2 --import=host_add -o MODULE.rf cost.c`.

use ringfence_core::Instance;
use ringfence_runtime::domain::batch::{Column, Element};
use ringfence_runtime::domain::last_status;
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

fn domain(module: &Module, imports: Imports) -> Domain {
    Domain::new(std::slice::from_ref(module), imports, &DomainOptions::default()).expect("domain")
}

fn thunk(domain: &Domain, name: &str) -> Add {
    // SAFETY: the module's functions that are asked for have this type.
    unsafe { std::mem::transmute(domain.entry(name).expect("entry").thunk(ADD)) }
}

/// Nanoseconds for a call in the fastest of short slices: what else the machine does meanwhile falls into others.
fn per_call(count: u32, mut f: impl FnMut()) -> f64 {
    let slice = count.min(500);
    let mut least = f64::INFINITY;
    for _ in 0..count / slice {
        let start = Instant::now();
        for _ in 0..slice {
            f();
        }
        least = least.min(start.elapsed().as_secs_f64() * 1e9 / f64::from(slice));
    }
    least
}

fn main() {
    let path = std::env::args().nth(1).expect("call_cost MODULE.rf");
    let module = Module::open(path, &LoadOptions::default()).expect("module");
    // SAFETY: host_add is sound for all arguments.
    let plain = || unsafe { Imports::new().plain("host_add", host_add as *const c_void, ADD) };
    let closure = || {
        Imports::new().closure("host_add", |f| {
            f.result[0] = f.ints[0].wrapping_add(f.ints[1]);
            Ok(())
        })
    };
    let (a, b, c) = (
        domain(&module, plain()),
        domain(&module, plain()),
        domain(&module, closure()),
    );
    let mut options = DomainOptions::default();
    options.call_limit = Some(u64::MAX - 1);
    let limited = Domain::new(std::slice::from_ref(&module), plain(), &options).expect("domain");
    let counted = thunk(&limited, "add");
    let (add, other, out, out_closure) = (
        thunk(&a, "add"),
        thunk(&b, "add"),
        thunk(&a, "out"),
        thunk(&c, "out"),
    );
    let entry = a.entry("add").expect("entry");
    let crash = b.entry("crash").expect("entry");
    let forever = b.entry("forever").expect("entry");
    let native: Add = black_box(host_add);
    const BATCH: u64 = 1000;
    let space = c.space();
    let array = || space.alloc(8 * BATCH, 16).expect("memory of the domain");
    let (left, right, sums) = (array(), array(), array());
    let columns = [
        Column::Each(Element::Word, left),
        Column::Each(Element::Word, right),
    ];
    let batched = c.entry("add").expect("entry");
    const MANY: u32 = 200_000;
    let mut figures: Vec<(&str, Vec<f64>)> = Vec::new();
    for _ in 0..9 {
        let mut note = |name: &'static str, value: f64| match figures.iter_mut().find(|f| f.0 == name) {
            Some(f) => f.1.push(value),
            None => figures.push((name, vec![value])),
        };
        let through = |f: Add| {
            per_call(MANY, || {
                black_box(black_box(f)(black_box(2), black_box(3)));
            })
        };
        note("plain indirect call", through(native));
        note("call into a domain", through(add));
        note("call into one with a limit", through(counted));
        note("two domains in turn, each", {
            per_call(MANY / 2, || {
                black_box(add(black_box(2), black_box(3)));
                black_box(other(black_box(2), black_box(3)));
            }) / 2.0
        });
        note("call with a plain callback", through(out));
        note("call with a closure", through(out_closure));
        note(
            "call into a domain, its outcome looked at",
            per_call(MANY, || {
                black_box(black_box(add)(black_box(2), black_box(3)));
                assert_eq!(last_status(), 0);
            }),
        );
        note(
            "call in a batch of 1,000, an element",
            per_call(MANY / BATCH as u32, || {
                let done = batched.call_batch(BATCH, &columns, Some((Element::Word, sums)));
                done.expect("a batch");
            }) / BATCH as f64,
        );
        note(
            "Entry::call",
            per_call(MANY, || drop(black_box(entry.call(&mut Call::ints(&[2, 3]))))),
        );
        let (mut fault, mut reset) = (Duration::MAX, Duration::MAX);
        for _ in 0..200 {
            let start = Instant::now();
            let e = crash.call(&mut Call::default());
            fault = fault.min(start.elapsed());
            assert!(e.is_err());
            let start = Instant::now();
            b.reset().expect("reset");
            reset = reset.min(start.elapsed());
        }
        note("fault to the caller", fault.as_secs_f64() * 1e9);
        note("reset", reset.as_secs_f64() * 1e9);
        b.set_time_limit(Some(Duration::from_millis(5)));
        let start = Instant::now();
        assert!(forever.call(&mut Call::default()).is_err());
        note(
            "late after a time limit",
            (start.elapsed().as_secs_f64() - 0.005) * 1e9,
        );
        b.set_time_limit(None);
        b.reset().expect("reset");
        let start = Instant::now();
        let many: Vec<Domain> = (0..50).map(|_| domain(&module, plain())).collect();
        note("domain made", start.elapsed().as_secs_f64() * 1e9 / 50.0);
        let start = Instant::now();
        drop(many);
        note("domain dropped", start.elapsed().as_secs_f64() * 1e9 / 50.0);
    }
    for (name, mut values) in figures {
        values.sort_by(f64::total_cmp);
        println!(
            "{name:41} {:10.1} ns   (best {:.1})",
            values[values.len() / 2],
            values[0]
        );
    }
}
