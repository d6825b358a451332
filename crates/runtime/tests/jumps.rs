//! `setjmp` and `longjmp`.

mod support;

use ringfence_runtime::{Call, Domain, DomainOptions, FaultKind, FramesError, Imports, LoadOptions, Module};
use std::sync::{Arc, OnceLock};
use support::{build, call, entry, fault};

fn domain(imports: Imports) -> Domain {
    static MODULE: OnceLock<Module> = OnceLock::new();
    let module = MODULE.get_or_init(|| {
        Module::open(build("jumps", &["--import=host_enter"]), &LoadOptions::default()).unwrap()
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

fn frames(d: &Domain, name: &str) -> FramesError {
    match fault(d, name, &[]).kind {
        FaultKind::Frames(why) => why,
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn no_jump_leads_to_a_frame_that_is_gone() {
    let d = plain();
    for (name, why) in [
        ("dead", FramesError::OtherFunction),
        ("never_set", FramesError::NoPad),
        ("bad_pointer", FramesError::Pointer),
    ] {
        assert_eq!(frames(&d, name), why, "{name}");
        d.reset().unwrap();
        assert_eq!(call(&d, "zero_is_one", &[]).unwrap(), 1);
    }
    // From one call in to the next.
    assert_eq!(call(&d, "zero_is_one", &[]).unwrap(), 1);
    assert_eq!(frames(&d, "cross_inner"), FramesError::OtherFunction);
}

#[test]
fn a_function_may_leave_by_a_tail_call_too() {
    let d = plain();
    assert_eq!(call(&d, "tail", &[1]).unwrap(), 9);
    assert_eq!(call(&d, "tail", &[9]).unwrap(), 10);
}

#[test]
fn no_jump_crosses_the_host() {
    let slot: Arc<OnceLock<Domain>> = Arc::default();
    let inner = slot.clone();
    let d = domain(Imports::new().closure("host_enter", move |_| {
        assert_eq!(
            frames(inner.get().unwrap(), "cross_inner"),
            FramesError::OtherFunction
        );
        Ok(())
    }));
    assert!(slot.set(d.clone()).is_ok());
    assert_eq!(frames(&d, "cross"), FramesError::OtherFunction);
}

#[test]
fn backtraces_pass_functions_that_called_setjmp() {
    let d = plain();
    let f = fault(&d, "fault_inside", &[]);
    assert_eq!(f.kind, FaultKind::IllegalInstruction);
    assert_eq!(f.backtrace()[0].function.as_deref(), Some("fault_inside"));
    d.reset().unwrap();
    assert_eq!(call(&d, "rounds", &[5]).unwrap(), 1577);
}
