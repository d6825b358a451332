//! Host functions: arguments, memory, nesting, errors and panics.

mod support;

use std::sync::atomic::{AtomicI32, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};

use ringfence::{CallError, Caller, DomainError, Error, FaultKind, Func, HostCause, Imports, Ptr, Untrusted};
use support::Start as _;
use support::{basic, basic_imports, module};

#[test]
fn arguments_of_every_kind_arrive() -> Result<(), Error> {
    let d = basic();
    assert_eq!(d.func::<(i32, i32), i32>("call_host_add")?.call(20, 21)?, 42);
    assert_eq!(d.func::<(), f64>("call_host_mix")?.call()?, 1.0 + 2.5 + 3.0 + 4.5);
    assert_eq!(
        d.func::<(), i64>("call_host_eight")?.call()?,
        87_654_321,
        "two of them on the stack"
    );
    assert_eq!(d.func::<(i32,), i32>("add_many")?.call(10_000)?, 10_000);
    Ok(())
}

#[test]
fn host_functions_reach_the_callers_memory() -> Result<(), Error> {
    let seen = Arc::new(Mutex::new(String::new()));
    let into = seen.clone();
    let imports = basic_imports().func(
        "host_note",
        move |caller: &Caller, text: Untrusted<Ptr<u8>>, length: Untrusted<u64>| {
            let length = length.within(1..=100)?;
            let bytes = caller.memory().read_vec(text, length as usize)?;
            *into.lock().unwrap() = bytes.validate(String::from_utf8)?;
            Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
        },
    );
    let d = module("basic").start(imports)?;
    d.func::<(), ()>("call_host_note")?.call()?;
    assert_eq!(*seen.lock().unwrap(), "hello from inside");
    Ok(())
}

#[test]
fn missing_imports_are_named() {
    let e = module("basic").start(Imports::new()).unwrap_err();
    assert!(
        matches!(&e, DomainError::Unresolved { symbol, .. } if symbol.starts_with("host_")),
        "{e}"
    );
    assert!(e.to_string().contains("host_"), "{e}");
    let needed: Vec<String> = module("basic").imports().iter().map(|i| i.name.clone()).collect();
    for name in ["host_add", "host_mix", "host_eight", "host_note"] {
        assert!(needed.iter().any(|n| n == name), "{needed:?}");
    }
}

#[test]
fn an_error_ends_the_call() -> Result<(), Error> {
    needs!(Faults);
    let imports = basic_imports().func("host_add", |a: i32, b: i32| -> Result<i32, String> {
        if b == 13 {
            Err("no thirteens".into())
        } else {
            Ok(a + b)
        }
    });
    let d = module("basic").start(imports)?;
    let call = d.func::<(i32, i32), i32>("call_host_add")?;
    assert_eq!(call.call(1, 2)?, 4);
    match call.call(1, 13) {
        Err(CallError::Host(failure)) => {
            assert_eq!(failure.import, "host_add");
            assert!(matches!(failure.cause, HostCause::Error(_)));
            assert!(matches!(failure.fault.kind, FaultKind::Host(_)));
            let message = failure.to_string();
            assert!(message.contains("host_add failed: no thirteens"), "{message}");
            assert!(message.contains("call_host_add"), "{message}: names who called");
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(call.call(1, 2), Err(CallError::Faulted { .. })));
    d.reset()?;
    assert_eq!(call.call(1, 2)?, 4);
    Ok(())
}

#[test]
fn a_panic_ends_the_call_and_can_go_on_from_there() -> Result<(), Error> {
    needs!(Faults);
    let imports = basic_imports().func("host_add", |a: i32, b: i32| {
        assert_ne!(b, 13, "unlucky");
        a + b
    });
    let d = module("basic").start(imports)?;
    let call = d.func::<(i32, i32), i32>("call_host_add")?;
    let dropped = Arc::new(());
    let e = {
        let _held = dropped.clone();
        call.call(1, 13).unwrap_err()
    };
    assert_eq!(Arc::strong_count(&dropped), 1);
    assert!(
        e.to_string().contains("host_add panicked") && e.to_string().contains("unlucky"),
        "{e}"
    );
    let payload = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| e.resume_panic())).unwrap_err();
    assert!(
        payload
            .downcast_ref::<String>()
            .is_some_and(|m| m.contains("unlucky")),
        "the original payload"
    );
    d.reset()?;
    assert_eq!(call.call(1, 2)?, 4);
    // Errors without a panic come back as they are.
    assert!(matches!(
        CallError::Faulted { first: None }.resume_panic(),
        CallError::Faulted { .. }
    ));
    Ok(())
}

#[test]
fn host_and_domain_call_each_other_in_turn() -> Result<(), Error> {
    let again: Arc<OnceLock<Func<(i32, i32), i32>>> = Arc::default();
    let depth = Arc::new(AtomicI32::new(0));
    let (inner, at) = (again.clone(), depth.clone());
    let imports = basic_imports().func("host_add", move |a: i32, b: i32| -> Result<i32, CallError> {
        if at.fetch_add(1, Relaxed) < 30 {
            let next = inner.get().expect("set before the first call").call(a, b)?;
            Ok(next.into_inner_unchecked())
        } else {
            Ok(a + b)
        }
    });
    let d = module("basic").start(imports)?;
    let call = d.func::<(i32, i32), i32>("call_host_add")?;
    again.set(call.clone()).unwrap();
    // Each of the 31 levels adds one.
    assert_eq!(call.call(1, 2)?, 3 + 31);
    assert_eq!(depth.load(Relaxed), 31);
    Ok(())
}

#[test]
fn endless_nesting_is_an_error() -> Result<(), Error> {
    needs!(Faults);
    let again: Arc<OnceLock<Func<(i32, i32), i32>>> = Arc::default();
    let inner = again.clone();
    let count = Arc::new(AtomicU32::new(0));
    let counted = count.clone();
    let imports = basic_imports().func("host_add", move |a: i32, b: i32| -> Result<i32, CallError> {
        counted.fetch_add(1, Relaxed);
        Ok(inner.get().expect("set").call(a, b)?.into_inner_unchecked())
    });
    let d = module("basic").start(imports)?;
    let call = d.func::<(i32, i32), i32>("call_host_add")?;
    again.set(call.clone()).unwrap();
    assert!(call.call(1, 2).is_err());
    assert!(count.load(Relaxed) >= 30, "{} levels", count.load(Relaxed));
    d.reset()?;
    Ok(())
}

#[test]
fn two_domains_call_each_other_through_the_host() -> Result<(), Error> {
    needs!(Faults);
    let b = basic();
    let b_add = b.func::<(i32, i32), i32>("call_host_add")?;
    let b_divide = b.func::<(i32, i32), i32>("divide")?;
    let imports = basic_imports().func("host_add", move |x: i32, y: i32| -> Result<i32, CallError> {
        if y == 0 {
            return Ok(b_divide.call(x, y)?.into_inner_unchecked());
        }
        Ok(b_add.call(x, y)?.into_inner_unchecked())
    });
    let a = module("basic").start(imports)?;
    let call = a.func::<(i32, i32), i32>("call_host_add")?;
    assert_eq!(call.call(1, 2)?, 5);
    // A fault in B is an error of the host function, and so of the call into A.
    let e = call.call(1, 0).unwrap_err();
    let CallError::Host(failure) = &e else {
        panic!("{e}")
    };
    let HostCause::Error(inner) = &failure.cause else {
        panic!("{e}")
    };
    assert!(
        matches!(inner.downcast_ref::<CallError>(), Some(CallError::Fault(f)) if matches!(f.kind, FaultKind::Division)),
        "{e}"
    );
    assert!(a.faulted() && b.faulted());
    a.reset()?;
    b.reset()?;
    assert_eq!(call.call(1, 2)?, 5);
    Ok(())
}

#[test]
fn a_failure_is_not_taken_for_a_later_one() -> Result<(), Error> {
    needs!(Faults);
    let imports = basic_imports().func("host_add", |_: i32, _: i32| -> Result<i32, String> {
        Err("old".into())
    });
    let d = module("basic").start(imports)?;
    let e = d
        .func::<(i32, i32), i32>("call_host_add")?
        .call(1, 2)
        .unwrap_err();
    assert!(matches!(e, CallError::Host(_)));
    d.reset()?;
    let e = d.func::<(i32, i32), i32>("divide")?.call(1, 0).unwrap_err();
    assert!(matches!(e, CallError::Fault(_)), "{e}");
    Ok(())
}

#[test]
fn host_functions_run_on_every_thread() -> Result<(), Error> {
    let total = Arc::new(AtomicI32::new(0));
    let sum = total.clone();
    let imports = basic_imports().func("host_add", move |a: i32, b: i32| {
        sum.fetch_add(1, Relaxed);
        a + b
    });
    let d = module("basic").start(imports)?;
    let many = d.func::<(i32,), i32>("add_many")?;
    std::thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| assert_eq!(many.call(5000).unwrap(), 5000));
        }
    });
    assert_eq!(total.load(Relaxed), 20_000);
    Ok(())
}
