//! What crossing the boundary costs.

use crate::Cost;
use crate::build::{Kitchen, Native};
use crate::configuration::Configuration;
use crate::measure::{Subject, interleave, nanoseconds, thread_nanoseconds};
use crate::place::{Pinned, Place, Processors};
use crate::rpc::{Server, Transport};
use crate::wasm;
use ringfence_runtime::domain::batch::{Column, Element};
use ringfence_runtime::domain::last_status;
use ringfence_runtime::{
    Call, CallError, Domain, DomainOptions, Entry, Imports, LoadOptions, Module, OnFailure, Signature,
};
use std::ffi::c_void;
use std::hint::black_box;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Names of processes that share the caller's processor, which other tables use.
pub mod process {
    /// Bytes in shared memory.
    pub const SHARED: &str = "process, shared memory and futex";
    /// Two pipes.
    pub const PIPE: &str = "process, pipe";
    /// A pair of sockets.
    pub const SOCKET: &str = "process, Unix socket";
    /// Two processors kept busy.
    pub const SPINNING: &str = "process on another processor, spinning";
}

/// A function without arguments and result.
const NOTHING: Signature = Signature {
    ints: 0,
    floats: 0,
    stack: 0,
    int_results: 0,
    float_results: 0,
    x87_results: 0,
    ..Signature::NOTHING
};
/// Two integers in, one out.
const ADD: Signature = Signature {
    ints: 2,
    int_results: 1,
    ..NOTHING
};

/// Elements of a batch.
const BATCH: u64 = 1000;

type Nothing = extern "C" fn();
type Faults = extern "C" fn(i64);
type Add = extern "C" fn(i64, i64) -> i64;

extern "C" fn host_add(a: i64, b: i64) -> i64 {
    a.wrapping_add(b)
}

fn text(e: impl std::fmt::Display) -> String {
    e.to_string()
}

fn domain(module: &Module) -> Result<Domain, String> {
    // SAFETY: host_add is a C function of two integers in registers; it is sound for any values and does not unwind
    let imports = unsafe { Imports::new().plain("host_add", host_add as *const c_void, ADD) };
    Domain::new(std::slice::from_ref(module), imports, &DomainOptions::default()).map_err(text)
}

fn with_closure(module: &Module) -> Result<Domain, String> {
    let imports = Imports::new().closure("host_add", |frame| {
        frame.result[0] = frame.ints[0].wrapping_add(frame.ints[1]);
        Ok(())
    });
    Domain::new(std::slice::from_ref(module), imports, &DomainOptions::default()).map_err(text)
}

fn with_domain(module: &Module, other: &Domain) -> Result<Domain, String> {
    let imports = Imports::new().domain_or("host_add", other, "add", ADD, OnFailure::End);
    Domain::new(std::slice::from_ref(module), imports, &DomainOptions::default()).map_err(text)
}

fn nothing(entry: &Entry) -> Nothing {
    // SAFETY: a thunk is a C function; one of this signature takes and returns nothing
    unsafe { std::mem::transmute::<*const c_void, Nothing>(entry.thunk(NOTHING)) }
}

fn add(entry: &Entry) -> Add {
    // SAFETY: a thunk is a C function; one of this signature takes two integers and returns one
    unsafe { std::mem::transmute::<*const c_void, Add>(entry.thunk(ADD)) }
}

fn loop_nothing(count: u32, f: Nothing) -> f64 {
    thread_nanoseconds(count, || black_box(f)())
}

fn loop_add(count: u32, f: Add) -> f64 {
    thread_nanoseconds(count, || {
        black_box(black_box(f)(black_box(2), black_box(3)));
    })
}

/// Everything that is called.
pub struct Calls {
    /// The functions without a fence.
    pub native: Native,
    /// A domain that gets a C function as its import.
    pub one: Domain,
    /// One whose code mentions no vector register, and one with x87 instructions.
    bare: Domain,
    x87: Domain,
    fenced: PathBuf,
    module: Module,
}

impl Calls {
    /// Builds and loads.
    pub fn new(kitchen: &Kitchen) -> Result<Self, String> {
        let native = kitchen.module("plain.c", &[], Configuration::Native)?;
        let fenced = kitchen.module("calls.c", &["--import=host_add"], Configuration::Full)?;
        let module = Module::open(&fenced, &LoadOptions::default()).map_err(text)?;
        let alone = |source: &str, flags: &[&str]| {
            let file = kitchen.module(source, flags, Configuration::Full)?;
            let module = Module::open(&file, &LoadOptions::default()).map_err(text)?;
            domain(&module)
        };
        Ok(Calls {
            native: Native::load(&native)?,
            one: domain(&module)?,
            bare: alone("bare.c", &["-nostdlib", "-mgeneral-regs-only"])?,
            x87: alone("x87.c", &["-nostdlib"])?,
            fenced,
            module,
        })
    }

    /// Measures calls, faults and the making of domains.
    pub fn measure(
        &self,
        kitchen: &Kitchen,
        runs: usize,
        smoke: bool,
        peers: bool,
    ) -> Result<Vec<Cost>, String> {
        let Calls {
            native,
            one,
            bare,
            x87,
            fenced,
            module,
        } = self;
        let (other, closure, faulty) = (domain(module)?, with_closure(module)?, domain(module)?);
        let batched = domain(module)?;
        let array = || batched.as_ref().alloc(8 * BATCH, 16).map_err(text);
        let columns = [
            Column::Each(Element::Word, array()?),
            Column::Each(Element::Word, array()?),
        ];
        let (batch, sums) = (
            batched.entry("add").map_err(text)?,
            Some((Element::Word, array()?)),
        );
        let linked = with_domain(module, &other)?;
        // about a millisecond: most rounds pass without an interruption
        let count = if smoke { 200 } else { 200_000 };
        let few = 20;

        // SAFETY: plain.c defines it with this type
        let plain = unsafe { std::mem::transmute::<*const c_void, Nothing>(native.symbol("nothing")?) };
        // SAFETY: the same
        let plain_add = unsafe { std::mem::transmute::<*const c_void, Add>(native.symbol("add")?) };
        let entry = one.entry("nothing").map_err(text)?;
        let fenced_nothing = nothing(&entry);
        let bare_nothing = nothing(&bare.entry("nothing").map_err(text)?);
        let x87_nothing = nothing(&x87.entry("nothing").map_err(text)?);
        // SAFETY: plain.c defines it with this type
        let faults = unsafe { std::mem::transmute::<*const c_void, Faults>(native.symbol("faults")?) };
        let processors = Processors::of_this_thread();
        let _pin = Pinned::to(Place::Here);
        let start = |transport, place| Server::start(transport, processors, place).map_err(text);
        // Waking another processor takes long, and longer where others want it too.
        let requests = |place| {
            if place == Place::Here {
                count / 100
            } else {
                count / 1000 + 1
            }
        };
        let mut servers = Vec::new();
        for (name, transport, place) in [
            (process::SHARED, Transport::Shared, Place::Here),
            (process::PIPE, Transport::Pipe, Place::Here),
            (process::SOCKET, Transport::Socket, Place::Here),
            (process::SPINNING, Transport::Spinning, Place::There),
            (
                "process on another processor, shared memory and futex",
                Transport::Shared,
                Place::There,
            ),
            (
                "process on another processor, pipe",
                Transport::Pipe,
                Place::There,
            ),
            (
                "process on another processor, Unix socket",
                Transport::Socket,
                Place::There,
            ),
        ] {
            if place == Place::Here || processors.two() {
                servers.push((name, requests(place), start(transport, place)?));
            }
        }
        let other_nothing = nothing(&other.entry("nothing").map_err(text)?);
        let fenced_add = add(&one.entry("add").map_err(text)?);
        let call_back = add(&one.entry("call_back").map_err(text)?);
        let call_closure = add(&closure.entry("call_back").map_err(text)?);
        let call_other = add(&linked.entry("call_back").map_err(text)?);
        let fault = faulty.entry("fault").map_err(text)?;
        let dirty = one.entry("dirty").map_err(text)?;
        for (f, want) in [
            (plain_add, 5),
            (fenced_add, 5),
            (call_back, 6),
            (call_closure, 6),
            (call_other, 6),
        ] {
            let got = f(2, 3);
            if got != want {
                return Err(format!(
                    "a call gave {got} instead of {want}: {:?}",
                    ringfence_runtime::domain::take_error()
                ));
            }
        }

        let mut engines = Vec::new();
        for (wasm2c, names) in [
            (true, ["wasm2c, null call", "wasm2c, call with one callback"]),
            (false, ["Wasmtime, null call", "Wasmtime, call with one callback"]),
        ] {
            if let (true, Ok(peer)) = (peers, wasm::calls(kitchen.dir(), wasm2c)) {
                engines.push((names[0], "nothing", peer.clone()));
                engines.push((names[1], "call_back", peer));
            }
        }
        let mut subjects: Vec<Subject> = vec![
            ("plain indirect call", Box::new(|| Ok(loop_nothing(count, plain)))),
            (
                "null call, window selected",
                Box::new(|| Ok(loop_nothing(count, fenced_nothing))),
            ),
            (
                "null call, no vector register in the module",
                Box::new(|| Ok(loop_nothing(count, bare_nothing))),
            ),
            (
                "null call, x87 in the module",
                Box::new(|| Ok(loop_nothing(count, x87_nothing))),
            ),
            (
                "plain indirect call, two integers",
                Box::new(|| Ok(loop_add(count, plain_add))),
            ),
            (
                "call with two integers",
                Box::new(|| Ok(loop_add(count, fenced_add))),
            ),
            (
                "call with two integers, its outcome looked at",
                Box::new(|| {
                    Ok(thread_nanoseconds(count, || {
                        black_box(black_box(fenced_add)(black_box(2), black_box(3)));
                        assert_eq!(last_status(), 0, "the call failed");
                    }))
                }),
            ),
            (
                "call with two integers in a batch of 1,000, an element",
                Box::new(|| {
                    let mut outcome = Ok(());
                    let one = thread_nanoseconds(count / BATCH as u32 + 1, || {
                        if outcome.is_ok() {
                            outcome = batch.call_batch(BATCH, &columns, sums);
                        }
                    });
                    outcome.map_err(text)?;
                    Ok(one / BATCH as f64)
                }),
            ),
            (
                "null call by the checked interface",
                Box::new(|| {
                    Ok(thread_nanoseconds(count, || {
                        black_box(entry.call(&mut Call::ints(&[]))).ok();
                    }))
                }),
            ),
            (
                "null call with window switch",
                Box::new(|| {
                    Ok(thread_nanoseconds(count / 2, || {
                        black_box(fenced_nothing)();
                        black_box(other_nothing)();
                    }) / 2.0)
                }),
            ),
            (
                "call with one callback, C function",
                Box::new(|| Ok(loop_add(count, call_back))),
            ),
            (
                "call with one callback, closure",
                Box::new(|| Ok(loop_add(count, call_closure))),
            ),
            (
                "call with one call of another domain",
                Box::new(|| Ok(loop_add(count, call_other))),
            ),
            (
                "fault delivered to the caller",
                Box::new(|| {
                    turns(few, || {
                        let start = Instant::now();
                        let result = black_box(fault.call(&mut Call::ints(&[])));
                        let took = start.elapsed();
                        match result {
                            Err(CallError::Fault(_)) => faulty.reset().map_err(text)?,
                            other => return Err(format!("no fault but {other:?}")),
                        }
                        Ok(took)
                    })
                }),
            ),
            (
                "fault, unprotected: handler and siglongjmp",
                Box::new(|| {
                    faults(1);
                    let start = Instant::now();
                    faults(few.into());
                    Ok(start.elapsed().as_nanos() as f64 / f64::from(few) / 1e3)
                }),
            ),
            (
                "process, death noticed and another ready",
                Box::new(|| {
                    let mut server = start(Transport::Shared, Place::Here)?;
                    server.reverse(&mut [0]);
                    let begin = Instant::now();
                    drop(server);
                    start(Transport::Shared, Place::Here)?.reverse(&mut [0]);
                    Ok(begin.elapsed().as_nanos() as f64 / 1e3)
                }),
            ),
            (
                "domain created, 1 MiB module",
                Box::new(|| {
                    turns(few, || {
                        let start = Instant::now();
                        let _made = domain(module)?;
                        Ok(start.elapsed())
                    })
                }),
            ),
            (
                "domain reset, 16 pages dirty",
                Box::new(|| {
                    turns(few, || {
                        dirty.call(&mut Call::ints(&[16])).map_err(text)?;
                        let start = Instant::now();
                        one.reset().map_err(text)?;
                        Ok(start.elapsed())
                    })
                }),
            ),
            (
                // With the page faults of whoever writes next.
                "domain recycled, 64 KiB written",
                Box::new(|| {
                    turns(few, || {
                        let start = Instant::now();
                        dirty.call(&mut Call::ints(&[16])).map_err(text)?;
                        one.recycle().map_err(text)?;
                        Ok(start.elapsed())
                    })
                }),
            ),
            (
                "module loaded (read, verified)",
                Box::new(|| {
                    let start = Instant::now();
                    for _ in 0..few / 10 {
                        black_box(Module::open(fenced, &LoadOptions::default()).map_err(text)?);
                    }
                    Ok(start.elapsed().as_nanos() as f64 / f64::from(few / 10) / 1e3)
                }),
            ),
        ];
        for (name, symbol, peer) in &engines {
            subjects.push((
                name,
                Box::new(move || Ok(peer.run(symbol, count.into())?.1 * 1e9 / f64::from(count))),
            ));
        }
        for (name, requests, server) in &mut servers {
            let requests = *requests;
            subjects.push((
                name,
                Box::new(move || Ok(nanoseconds(requests, || server.reverse(black_box(&mut [0]))))),
            ));
        }
        let summaries = interleave(runs, &mut subjects)?;
        let costs = subjects.iter().zip(&summaries).map(|((name, _), summary)| {
            let (unit, target, base) = about(name);
            let base = subjects.iter().position(|(other, _)| Some(*other) == base);
            let ratio = base.map(|base| summary.median / summaries[base].median);
            Cost {
                name: (*name).to_owned(),
                unit: unit.to_owned(),
                summary: *summary,
                target: target.to_owned(),
                ratio,
            }
        });
        Ok(costs.collect())
    }
}

/// Microseconds for one of `count` turns, each of which says what of it counts, after one that does not count. Other rows make
/// processes: the first turn behind a `fork` copies the pages that both have then, which a host that makes none never pays.
fn turns(count: u32, mut turn: impl FnMut() -> Result<Duration, String>) -> Result<f64, String> {
    turn()?;
    let mut total = Duration::ZERO;
    for _ in 0..count {
        total += turn()?;
    }
    Ok(total.as_secs_f64() * 1e6 / f64::from(count))
}

/// Unit and target of a subject, and the subject that it is compared with.
fn about(name: &str) -> (&'static str, &'static str, Option<&'static str>) {
    const PLAIN: Option<&str> = Some("plain indirect call");
    const PLAIN_TWO: Option<&str> = Some("plain indirect call, two integers");
    match name {
        "null call, window selected" => ("ns", "4 ×", PLAIN),
        "null call, no vector register in the module"
        | "null call, x87 in the module"
        | "null call by the checked interface"
        | "wasm2c, null call"
        | "Wasmtime, null call" => ("ns", "", PLAIN),
        // before the others that begin like this
        "process, death noticed and another ready" => ("µs", "", None),
        name if name.starts_with("process") => ("ns", "", PLAIN),
        "wasm2c, call with one callback" | "Wasmtime, call with one callback" => ("ns", "", PLAIN_TWO),
        "fault, unprotected: handler and siglongjmp" => ("µs", "", None),
        "null call with window switch" => ("ns", "20 ns", PLAIN),
        "call with two integers" => ("ns", "", PLAIN_TWO),
        "call with two integers, its outcome looked at" => ("ns", "12 ns", PLAIN_TWO),
        "call with two integers in a batch of 1,000, an element" => ("ns", "a call + 3 ns", PLAIN_TWO),
        "call with one callback, C function" => ("ns", "11 ns", PLAIN_TWO),
        "call with one callback, closure" => ("ns", "", PLAIN_TWO),
        "fault delivered to the caller" => ("µs", "10 µs", None),
        "domain created, 1 MiB module" => ("µs", "100 µs", None),
        "domain reset, 16 pages dirty" => ("µs", "50 µs", None),
        "domain recycled, 64 KiB written" => ("µs", "10 µs", None),
        "call with one call of another domain" => ("ns", "35 ns + a call", PLAIN_TWO),
        "module loaded (read, verified)" => ("µs", "", None),
        _ => ("ns", "", None),
    }
}
