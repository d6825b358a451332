//! Constructors have one limit of time all together, and so have destructors.

mod support;

use ringfence_runtime::{
    Bound, CallError, Domain, DomainError, DomainOptions, FaultKind, Imports, LoadOptions, Module,
    ModuleError,
};
use std::time::Duration;
use support::processor_time;

const LIMIT: Duration = Duration::from_millis(100);
/// Of a processor's time: ten times the limit. All functions together take many times as long.
const PATIENCE: Duration = Duration::from_secs(1);

/// A module with `many` constructors and destructors that spin for so many rounds, a nanosecond or less each.
fn module(many: u32, first: u64, last: u64) -> Module {
    let flags = [
        format!("-DMANY={many}"),
        format!("-DROUNDS_FIRST={first}"),
        format!("-DROUNDS_LAST={last}"),
    ];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let path = support::build("series", &flags);
    let module = Module::open(&path, &LoadOptions::default()).expect("the module");
    let _ = std::fs::remove_file(path);
    module
}

fn options() -> DomainOptions {
    let mut options = DomainOptions::default();
    options.time_limit = Some(LIMIT);
    options.extensible = true;
    options
}

/// What a limit of time may end on a busy machine, tried until it succeeds.
fn often<T>(mut what: impl FnMut() -> Result<T, DomainError>) -> T {
    for _ in 0..50 {
        match what() {
            Err(DomainError::Init { source, .. }) if is_time(&source) => {}
            other => return other.unwrap(),
        }
    }
    panic!("the machine is too busy for 65,000 calls in {LIMIT:?}");
}

fn is_time(source: &CallError) -> bool {
    match source {
        CallError::Fault(fault) => fault.kind == FaultKind::TimeLimit,
        CallError::Exceeded(over) => (over.bound, over.limit) == (Bound::Time, LIMIT.as_nanos() as u64),
        _ => false,
    }
}

/// What is long is ended by the watchdog, what is short between two calls.
const LONG: (u32, u64) = (500, 20_000_000);
const SHORT: (u32, u64) = (65_000, 150_000);

#[test]
fn constructors_have_one_limit_together() {
    for (many, rounds) in [LONG, SHORT] {
        let m = module(many, rounds, 0);
        let begun = processor_time();
        match Domain::new(&[m], Imports::new(), &options()) {
            Err(DomainError::Init { source, .. }) if is_time(&source) => {}
            other => panic!("{other:?}"),
        }
        let took = processor_time() - begun;
        assert!(took < PATIENCE, "{took:?}");
    }
}

#[test]
fn destructors_have_one_limit_together() {
    for (many, rounds) in [LONG, SHORT] {
        let m = module(many, 0, rounds);
        // Its constructors do next to nothing, but a busy machine may let even those wait for longer than the limit.
        let d = often(|| Domain::new(std::slice::from_ref(&m), Imports::new(), &options()));
        let begun = processor_time();
        match d.run_destructors() {
            Err(DomainError::Fini { source, .. }) if is_time(&source) => {}
            other => panic!("{other:?}"),
        }
        let took = processor_time() - begun;
        assert!(took < PATIENCE, "{took:?}");
        assert!(d.faulted(), "half ended");
        often(|| d.reset());
        // The limit was the destructors': a call has its own.
        std::thread::sleep(LIMIT * 2);
        assert_eq!(support::call(&d, "firsts_run", &[]).unwrap(), many.into());
    }
}

#[test]
fn modules_that_are_added_too() {
    let d = Domain::new(&[support::module()], support::imports(), &options()).unwrap();
    let many = module(SHORT.0, SHORT.1, 0);
    let begun = processor_time();
    match d.add("many", &many) {
        Err(ModuleError::Init { source, .. }) if is_time(&source) => {}
        other => panic!("{other:?}"),
    }
    let took = processor_time() - begun;
    assert!(took < PATIENCE, "{took:?}");
    assert!(d.faulted());
    d.reset().unwrap();
    let m = module(100, 1000, 0);
    d.add("few", &m).unwrap();
    d.remove("few").unwrap();
}
