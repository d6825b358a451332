//! `setjmp` and `longjmp` through the gate.

mod support;

use ringfence_runtime::domain::{restore_call, save_call};
use ringfence_runtime::{Call, Domain, DomainOptions, FaultKind, Imports, LoadOptions, Module};
use std::sync::{Arc, OnceLock};
use support::{build, call, entry, fault};

fn domain(imports: Imports) -> Domain {
    static MODULE: OnceLock<Module> = OnceLock::new();
    let module = MODULE.get_or_init(|| {
        Module::open(
            build("jumps", &["--import=host_enter,__rf_setjmp,__rf_longjmp"]),
            &LoadOptions::default(),
        )
        .unwrap()
    });
    Domain::new(std::slice::from_ref(module), imports, &DomainOptions::default()).unwrap()
}

fn plain() -> Domain {
    domain(Imports::new().closure("host_enter", |_| Ok(())))
}

#[test]
fn jumps_come_back_as_often_as_wanted() {
    let d = plain();
    for _ in 0..3 {
        assert_eq!(call(&d, "rounds", &[5]).unwrap(), 1577);
        assert_eq!(call(&d, "zero_is_one", &[]).unwrap(), 1);
        assert_eq!(call(&d, "many", &[20_000]).unwrap(), 40_000);
        assert_eq!(call(&d, "outer", &[0]).unwrap(), 42);
        assert_eq!(call(&d, "outer", &[200]).unwrap(), 42);
        let mut args = Call::default();
        args.floats[0] = 1.5;
        assert_eq!(entry(&d, "floating").call(&mut args).unwrap().xmm0, 3.0);
    }
}

#[test]
fn a_record_dies_with_its_frame() {
    let d = plain();
    for name in ["dead", "never_set", "bad_pointer"] {
        let f = fault(&d, name, &[]);
        assert!(
            matches!(&f.kind, FaultKind::Host(why) if why.contains("longjmp")),
            "{name}: {f}"
        );
        d.reset().unwrap();
        assert_eq!(call(&d, "zero_is_one", &[]).unwrap(), 1);
    }
    // From one call in to the next.
    assert_eq!(call(&d, "zero_is_one", &[]).unwrap(), 1);
    let f = fault(&d, "cross_inner", &[]);
    assert!(
        matches!(&f.kind, FaultKind::Host(why) if why.contains("returned")),
        "{f}"
    );
}

#[test]
fn a_function_with_tail_calls_sets_no_record() {
    let d = plain();
    // What is known of a place is kept: the second time has the same answer.
    for _ in 0..2 {
        let f = fault(&d, "tail", &[1]);
        assert!(
            matches!(&f.kind, FaultKind::Host(why) if why.contains("tail call")),
            "{f}"
        );
        d.reset().unwrap();
    }
}

#[test]
fn no_jump_crosses_the_host() {
    let slot: Arc<OnceLock<Domain>> = Arc::default();
    let inner = slot.clone();
    let d = domain(Imports::new().closure("host_enter", move |_| {
        let f = fault(inner.get().unwrap(), "cross_inner", &[]);
        assert!(
            matches!(&f.kind, FaultKind::Host(why) if why.contains("host")),
            "{f}"
        );
        Ok(())
    }));
    assert!(slot.set(d.clone()).is_ok());
    let f = fault(&d, "cross", &[]);
    assert!(
        matches!(&f.kind, FaultKind::Host(why) if why.contains("host")),
        "{f}"
    );
}

#[test]
fn backtraces_see_through_hooks() {
    let d = plain();
    let f = fault(&d, "fault_inside", &[]);
    assert_eq!(f.kind, FaultKind::IllegalInstruction);
    assert_eq!(f.backtrace()[0].function.as_deref(), Some("fault_inside"));
    d.reset().unwrap();
    assert_eq!(call(&d, "rounds", &[5]).unwrap(), 1577);
}

/// A signal handler's call may have interrupted the heap, so its records have the room that there is.
#[test]
fn a_handlers_call_makes_no_room_for_records() {
    let d = plain();
    assert_eq!(call(&d, "zero_is_one", &[]).unwrap(), 1);
    let saved = save_call();
    assert_eq!(call(&d, "outer", &[6]).unwrap(), 42);
    // What is known of the failure, the domain tells afterwards.
    assert!(call(&d, "outer", &[200]).is_err());
    restore_call(saved);
    let e = call(&d, "outer", &[6]).unwrap_err().to_string();
    assert!(
        e.contains("live setjmp records for a call in a signal handler"),
        "{e}"
    );
    d.reset().unwrap();
    assert_eq!(call(&d, "outer", &[200]).unwrap(), 42);
}
