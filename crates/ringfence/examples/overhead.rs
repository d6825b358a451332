//! What a call costs: `cargo run --release --example overhead -- basic.rf` (tests/api/modules/basic.c).
//!
//! Medians of interleaved rounds, in nanoseconds, beside a plain indirect call in the same process.

use std::hint::black_box;
use std::time::Instant;

use ringfence::{Error, Imports, Module, Pool, Region, Rights, Signature};

const ROUNDS: usize = 41;
const CALLS: u32 = 20_000;

extern "C" fn plain_add(a: i32, b: i32) -> i32 {
    a.wrapping_add(b)
}

fn time(mut f: impl FnMut(i32)) -> f64 {
    let start = Instant::now();
    for i in 0..CALLS {
        f(i as i32);
    }
    start.elapsed().as_nanos() as f64 / f64::from(CALLS)
}

fn imports() -> Imports {
    Imports::new()
        .func("host_add", |a: i32, b: i32| a.wrapping_add(b))
        .func("host_mix", |_: i32| 0.0f64)
        .func("host_eight", |a: i64| a)
        .func("host_note", |_: u64| ())
}

fn main() -> Result<(), Error> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "basic.rf".into());
    let module = Module::open(path)?;
    let (one, two) = (module.instantiate(imports())?, module.instantiate(imports())?);
    let nothing = one.func::<(), ()>("nothing")?;
    let add = one.func::<(i32, i32), i32>("add")?;
    let other = two.func::<(i32, i32), i32>("add")?;
    let mixed = one.func::<(i32, f64, i64, f32, u8), f64>("mixed")?;
    let callback = one.func::<(i32, i32), i32>("call_host_add")?;
    let indirect: extern "C" fn(i32, i32) -> i32 = black_box(plain_add);

    type Case<'a> = (&'a str, Box<dyn FnMut(i32) + 'a>);
    let mut cases: Vec<Case<'_>> = vec![
        (
            "plain indirect call",
            Box::new(|i| {
                black_box(black_box(indirect)(i, 1));
            }),
        ),
        ("nothing()", Box::new(|_| drop(black_box(nothing.call())))),
        ("add(i32, i32)", Box::new(|i| drop(black_box(add.call(i, 1))))),
        (
            "mixed(5 arguments, floats)",
            Box::new(|i| drop(black_box(mixed.call(i, 1.0, 2, 3.0, 4)))),
        ),
        (
            "add, two domains in turn, each",
            Box::new(|i| drop(black_box((add.call(i, 1), other.call(i, 2))))),
        ),
        (
            "call with one callback (closure)",
            Box::new(|i| drop(black_box(callback.call(i, 1)))),
        ),
    ];
    let mut times = vec![Vec::with_capacity(ROUNDS); cases.len()];
    for _ in 0..ROUNDS {
        for ((_, f), times) in cases.iter_mut().zip(&mut times) {
            times.push(time(f));
        }
    }
    for ((name, _), mut times) in cases.into_iter().zip(times) {
        times.sort_by(f64::total_cmp);
        let median = times[ROUNDS / 2] / if name.contains("two domains") { 2.0 } else { 1.0 };
        println!("{name:34} {median:6.2} ns");
    }
    slow_things(&module)
}

/// What takes microseconds.
fn slow_things(module: &Module) -> Result<(), Error> {
    let two_ints = Signature {
        ints: 2,
        floats: 0,
        stack: 0,
        int_results: 1,
        float_results: 0,
        x87_results: 0,
        ..Signature::NOTHING
    };
    let callee = module.instantiate(imports())?;
    let caller = module.instantiate(imports().export("host_add", &callee, "add", two_ints))?;
    let through = caller.func::<(i32, i32), i32>("call_host_add")?;
    let again = module.clone();
    let pool = Pool::new(1, move || again.instantiate(imports()));
    let (ten, region) = (
        (0..10)
            .map(|_| module.instantiate(imports()))
            .collect::<Result<Vec<_>, _>>()?,
        Region::new(4096)?,
    );
    let faulty = module.instantiate(imports())?;
    let divide = faulty.func::<(i32, i32), i32>("divide")?;
    let page = [1u8; 65_536];

    type Case<'a> = (&'a str, u32, Box<dyn FnMut() + 'a>);
    let mut cases: Vec<Case<'_>> = vec![
        (
            "host, domain, other domain, and back",
            10_000,
            Box::new(|| drop(black_box(through.call(1, 2)))),
        ),
        (
            "domain made and dropped",
            50,
            Box::new(|| drop(module.instantiate(imports()))),
        ),
        (
            "fault delivered, and reset",
            50,
            Box::new(|| {
                let _ = black_box(divide.call(1, 0));
                faulty.reset().expect("nobody is inside");
            }),
        ),
        (
            "reset",
            50,
            Box::new(|| faulty.reset().expect("nobody is inside")),
        ),
        (
            "pool: take, touch nothing, give back",
            50,
            Box::new(|| drop(pool.take())),
        ),
        (
            "pool: take, write 64 KiB, give back",
            50,
            Box::new(|| {
                let domain = pool.take().expect("a domain");
                domain.memory().put_slice(&page).expect("memory").leak();
            }),
        ),
        (
            "rights to 4 KiB in 10 domains changed",
            50,
            Box::new(|| {
                for rights in [Rights::Write, Rights::Read] {
                    for domain in &ten {
                        region.give(domain, rights).expect("rights");
                    }
                }
            }),
        ),
    ];
    for (name, count, f) in &mut cases {
        let mut times = Vec::with_capacity(ROUNDS);
        for _ in 0..ROUNDS {
            let start = Instant::now();
            for _ in 0..*count {
                f();
            }
            times.push(start.elapsed().as_nanos() as f64 / f64::from(*count));
        }
        times.sort_by(f64::total_cmp);
        let half = if name.starts_with("rights") { 2.0 } else { 1.0 };
        println!("{name:38} {:9.1} ns", times[ROUNDS / 2] / half);
    }
    Ok(())
}
