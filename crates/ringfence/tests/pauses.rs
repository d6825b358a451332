//! Time limits do not count what host functions wait for, and count all that a domain does.

mod support;

use std::sync::{Arc, OnceLock};
use std::thread::sleep;
use std::time::Duration;

use ringfence::{CallError, Caller, Domain, Error, FaultKind, Imports};
use support::{Start, basic_imports, module};

/// A domain whose function `host_add` is this, with a limit of time. The function sees the domain.
fn domain(limit: Duration, host_add: impl Fn(&Caller<'_>, &Domain) + Send + Sync + 'static) -> Domain {
    let own = Arc::new(OnceLock::<Domain>::new());
    let seen = own.clone();
    let imports: Imports = basic_imports().func("host_add", move |caller: &Caller, a: i32, b: i32| {
        host_add(caller, seen.get().expect("the domain is made"));
        a.wrapping_add(b)
    });
    let made = module("basic").start(imports).expect("the domain is made");
    made.set_time_limit(Some(limit)).expect("limits");
    own.set(made.clone()).expect("once");
    made
}

#[track_caller]
fn out_of_time<T: std::fmt::Debug>(result: Result<T, CallError>) {
    match result {
        Err(CallError::Fault(fault)) => assert!(matches!(fault.kind, FaultKind::TimeLimit), "{fault}"),
        other => panic!("a fault was expected, not {other:?}"),
    }
}

#[test]
fn waits_do_not_count() -> Result<(), Error> {
    needs!(Limits, Faults, Pauses);
    let d = domain(Duration::from_secs(2), |caller, _| {
        caller.wait(|| sleep(Duration::from_millis(1200)))
    });
    // Twice more than the limit, in three waits.
    assert_eq!(d.func::<(i32,), i32>("add_many")?.call(3)?, 3);
    Ok(())
}

#[test]
fn a_pause_that_nobody_ends_ends_where_the_domain_runs() -> Result<(), Error> {
    needs!(Limits, Faults, Pauses);
    let d = domain(Duration::from_millis(100), |_, own| {
        own.pause_time().expect("pauses")
    });
    let many = d.func::<(i32,), i32>("add_many")?;
    out_of_time(many.call(i32::MAX));
    d.reset()?;
    // Nor does one outlast the call: it was left in the middle of one.
    out_of_time(d.func::<(), ()>("spin")?.call());
    Ok(())
}

#[test]
fn calls_in_a_wait_count() -> Result<(), Error> {
    needs!(Limits, Faults, Pauses);
    let d = domain(Duration::from_millis(100), |caller, own| {
        let spin = own.func::<(), ()>("spin").expect("spin");
        caller.wait(|| out_of_time(spin.call()));
    });
    assert!(d.func::<(i32, i32), i32>("call_host_add")?.call(1, 2).is_err());
    Ok(())
}

#[test]
fn there_need_be_no_call() -> Result<(), Error> {
    needs!(Limits, Faults, Pauses);
    let d = domain(Duration::from_millis(100), |_, _| {});
    d.pause_time().expect("pauses");
    out_of_time(d.func::<(), ()>("spin")?.call());
    d.reset()?;
    // So long that no busy machine gets there.
    d.set_time_limit(Some(Duration::from_secs(3600))).expect("limits");
    d.resume_time().expect("pauses");
    assert_eq!(d.func::<(i32, i32), i32>("call_host_add")?.call(1, 2)?, 4);
    Ok(())
}
