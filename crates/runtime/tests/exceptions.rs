//! C++ exceptions in domains: between modules, in several lanes, up to the gate and not across it.

mod support;

use ringfence_driver::args::Front;
use ringfence_runtime::{CallError, Code, Domain, DomainOptions, FaultKind, Imports, Module};
use std::sync::{Arc, Mutex, OnceLock};
use support::{call, fault};

fn build(name: &str, imports: &str, flags: &[&str]) -> Module {
    let imports = format!("--import={imports}");
    let flags = [&[&*imports], flags].concat();
    support::with_libc(&format!("{name}.cc"), Front::Cxx, &flags)
}

fn throwing() -> Module {
    static MODULE: OnceLock<Module> = OnceLock::new();
    MODULE
        .get_or_init(|| build("throwing", "host_enter", &[]))
        .clone()
}

fn domain(enter: impl Fn(u64) -> u64 + Send + Sync + 'static) -> Domain {
    let imports = Imports::new().closure("host_enter", move |f| {
        f.result[0] = enter(f.ints[0]);
        Ok(())
    });
    Domain::new(&[throwing()], imports, &DomainOptions::default()).unwrap()
}

#[test]
fn exceptions_are_caught_by_type_and_base() {
    let d = domain(|n| n);
    for (kind, result) in [(1, 17), (2, 4), (3, u64::from(b'f')), (4, 99), (5, 5)] {
        assert_eq!(call(&d, "catches", &[kind]).unwrap(), result, "{kind}");
    }
    // Through the libc's frames.
    assert_eq!(call(&d, "sorts", &[13]).unwrap() as i64, -13);
    assert_eq!(call(&d, "sorts", &[1000]).unwrap(), 39);
    assert_eq!(call(&d, "left_alive", &[]).unwrap(), 0);
}

#[test]
fn what_nobody_catches_ends_the_call() {
    let d = domain(|n| n);
    for (kind, name) in [(1, "int"), (2, "Square"), (3, "std::out_of_range")] {
        let f = fault(&d, "thrower", &[kind]);
        assert_eq!(f.kind, FaultKind::Uncaught(name.into()), "{f}");
        let names: Vec<_> = f.backtrace().into_iter().filter_map(|f| f.function).collect();
        assert!(names.iter().any(|n| n == "thrower"), "{names:?}");
        assert!(matches!(
            call(&d, "catches", &[1]),
            Err(CallError::Faulted { .. })
        ));
        d.reset().unwrap();
        assert_eq!(call(&d, "catches", &[1]).unwrap(), 17);
    }
}

#[test]
fn no_exception_crosses_the_host() {
    let slot: Arc<OnceLock<Domain>> = Arc::default();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (inner, into) = (slot.clone(), seen.clone());
    let d = domain(move |kind| match call(inner.get().unwrap(), "thrower", &[kind]) {
        Ok(value) => value,
        Err(e) => {
            into.lock().unwrap().push(e);
            0
        }
    });
    assert!(slot.set(d.clone()).is_ok());
    assert_eq!(call(&d, "around_the_host", &[8]).unwrap(), 8);
    let f = fault(&d, "around_the_host", &[3]);
    assert_eq!(f.kind, FaultKind::Uncaught("std::out_of_range".into()), "{f}");
    match &seen.lock().unwrap()[..] {
        [CallError::Fault(f)] => assert_eq!(f.kind, FaultKind::Uncaught("std::out_of_range".into())),
        other => panic!("{other:?}"),
    }
    assert!(matches!(
        call(&d, "catches", &[1]),
        Err(CallError::Faulted { .. })
    ));
    // What is caught below the host stays there.
    let inner = slot.clone();
    let slot2: Arc<OnceLock<Domain>> = Arc::default();
    let own = slot2.clone();
    let d = domain(move |kind| call(own.get().unwrap(), "catches", &[kind]).unwrap() + 100);
    assert!(slot2.set(d.clone()).is_ok() && inner.get().is_some());
    assert_eq!(call(&d, "around_the_host", &[1]).unwrap(), 117);
}

#[test]
fn modules_of_a_domain_catch_each_other_s_exceptions() {
    let imports = || Imports::new().closure("host_enter", |_| Ok(()));
    let catching = build("catching", "thrower,through", &[]);
    for modules in [[catching.clone(), throwing()], [throwing(), catching.clone()]] {
        let d = Domain::new(&modules, imports(), &DomainOptions::default()).unwrap();
        for _ in 0..50 {
            for (kind, result) in [(1, 17), (2, 4), (3, u64::from(b'f')), (4, 4), (5, 5)] {
                assert_eq!(call(&d, "catch_from_other", &[kind]).unwrap(), result, "{kind}");
            }
            assert_eq!(call(&d, "catch_through_other", &[3]).unwrap(), 4);
            assert_eq!(call(&d, "catch_through_other", &[9]).unwrap(), u64::from(b'o'));
            assert_eq!(call(&d, "left_alive", &[]).unwrap(), 0);
        }
    }
}

#[test]
fn lanes_throw_at_the_same_time() {
    let d = domain(|n| n);
    let alone: Vec<u64> = (0..4)
        .map(|seed| call(&d, "work", &[seed, 3000]).unwrap())
        .collect();
    std::thread::scope(|s| {
        for (seed, alone) in alone.iter().enumerate() {
            let d = &d;
            s.spawn(move || {
                for _ in 0..5 {
                    assert_eq!(call(d, "work", &[seed as u64, 3000]).unwrap(), *alone);
                }
            });
        }
    });
    assert_eq!(call(&d, "left_alive", &[]).unwrap(), 0);
}

#[test]
fn exceptions_pass_through_modules_that_came_later() {
    let mut options = DomainOptions::default();
    options.extensible = true;
    let imports = Imports::new().closure("host_enter", |_| Ok(()));
    let d = Domain::new(&[throwing()], imports, &options).unwrap();
    let catching = build("catching", "thrower,through", &[]);
    let sum = |d: &Domain| {
        for (kind, result) in [(1, 17), (2, 4), (3, u64::from(b'f')), (4, 4), (5, 5)] {
            assert_eq!(call(d, "catch_from_other", &[kind]).unwrap(), result, "{kind}");
        }
        assert_eq!(call(d, "catch_through_other", &[3]).unwrap(), 4);
        assert_eq!(call(d, "catch_through_other", &[9]).unwrap(), u64::from(b'o'));
        assert_eq!(call(d, "left_alive", &[]).unwrap(), 0);
    };
    for _ in 0..20 {
        d.add("catching", &catching).unwrap();
        sum(&d);
        // The other unwinder too, whose list of images has changed.
        assert_eq!(call(&d, "catches", &[3]).unwrap(), u64::from(b'f'));
        d.remove("catching").unwrap();
        assert_eq!(call(&d, "catches", &[1]).unwrap(), 17);
    }
    // Two that come and go in another order: the images behind the first change places.
    let second = build("catching", "thrower,through", &[]);
    for round in 0..10 {
        let (first, second) = if round % 2 == 0 {
            (&catching, &second)
        } else {
            (&second, &catching)
        };
        d.add("first", first).unwrap();
        sum(&d);
        d.add("second", second).unwrap();
        d.remove("first").unwrap();
        sum(&d);
        d.remove("second").unwrap();
    }
    // What nobody catches ends the call, with names.
    d.add("catching", &catching).unwrap();
    let f = fault(&d, "thrower", &[2]);
    assert_eq!(f.kind, FaultKind::Uncaught("Square".into()), "{f}");
}

/// What the unwinder remembers of a place is of no use when another module is there.
#[test]
fn exceptions_pass_another_module_at_the_same_place() {
    let mut options = DomainOptions::default();
    options.extensible = true;
    let imports = Imports::new().closure("host_enter", |_| Ok(()));
    let d = Domain::new(&[throwing()], imports, &options).unwrap();
    let modules = [&[][..], &["-DDEEP"]].map(|flags| build("passing", "thrower", flags));
    let mut places = Vec::new();
    for round in 0..6 {
        d.add("passing", &modules[round % 2]).unwrap();
        places.push(d.symbol("passes").unwrap());
        assert_eq!(call(&d, "catch_passing", &[1]).unwrap(), 117, "round {round}");
        d.remove("passing").unwrap();
    }
    assert!(
        places.windows(2).any(|p| p[0] == p[1]),
        "never at the same place: {places:x?}"
    );
}

/// Single functions that are added at run time have no unwind tables: what is thrown below them ends the call, and the error says so.
#[test]
fn no_exception_passes_added_code() {
    let mut options = DomainOptions::default();
    options.extensible = true;
    let imports = Imports::new().closure("host_enter", |_| Ok(()));
    let d = Domain::new(&[throwing()], imports, &options).unwrap();
    // long bridge(long (*g)(long), long n) { return g(n); } with a register pushed:
    // marker; pushq %rbx; movl %edi,%r11d; movq %rsi,%rdi; the checked call, its identifier at 25; popq %rbx; ret
    let mut bridge = vec![
        0x0F, 0x1F, 0x84, 0x00, 0xFF, 0xFF, 0x9A, 0x62, 0x53, 0x41, 0x89, 0xFB, 0x48, 0x89, 0xF7,
    ];
    bridge.extend([
        0x41, 0x83, 0xE3, 0xF8, 0x65, 0x67, 0x41, 0x81, 0x7B, 0x04, 0xFF, 0xFF, 0x9A, 0x62,
    ]);
    bridge.extend([
        0x45, 0x0F, 0x45, 0xDE, 0x4D, 0x01, 0xF3, 0x41, 0xFF, 0xD3, 0x5B, 0xC3,
    ]);
    let code = Code {
        bytes: &bridge,
        entry: 0,
    };
    let bridge = d.add_code("bridge", &code).unwrap().address();
    let of = |name: &str| d.entry(name).unwrap().address();
    let (thrower, caught_below) = (of("thrower"), of("caught_below"));
    for _ in 0..2 {
        // What throws nothing, or is caught below, passes; so does what never meets it.
        assert_eq!(call(&d, "catch_from", &[bridge, thrower, 9]).unwrap(), 9);
        assert_eq!(
            call(&d, "catch_from", &[bridge, caught_below, 3]).unwrap() as i64,
            -2
        );
        assert_eq!(call(&d, "catches", &[1]).unwrap(), 17);
    }
    let f = fault(&d, "catch_from", &[bridge, thrower, 3]);
    assert_eq!(f.kind, FaultKind::NotUnwound("std::out_of_range".into()), "{f}");
    assert!(f.to_string().contains("no unwind tables"), "{f}");
    d.reset().unwrap();
    // Added code that is not among the frames has nothing to do with it.
    d.add_code("bridge", &code).unwrap();
    let f = fault(&d, "thrower", &[1]);
    assert_eq!(f.kind, FaultKind::Uncaught("int".into()), "{f}");
}
