//! Calls in, calls out, nesting, memory, reset.

mod support;

use ringfence_runtime::{
    Call, CallError, Domain, DomainError, DomainOptions, EndCall, FaultKind, Imports, LoadOptions,
    MemoryError, Module, Signature,
};
use std::ffi::c_void;
use std::sync::{Arc, Barrier, Mutex, OnceLock};
use support::{build, call, domain, entry, fault, imports, module};

const LONGS_2: Signature = Signature {
    ints: 2,
    floats: 0,
    stack: 0,
    int_results: 1,
    float_results: 0,
    x87_results: 0,
    ..Signature::NOTHING
};

#[test]
fn arguments_and_results_of_every_class() {
    let d = domain();
    assert_eq!(call(&d, "add", &[2, 3]).unwrap(), 5);
    assert_eq!(call(&d, "increment", &[]).unwrap(), 6);
    assert_eq!(call(&d, "increment", &[]).unwrap(), 7);
    assert_eq!(call(&d, "word", &[2, 1]).unwrap() as u8, b'w');
    assert_eq!(call(&d, "get_constructed", &[]).unwrap(), 42);
    let p = entry(&d, "swap").call(&mut Call::ints(&[1, 2])).unwrap();
    assert_eq!((p.rax, p.rdx), (2, 1));
    let mut floats = Call {
        ints: [4, 0, 0, 0, 0, 0],
        ..Call::default()
    };
    floats.floats[0] = 1.5;
    floats.floats[1] = f64::from_bits(u64::from(2.5f32.to_bits()));
    assert_eq!(entry(&d, "mix").call(&mut floats).unwrap().xmm0, 11.5);
    let mut pair = Call::default();
    pair.floats[..2].copy_from_slice(&[1.0, 2.0]);
    let p = entry(&d, "dswap").call(&mut pair).unwrap();
    assert_eq!((p.xmm0, p.xmm1), (2.0, 1.0));
    let mut many = Call {
        ints: [1, 2, 3, 4, 5, 6],
        stack: &[7, 8, 9, 10],
        ..Call::default()
    };
    assert_eq!(entry(&d, "sum10").call(&mut many).unwrap().rax, 385);
    let long = vec![0; 129];
    let mut too_many = Call {
        stack: &long,
        ..Call::default()
    };
    assert!(matches!(
        entry(&d, "sum10").call(&mut too_many),
        Err(CallError::Arguments { given: 129, .. })
    ));
}

fn extended() -> Domain {
    extended_with(imports())
}

fn extended_with(imports: ringfence_runtime::Imports) -> Domain {
    static MODULE: OnceLock<Module> = OnceLock::new();
    let module = MODULE.get_or_init(|| {
        Module::open(build("extended", &["--import=host_add"]), &LoadOptions::default()).unwrap()
    });
    Domain::new(std::slice::from_ref(module), imports, &DomainOptions::default()).unwrap()
}

#[test]
fn long_double_results_come_in_st0() {
    let d = extended();
    let third = entry(&d, "third").call(&mut Call::ints(&[1])).unwrap().st0;
    // 1/3 in 80 bits.
    assert_eq!(
        third[..10],
        [0xAB, 0xAA, 0xAA, 0xAA, 0xAA, 0xAA, 0xAA, 0xAA, 0xFD, 0x3F]
    );
    // A long double argument is two words on the stack.
    let word = |i: usize| u64::from_le_bytes(third[i..i + 8].try_into().unwrap());
    let mut args = Call {
        stack: &[word(0), word(8)],
        ..Call::default()
    };
    let one = entry(&d, "longer").call(&mut args).unwrap().st0;
    assert_eq!(one[..10], [0, 0, 0, 0, 0, 0, 0, 0x80, 0xFF, 0x3F]);
    // Across a call out.
    let mixed = entry(&d, "between").call(&mut Call::ints(&[9])).unwrap().st0;
    assert_eq!(mixed[8..10], [0x02, 0x40], "{mixed:?}");
    assert_eq!(mixed[7], 0xD0, "13 = 0xD000… × 2^3");
}

/// The x87 environment, and the eight registers' tags in it.
fn x87() -> [u8; 28] {
    let mut env = [0u8; 28];
    // SAFETY: stores the environment and loads it back.
    unsafe { std::arch::asm!("fnstenv [{0}]", "fldenv [{0}]", in(reg) env.as_mut_ptr(), options(nostack)) };
    env
}

#[test]
fn the_x87_unit_is_left_as_it_was_found() {
    let control = |e: &[u8; 28]| [e[0], e[1]];
    let status = |e: &[u8; 28]| [e[4], e[5] & 0xB8];
    let tags = |e: &[u8; 28]| [e[8], e[9]];
    for sticky in [false, true] {
        if sticky {
            // SAFETY: sets the inexact flag, as any host does.
            unsafe { std::arch::asm!("fld1", "fldpi", "fdivp", "fstp st(0)", options(nostack)) };
        }
        let before = x87();
        assert_eq!(tags(&before), [0xFF, 0xFF]);
        for name in ["dirty", "dirty_out", "crash", "third"] {
            let d = extended();
            let _ = entry(&d, name).call(&mut Call::ints(&[1]));
            // SAFETY: the thunk's type is right.
            let thunk: extern "C" fn(i64) = unsafe {
                std::mem::transmute(entry(&d, name).thunk(Signature {
                    ints: 1,
                    int_results: 0,
                    ..LONGS_2
                }))
            };
            thunk(1);
            let after = x87();
            assert_eq!(control(&before), control(&after), "{name}");
            assert_eq!(status(&before), status(&after), "{name}");
            assert_eq!(tags(&before), tags(&after), "{name}");
        }
    }
}

/// What is no number if the unit is full.
fn a_third_times_three() -> f64 {
    let (three, mut out) = (3.0, 0.0);
    // SAFETY: reads and writes two variables; the unit is as empty as before.
    unsafe {
        std::arch::asm!(
            "fld1", "fld qword ptr [{three}]", "fdivp", "fld qword ptr [{three}]", "fmulp", "fstp qword ptr [{out}]",
            three = in(reg) &raw const three, out = in(reg) &raw mut out, options(nostack)
        );
    }
    out
}

/// Wherever the call ends: in the domain's code, with its unit full, or on the way back into it.
#[test]
fn the_hosts_functions_find_the_x87_unit_empty() {
    for name in ["dirty_forever", "dirty_calls_forever"] {
        let told = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let notes = told.clone();
        let imports = imports().on_limit(move |_, _| {
            let found = x87();
            notes
                .lock()
                .unwrap()
                .push(([found[8], found[9]], a_third_times_three()));
            ringfence_runtime::OnLimit::Keep
        });
        let d = extended_with(imports);
        d.set_time_limit(Some(std::time::Duration::from_millis(5)));
        assert_eq!(support::fault(&d, name, &[]).kind, FaultKind::TimeLimit);
        assert_eq!(*told.lock().unwrap(), [([0xFF, 0xFF], 1.0)], "{name}");
    }
}

#[test]
fn thunks_are_c_functions() {
    let d = domain();
    // SAFETY: `add` has this type.
    let add: extern "C" fn(i64, i64) -> i64 = unsafe { std::mem::transmute(entry(&d, "add").thunk(LONGS_2)) };
    assert_eq!(add(40, 2), 42);
    let signature = Signature {
        ints: 6,
        stack: 4,
        ..LONGS_2
    };
    #[allow(clippy::type_complexity)]
    // SAFETY: `sum10` has this type.
    let sum10: extern "C" fn(i64, i64, i64, i64, i64, i64, i64, i64, i64, i64) -> i64 =
        unsafe { std::mem::transmute(entry(&d, "sum10").thunk(signature)) };
    assert_eq!(sum10(1, 2, 3, 4, 5, 6, 7, 8, 9, 10), 385);
    let signature = Signature {
        ints: 1,
        floats: 2,
        int_results: 0,
        float_results: 1,
        ..LONGS_2
    };
    // SAFETY: `mix` has this type.
    let mix: extern "C" fn(f64, f32, i64) -> f64 =
        unsafe { std::mem::transmute(entry(&d, "mix").thunk(signature)) };
    assert_eq!(mix(1.0, 2.0, 3), 7.0);
    let unknown = entry(&d, "mix").thunk(Signature::UNKNOWN);
    // SAFETY: as above.
    let unknown: extern "C" fn(f64, f32, i64) -> f64 = unsafe { std::mem::transmute(unknown) };
    assert_eq!(unknown(1.0, 2.0, 3), 7.0);
    // SAFETY: `divide` has this type.
    let divide: extern "C" fn(i64, i64) -> i64 =
        unsafe { std::mem::transmute(entry(&d, "divide").thunk(LONGS_2)) };
    assert_eq!(divide(7, 2) as i32, 3);
    assert_eq!(ringfence_runtime::domain::last_status(), 0);
    assert_eq!(divide(1, 0), 0);
    assert_ne!(ringfence_runtime::domain::last_status(), 0);
    assert!(matches!(
        ringfence_runtime::domain::take_error(),
        Some(CallError::Fault(f)) if f.kind == FaultKind::Division
    ));
    assert_eq!(divide(7, 2), 0);
    assert!(matches!(
        ringfence_runtime::domain::take_error(),
        Some(CallError::Faulted { .. })
    ));
    drop(d);
}

#[test]
fn a_thunk_outlives_its_domain_harmlessly() {
    let d = domain();
    // SAFETY: `add` has this type.
    let add: extern "C" fn(i64, i64) -> i64 = unsafe { std::mem::transmute(entry(&d, "add").thunk(LONGS_2)) };
    assert_eq!(add(1, 2), 3);
    drop(d);
    assert_eq!(add(1, 2), 0);
    assert!(matches!(
        ringfence_runtime::domain::take_error(),
        Some(CallError::Gone)
    ));
}

#[test]
fn calls_out() {
    let d = domain();
    assert_eq!(call(&d, "call_out", &[20, 21]).unwrap(), 42);
    assert_eq!(call(&d, "call_stack", &[1]).unwrap(), 21 + 800 + 90_000);
    let mut scale = Call::ints(&[3]);
    scale.floats[0] = 1.25;
    assert_eq!(entry(&d, "call_scale").call(&mut scale).unwrap().xmm0, 4.25);
}

#[test]
fn plain_functions_are_called_with_registers_as_they_are() {
    extern "C" fn host_add(a: i64, b: i64) -> i64 {
        a * 10 + b
    }
    extern "C" fn host_scale(x: f64, n: i64) -> f64 {
        x * n as f64
    }
    let scale = Signature {
        ints: 1,
        floats: 1,
        int_results: 0,
        float_results: 1,
        ..LONGS_2
    };
    // SAFETY: both are sound for all arguments.
    let imports = unsafe {
        imports()
            .plain("host_add", host_add as *const c_void, LONGS_2)
            .plain("host_scale", host_scale as *const c_void, scale)
    };
    let d = Domain::new(&[module()], imports, &DomainOptions::default()).unwrap();
    assert_eq!(call(&d, "call_out", &[4, 1]).unwrap(), 42);
    let mut args = Call::ints(&[3]);
    args.floats[0] = 2.0;
    assert_eq!(entry(&d, "call_scale").call(&mut args).unwrap().xmm0, 6.5);
}

/// A domain whose `host_enter` calls `nest` again.
fn nesting() -> Domain {
    let slot: Arc<OnceLock<Domain>> = Arc::default();
    let inner = slot.clone();
    let imports = imports().closure("host_enter", move |f| {
        match call(inner.get().unwrap(), "nest", &[f.ints[0]]) {
            Ok(value) => f.result[0] = value,
            Err(e) => return Err(EndCall::Fail(e.to_string())),
        }
        Ok(())
    });
    let d = Domain::new(&[module()], imports, &DomainOptions::default()).unwrap();
    assert!(slot.set(d.clone()).is_ok());
    d
}

#[test]
fn host_and_domain_call_each_other_to_a_stated_depth() {
    let d = nesting();
    assert_eq!(call(&d, "nest", &[0]).unwrap(), 100);
    assert_eq!(call(&d, "nest", &[3]).unwrap(), 106);
    assert_eq!(call(&d, "nest", &[90]).unwrap(), 100 + 90 * 91 / 2);
    assert_eq!(call(&d, "nest", &[3]).unwrap(), 106);
    let f = fault(&d, "nest", &[150]);
    assert!(matches!(&f.kind, FaultKind::Host(_)), "{f}");
    d.reset().unwrap();
    assert_eq!(call(&d, "nest", &[5]).unwrap(), 115);
}

#[test]
fn a_fault_in_a_nested_call_ends_the_outer_one_too() {
    let slot: Arc<OnceLock<Domain>> = Arc::default();
    let inner = slot.clone();
    let imports = imports().closure("host_enter", move |f| {
        // The host swallows the error; the outer call must end all the same.
        let e = call(inner.get().unwrap(), "divide", &[1, 0]);
        assert!(matches!(e, Err(CallError::Fault(f)) if f.kind == FaultKind::Division));
        f.result[0] = 1;
        Ok(())
    });
    let d = Domain::new(&[module()], imports, &DomainOptions::default()).unwrap();
    assert!(slot.set(d.clone()).is_ok());
    let f = fault(&d, "nest", &[5]);
    // It is told as what it was, not as somebody else's.
    assert_eq!(f.kind, FaultKind::Division);
    assert_eq!(f.backtrace()[0].function.as_deref(), Some("divide"));
    d.reset().unwrap();
    assert_eq!(call(&d, "add", &[1, 1]).unwrap(), 2);
}

#[test]
fn domain_to_domain() {
    let b = domain();
    let caller = build("caller", &["--import=other,broken"]);
    let caller = Module::open(caller, &LoadOptions::default()).unwrap();
    let imports = Imports::new()
        .domain("other", &b, "add", LONGS_2)
        .domain("broken", &b, "divide", LONGS_2);
    let a = Domain::new(&[caller], imports, &DomainOptions::default()).unwrap();
    for i in 0..10 {
        assert_eq!(call(&a, "through", &[i, 3]).unwrap(), 2 * (i + 3));
        assert_eq!(call(&b, "add", &[i, 3]).unwrap(), i + 3);
    }
    let f = fault(&a, "to_broken", &[1, 0]);
    assert!(
        matches!(&f.kind, FaultKind::Callee(f) if f.kind == FaultKind::Division),
        "{f}"
    );
    assert!(a.faulted() && b.faulted());
    a.reset().unwrap();
    b.reset().unwrap();
    assert_eq!(call(&a, "through", &[1, 3]).unwrap(), 8);
}

#[test]
fn two_modules_in_one_domain() {
    let two = build("two", &["--import=add", "--import-data=counter"]);
    let two = Module::open(two, &LoadOptions::default()).unwrap();
    let d = Domain::new(&[module(), two.clone()], imports(), &DomainOptions::default()).unwrap();
    assert_eq!(call(&d, "add_twice", &[1, 2]).unwrap(), 5);
    assert_eq!(call(&d, "increment", &[]).unwrap(), 6);
    assert_eq!(call(&d, "counter_of_first", &[]).unwrap(), 6);
    assert_eq!(call(&d, "local_next", &[]).unwrap(), 11);
    assert_eq!(call(&d, "local_next", &[]).unwrap(), 12);
    assert_eq!(call(&d, "thread_local_next", &[]).unwrap(), 7);
    let e = Domain::new(&[two], Imports::new(), &DomainOptions::default()).unwrap_err();
    assert!(
        matches!(&e, DomainError::Unresolved { symbol, .. } if symbol == "add" || symbol == "counter"),
        "{e}"
    );
}

#[test]
fn threads_have_lanes_of_their_own() {
    let d = domain();
    let addresses = Mutex::new(Vec::new());
    let all_in = Barrier::new(8);
    std::thread::scope(|s| {
        for _ in 0..8 {
            s.spawn(|| {
                all_in.wait();
                for i in 0..200 {
                    assert_eq!(call(&d, "thread_local_next", &[]).unwrap(), 7 + i);
                    assert_eq!(call(&d, "add", &[i, 1]).unwrap(), i + 1);
                }
                all_in.wait();
                addresses
                    .lock()
                    .unwrap()
                    .push(call(&d, "stack_address", &[]).unwrap() >> 24);
            });
        }
    });
    // Slots come back: more threads than lanes, one after the other.
    for _ in 0..100 {
        std::thread::scope(|s| {
            s.spawn(|| assert_eq!(call(&d, "thread_local_next", &[]).unwrap(), 7));
        });
    }
    let mut addresses = addresses.into_inner().unwrap();
    addresses.sort_unstable();
    addresses.dedup();
    assert_eq!(addresses.len(), 8);
}

#[test]
fn lanes_are_limited() {
    let mut options = DomainOptions::default();
    options.max_lanes = 1;
    let d = Domain::new(&[module()], imports(), &options).unwrap();
    assert_eq!(call(&d, "add", &[1, 2]).unwrap(), 3);
    std::thread::scope(|s| {
        s.spawn(|| {
            assert!(matches!(
                call(&d, "add", &[1, 2]),
                Err(CallError::NoLane { limit: 1 })
            ))
        });
    });
}

#[test]
fn reset_restores_everything() {
    let d = domain();
    call(&d, "increment", &[]).unwrap();
    call(&d, "next_zeroed", &[3]).unwrap();
    call(&d, "thread_local_next", &[]).unwrap();
    let at = d.as_ref().alloc(100, 16).unwrap();
    assert!(matches!(call(&d, "divide", &[1, 0]), Err(CallError::Fault(_))));
    assert!(d.faulted());
    assert!(matches!(call(&d, "add", &[1, 0]), Err(CallError::Faulted { .. })));
    d.reset().unwrap();
    assert!(!d.faulted());
    assert_eq!(call(&d, "increment", &[]).unwrap(), 6);
    assert_eq!(call(&d, "next_zeroed", &[3]).unwrap(), 0);
    assert_eq!(call(&d, "thread_local_next", &[]).unwrap(), 7);
    assert_eq!(call(&d, "get_constructed", &[]).unwrap(), 42);
    assert!(matches!(
        d.as_ref().free(at),
        Err(MemoryError::NotAllocated { .. })
    ));
}

#[test]
fn reset_waits_for_nobody() {
    let slot: Arc<OnceLock<Domain>> = Arc::default();
    let inner = slot.clone();
    let imports = imports().closure("host_enter", move |f| {
        assert!(matches!(
            inner.get().unwrap().reset(),
            Err(DomainError::Busy { lanes: 1 })
        ));
        f.result[0] = 5;
        Ok(())
    });
    let d = Domain::new(&[module()], imports, &DomainOptions::default()).unwrap();
    assert!(slot.set(d.clone()).is_ok());
    assert_eq!(call(&d, "nest", &[1]).unwrap(), 6);
}

#[test]
fn memory_is_bounds_checked() {
    let d = domain();
    let m = d.as_ref();
    let counter = d.symbol("counter").unwrap();
    let mut word = [0; 4];
    m.read(counter, &mut word).unwrap();
    assert_eq!(u32::from_le_bytes(word), 5);
    m.write(counter, &9u32.to_le_bytes()).unwrap();
    assert_eq!(call(&d, "increment", &[]).unwrap(), 10);
    let at = m.alloc(1000, 64).unwrap();
    assert_eq!(at % 64, 0);
    let mut back = vec![1; 1000];
    m.read(at, &mut back).unwrap();
    assert!(back.iter().all(|&b| b == 0));
    m.write(at, b"hello\0").unwrap();
    assert_eq!(m.read_c_string(at, 100).unwrap(), b"hello");
    m.free(at).unwrap();
    assert!(matches!(m.free(at), Err(MemoryError::NotAllocated { .. })));
    let again = m.alloc(1000, 64).unwrap();
    m.read(again, &mut back).unwrap();
    assert!(back.iter().all(|&b| b == 0));
    for bad in [
        0,
        1,
        m.base() - 1,
        m.base() + (1 << 32),
        u64::MAX,
        u64::MAX - 3,
        word.as_ptr() as u64,
    ] {
        assert!(
            matches!(m.read(bad, &mut word), Err(MemoryError::Outside { .. })),
            "{bad:#x}"
        );
        assert!(
            matches!(m.write(bad, &word), Err(MemoryError::Outside { .. })),
            "{bad:#x}"
        );
    }
    assert!(matches!(
        m.read(m.base() + (1 << 32) - 2, &mut word),
        Err(MemoryError::Outside { .. })
    ));
    for unmapped in [m.base(), m.base() + 0xFFFF_FF00, m.base() + 0xBFFF_0000] {
        assert!(
            matches!(m.read(unmapped, &mut word), Err(MemoryError::Unmapped { .. })),
            "{unmapped:#x}"
        );
    }
    // Text, stubs and constants cannot be written, by the host's own functions neither.
    let text = d.symbol("add").unwrap();
    for constant in [text, m.base() + 0x1_0000, m.base() + 0x2_0000] {
        m.read(constant, &mut word).unwrap();
        assert!(
            matches!(m.write(constant, &word), Err(MemoryError::Unmapped { .. })),
            "{constant:#x}"
        );
    }
    assert!(matches!(m.alloc(8, 3), Err(MemoryError::Alignment { .. })));
    assert!(matches!(m.alloc(u64::MAX, 16), Err(MemoryError::Limit { .. })));
    assert!(matches!(m.alloc(3 << 30, 16), Err(MemoryError::Limit { .. })));
}

#[test]
fn host_functions_may_fail_exit_and_panic() {
    for (verdict, check) in [
        (Err(EndCall::Fail("no".into())), FaultKind::Host("no".into())),
        (Err(EndCall::Abort(3)), FaultKind::Abort(3)),
        (Err(EndCall::OutOfMemory), FaultKind::OutOfMemory),
    ] {
        let imports = imports().closure("host_add", move |_| verdict.clone());
        let d = Domain::new(&[module()], imports, &DomainOptions::default()).unwrap();
        let f = fault(&d, "call_out", &[1, 2]);
        assert_eq!(f.kind, check);
        assert_eq!(f.backtrace()[0].function.as_deref(), Some("call_out"), "{f:?}");
        assert!(matches!(call(&d, "add", &[1, 2]), Err(CallError::Faulted { .. })));
    }
    let d = Domain::new(
        &[module()],
        imports().closure("host_add", |_| Err(EndCall::Exit(7))),
        &DomainOptions::default(),
    );
    assert!(matches!(
        call(&d.unwrap(), "call_out", &[1, 2]),
        Err(CallError::Exit(7))
    ));
    let panics = imports().closure("host_add", |_| panic!("oh"));
    let d = Domain::new(&[module()], panics, &DomainOptions::default()).unwrap();
    let f = fault(&d, "call_out", &[1, 2]);
    assert!(matches!(&f.kind, FaultKind::Host(s) if s.contains("oh")), "{f}");
}

#[test]
fn many_domains_come_and_go() {
    for round in 0..5 {
        let domains: Vec<Domain> = (0..40).map(|_| domain()).collect();
        for (i, d) in domains.iter().enumerate() {
            assert_eq!(call(d, "add", &[i as u64, round]).unwrap(), i as u64 + round);
        }
    }
}

#[test]
fn options_are_checked() {
    for change in [
        (|o: &mut DomainOptions| o.max_lanes = 0) as fn(&mut DomainOptions),
        |o| o.max_lanes = 64,
        |o| o.data_stack = 1,
        |o| o.data_stack = 16 << 20,
        // Together with thread-local variables they would overlap.
        |o| (o.data_stack, o.thread_local_reserve) = (15 << 20, 1 << 20),
        |o| o.control_stack = 0,
        |o| o.time_limit = Some(std::time::Duration::ZERO),
    ] {
        let mut options = DomainOptions::default();
        change(&mut options);
        let e = Domain::new(&[module()], imports(), &options).unwrap_err();
        assert!(matches!(e, DomainError::Option { .. }), "{e}");
    }
    for (data_stack, thread_local_reserve) in [(15 << 20, 1 << 10), (14 << 20, 1 << 20)] {
        let mut options = DomainOptions::default();
        (options.data_stack, options.thread_local_reserve) = (data_stack, thread_local_reserve);
        let d = Domain::new(&[module()], imports(), &options).unwrap();
        assert_eq!(call(&d, "add", &[2, 3]).unwrap(), 5);
    }
    let e = Domain::new(&[], imports(), &DomainOptions::default()).unwrap_err();
    assert!(matches!(e, DomainError::Layout { .. }));
    let d = domain();
    assert!(matches!(d.entry("nowhere"), Err(DomainError::NoExport { .. })));
    assert!(matches!(d.entry("counter"), Err(DomainError::NotFunction { .. })));
    let e = Domain::new(&[module()], Imports::new(), &DomainOptions::default()).unwrap_err();
    assert!(matches!(e, DomainError::Unresolved { .. }), "{e}");
}
