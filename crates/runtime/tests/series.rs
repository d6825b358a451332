//! Constructors have one limit of time all together, and so have destructors.

mod support;

use ringfence_runtime::{
    Bound, CallError, Domain, DomainError, DomainOptions, FaultKind, Imports, LoadOptions, Module,
    ModuleError,
};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_millis(100);
/// Ten times the limit: machines may be busy. All functions together take many times as long.
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
        let begun = Instant::now();
        match Domain::new(&[m], Imports::new(), &options()) {
            Err(DomainError::Init { source, .. }) if is_time(&source) => {}
            other => panic!("{other:?}"),
        }
        assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
    }
}

#[test]
fn destructors_have_one_limit_together() {
    for (many, rounds) in [LONG, SHORT] {
        let m = module(many, 0, rounds);
        let d = Domain::new(&[m], Imports::new(), &options()).unwrap();
        let begun = Instant::now();
        match d.run_destructors() {
            Err(DomainError::Fini { source, .. }) if is_time(&source) => {}
            other => panic!("{other:?}"),
        }
        assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
        assert!(d.faulted(), "half ended");
        d.reset().unwrap();
        // The limit was the destructors': a call has its own.
        std::thread::sleep(LIMIT * 2);
        assert_eq!(support::call(&d, "firsts_run", &[]).unwrap(), many.into());
    }
}

#[test]
fn modules_that_are_added_too() {
    let d = Domain::new(&[support::module()], support::imports(), &options()).unwrap();
    let many = module(SHORT.0, SHORT.1, 0);
    let begun = Instant::now();
    match d.add("many", &many) {
        Err(ModuleError::Init { source, .. }) if is_time(&source) => {}
        other => panic!("{other:?}"),
    }
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
    assert!(d.faulted());
    d.reset().unwrap();
    let m = module(100, 1000, 0);
    d.add("few", &m).unwrap();
    d.remove("few").unwrap();
}
