//! Calls from domain to domain: what fails, who notices, and what the host can take away.

mod support;

use ringfence_isa::window::call_status;
use ringfence_runtime::{
    Call, CallError, Domain, DomainError, DomainOptions, EndCall, FaultKind, GrantError, Imports,
    LoadOptions, Module, OnFailure, Region, RegionError, Rights, Signature,
};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};
use support::{build, call, domain, entry};

const LONGS_2: Signature = Signature {
    ints: 2,
    int_results: 1,
    ..Signature::NOTHING
};
const SCALED: Signature = Signature {
    ints: 1,
    floats: 1,
    float_results: 1,
    ..Signature::NOTHING
};

fn module() -> Module {
    static MODULE: OnceLock<Module> = OnceLock::new();
    let load = || {
        let file = build("slotted", &["--import=other,scaled,__rf_call_status"]);
        let module = Module::open(&file, &LoadOptions::default()).expect("module");
        let _ = std::fs::remove_file(file);
        module
    };
    MODULE.get_or_init(load).clone()
}

fn slots(on_failure: OnFailure) -> Imports {
    Imports::new()
        .slot("other", LONGS_2, on_failure)
        .slot("scaled", SCALED, on_failure)
}

fn slotted_with(imports: Imports, options: &DomainOptions) -> Domain {
    Domain::new(&[module()], imports, options).expect("domain")
}

fn slotted() -> Domain {
    slotted_with(slots(OnFailure::Tell), &DomainOptions::default())
}

/// Value and status of a call through `other`.
fn attempt(d: &Domain, a: u64, b: u64) -> (u64, u32) {
    let outcome = entry(d, "attempt")
        .call(&mut Call::ints(&[a, b]))
        .expect("the caller goes on");
    (outcome.rax, outcome.rdx as u32)
}

fn limited(milliseconds: u64) -> DomainOptions {
    let mut options = DomainOptions::default();
    options.time_limit = Some(Duration::from_millis(milliseconds));
    options
}

#[test]
fn a_fault_of_the_callee_is_an_error_in_the_callers_call() {
    let (a, b) = (slotted(), domain());
    a.grant("other", &entry(&b, "divide")).unwrap();
    assert_eq!(attempt(&a, 12, 4), (3, call_status::OK));
    assert_eq!(attempt(&a, 12, 0), (0, call_status::FAULT));
    assert!(b.faulted() && !a.faulted());
    assert_eq!(attempt(&a, 12, 4), (0, call_status::FAULTED));
    assert_eq!(call(&a, "persist", &[50]).unwrap(), 50);
    b.reset().unwrap();
    assert_eq!(attempt(&a, 12, 4), (3, call_status::OK));
    // Nothing of the failed call is left for the thread's next one.
    assert_eq!(call(&a, "sevens", &[1, 1]).unwrap(), 7);
    assert!(!a.faulted());
}

#[test]
fn every_way_to_fail_is_told() {
    let (a, b) = (slotted(), slotted());
    for (export, arguments, status) in [
        ("leave", (1, 2), call_status::EXIT),
        ("crash", (1, 2), call_status::FAULT),
        ("descend", (1, 0), call_status::OK),
    ] {
        a.grant("other", &entry(&b, export)).unwrap();
        // `descend` calls an empty slot in turn, and its answer is a number of its own.
        let wanted = if status == call_status::OK {
            -1000 - i64::from(call_status::REVOKED)
        } else {
            0
        };
        assert_eq!(
            attempt(&a, arguments.0, arguments.1),
            (wanted as u64, status),
            "{export}"
        );
        b.reset().unwrap();
    }
    b.set_time_limit(Some(Duration::from_millis(5)));
    a.grant("other", &entry(&b, "wait_for")).unwrap();
    assert_eq!(attempt(&a, 1, 2), (0, call_status::TIME));
    assert!(!a.faulted() && b.faulted());
    drop(b);
    assert_eq!(attempt(&a, 1, 2), (0, call_status::GONE));
    // All lanes taken.
    let mut one = DomainOptions::default();
    one.max_lanes = 1;
    let b = slotted_with(slots(OnFailure::Tell), &one);
    let (started, go) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
    std::thread::scope(|s| {
        let other = s.spawn(|| {
            call(&b, "sevens", &[1, 1]).unwrap();
            started.wait();
            go.wait();
        });
        started.wait();
        a.grant("other", &entry(&b, "sevens")).unwrap();
        assert_eq!(attempt(&a, 1, 2), (0, call_status::REFUSED));
        go.wait();
        other.join().unwrap();
    });
    assert_eq!(attempt(&a, 1, 2), (8, call_status::OK));
}

#[test]
fn results_of_a_failed_call_are_zero() {
    let a = slotted();
    let b = domain();
    a.grant("scaled", &entry(&b, "mix")).unwrap();
    let at = a.as_ref().alloc(8, 8).unwrap();
    let scaled = |x: f64| {
        let mut c = Call::ints(&[3, at]);
        c.floats[0] = x;
        let status = entry(&a, "attempt_scaled").call(&mut c).unwrap().rax as u32;
        let mut value = [0; 8];
        a.as_ref().read(at, &mut value).unwrap();
        (f64::from_le_bytes(value), status)
    };
    // mix(a, b, c) = a + b * c with b = 0
    assert_eq!(scaled(2.5), (2.5, call_status::OK));
    b.interrupt();
    assert!(matches!(call(&b, "divide", &[1, 0]), Err(CallError::Fault(_))));
    assert_eq!(scaled(2.5), (0.0, call_status::FAULTED));
    a.revoke("scaled").unwrap();
    assert_eq!(scaled(2.5), (0.0, call_status::REVOKED));
}

#[test]
fn the_slot_says_what_becomes_of_the_caller() {
    let b = domain();
    let error = slotted_with(slots(OnFailure::Return(u64::MAX)), &DomainOptions::default());
    error.grant("other", &entry(&b, "divide")).unwrap();
    assert_eq!(attempt(&error, 1, 0), (u64::MAX, call_status::FAULT));
    b.reset().unwrap();
    let end = slotted_with(slots(OnFailure::End), &DomainOptions::default());
    end.grant("other", &entry(&b, "divide")).unwrap();
    match entry(&end, "attempt").call(&mut Call::ints(&[1, 0])) {
        Err(CallError::Fault(f)) => assert!(
            matches!(&f.kind, FaultKind::Callee(f) if f.kind == FaultKind::Division),
            "{f}"
        ),
        other => panic!("{other:?}"),
    }
    assert!(end.faulted());
    b.reset().unwrap();
    // A domain that has no way to ask is not given a 0 that it would take for a result.
    let blind = Module::open(
        build("caller", &["--import=other,broken"]),
        &LoadOptions::default(),
    )
    .unwrap();
    let imports = Imports::new().domain("other", &b, "add", LONGS_2).domain_or(
        "broken",
        &b,
        "divide",
        LONGS_2,
        OnFailure::Return(99),
    );
    let blind = Domain::new(&[blind], imports, &DomainOptions::default()).unwrap();
    assert_eq!(call(&blind, "through", &[20, 1]).unwrap(), 42);
    assert_eq!(
        call(&blind, "to_broken", &[1, 0]).unwrap(),
        100,
        "its link has a value for failures"
    );
    let e = call(&blind, "through", &[20, 1]).unwrap_err();
    assert!(e.to_string().contains("faulted"), "{e}");
    assert!(blind.faulted());
}

#[test]
fn a_limit_of_the_caller_holds_for_the_callee() {
    let (a, b, c) = (
        slotted_with(slots(OnFailure::Tell), &limited(20)),
        slotted(),
        slotted(),
    );
    c.grant("other", &entry(&c, "wait_for")).unwrap();
    for (first, second) in [("wait_for", "sevens"), ("attempt", "wait_for")] {
        a.grant("other", &entry(&b, first)).unwrap();
        b.grant("other", &entry(&c, second)).unwrap();
        let e = entry(&a, "attempt").call(&mut Call::ints(&[1, 2])).unwrap_err();
        assert!(
            matches!(&e, CallError::Fault(f) if f.kind == FaultKind::TimeLimit),
            "{first}: {e}"
        );
        a.set_time_limit(None);
        for d in [&a, &b, &c] {
            d.reset().unwrap();
        }
        a.set_time_limit(Some(Duration::from_millis(20)));
    }
}

#[test]
fn domains_call_each_other_in_turn_to_a_stated_depth() {
    let (a, b) = (slotted(), slotted());
    a.grant("other", &entry(&b, "descend")).unwrap();
    b.grant("other", &entry(&a, "descend")).unwrap();
    for n in [0, 1, 2, 3, 50, 99] {
        assert_eq!(call(&a, "descend", &[n]).unwrap(), n);
    }
    // Deeper than a lane may: the innermost call is refused, and the domain that makes it is told. Neither has faulted.
    let told = call(&a, "descend", &[1000]).unwrap() as i64;
    // A hundred levels of each, of which the last has the failure, and each of the others adds one.
    assert_eq!(told, -1000 - i64::from(call_status::REFUSED) + 199);
    assert!(!a.faulted() && !b.faulted());
    assert_eq!(call(&a, "descend", &[7]).unwrap(), 7);
    // To itself.
    a.grant("other", &entry(&a, "descend")).unwrap();
    assert_eq!(call(&a, "descend", &[9]).unwrap(), 9);
}

#[test]
fn what_was_revoked_is_not_called_again() {
    let (a, b) = (slotted(), slotted());
    assert_eq!(attempt(&a, 1, 2), (0, call_status::REVOKED), "not handed out yet");
    let grant = a.grant("other", &entry(&b, "sevens")).unwrap();
    assert!(grant.is_live());
    assert_eq!(attempt(&a, 1, 2), (8, call_status::OK));
    assert!(grant.revoke());
    assert!(!grant.revoke() && !grant.is_live());
    assert_eq!(attempt(&a, 1, 2), (0, call_status::REVOKED));
    // Another one in its place; revoking the first again takes nothing away from the second.
    let second = a.grant("other", &entry(&b, "nines")).unwrap();
    assert!(!grant.revoke());
    assert_eq!(attempt(&a, 1, 2), (10, call_status::OK));
    let third = a.grant("other", &entry(&b, "sevens")).unwrap();
    assert!(!second.is_live() && third.is_live());
    // Of one function granted twice only one is taken away.
    let c = slotted();
    let fourth = c.grant("other", &entry(&b, "sevens")).unwrap();
    assert!(third.revoke());
    assert_eq!(attempt(&a, 1, 2), (0, call_status::REVOKED));
    assert_eq!(attempt(&c, 1, 2), (8, call_status::OK));
    b.revoke_all();
    assert!(!fourth.is_live());
    assert_eq!(attempt(&c, 1, 2), (0, call_status::REVOKED));
    assert_eq!(call(&b, "sevens", &[1, 2]).unwrap(), 8, "the host may still");
    assert!(!a.revoke("other").unwrap());
    // What a domain was made with can be revoked as well.
    let imports = slots(OnFailure::Tell).domain("other", &b, "nines", LONGS_2);
    let d = slotted_with(imports, &DomainOptions::default());
    assert_eq!(attempt(&d, 1, 2), (10, call_status::OK));
    assert!(d.revoke("other").unwrap());
    assert_eq!(attempt(&d, 1, 2), (0, call_status::REVOKED));
}

#[test]
fn grants_that_cannot_be_are_refused() {
    let (a, b) = (slotted(), domain());
    let e = a.grant("no_such", &entry(&b, "add")).unwrap_err();
    assert!(
        matches!(&e, GrantError::NoSlot { name } if name == "no_such"),
        "{e}"
    );
    assert!(matches!(a.revoke("no_such"), Err(GrantError::NoSlot { .. })));
    // A host function is no slot.
    let imports = Imports::new()
        .closure("other", |_| Ok(()))
        .slot("scaled", SCALED, OnFailure::Tell);
    let host = slotted_with(imports, &DomainOptions::default());
    assert!(matches!(
        host.grant("other", &entry(&b, "add")),
        Err(GrantError::NoSlot { .. })
    ));
    // Words of the host's stack would pass as arguments.
    let stacked = Signature { stack: 2, ..LONGS_2 };
    for imports in [
        slots(OnFailure::Tell).slot("other", stacked, OnFailure::Tell),
        slots(OnFailure::Tell).domain("other", &b, "sum10", stacked),
    ] {
        let e = Domain::new(&[module()], imports, &DomainOptions::default()).unwrap_err();
        assert!(
            matches!(
                &e,
                DomainError::Grant(GrantError::StackArguments { words: 2, .. })
            ),
            "{e}"
        );
    }
    let imports = slots(OnFailure::Tell).domain("other", &b, "no_such", LONGS_2);
    assert!(matches!(
        Domain::new(&[module()], imports, &DomainOptions::default()),
        Err(DomainError::NoExport { .. })
    ));
}

#[test]
fn a_running_call_finishes_after_its_entry_was_revoked() {
    let (a, b) = (slotted(), slotted());
    let grant = a.grant("other", &entry(&b, "wait_for")).unwrap();
    std::thread::scope(|s| {
        let running = s.spawn(|| attempt(&a, 20, 22));
        let word = |name: &str| {
            let mut word = [0; 8];
            b.as_ref().read(b.symbol(name).unwrap(), &mut word).unwrap();
            u64::from_le_bytes(word)
        };
        while word("entered") == 0 {
            std::thread::yield_now();
        }
        assert!(grant.revoke());
        assert!(matches!(b.reset(), Err(DomainError::Busy { lanes: 1 })));
        assert!(matches!(b.recycle(), Err(DomainError::Busy { lanes: 1 })));
        b.as_ref()
            .write(b.symbol("stop").unwrap(), &1u64.to_le_bytes())
            .unwrap();
        assert_eq!(running.join().unwrap(), (42, call_status::OK));
    });
    assert_eq!(attempt(&a, 20, 22), (0, call_status::REVOKED));
}

/// Two functions in turn, and none, while another thread calls without a pause.
#[test]
fn entries_change_under_calls() {
    let (a, b, c) = (slotted(), slotted(), slotted());
    let done = AtomicBool::new(false);
    std::thread::scope(|s| {
        let hammer = s.spawn(|| call(&a, "hammer", &[7, 9]).unwrap());
        let (first, second) = (entry(&b, "sevens"), entry(&c, "nines"));
        let others = s.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let _ = b.usage();
            }
        });
        for i in 0..2000u32 {
            let grant = a
                .grant("other", if i % 2 == 0 { &first } else { &second })
                .unwrap();
            // Lanes are made anew all the time, too: the entry may go while the thread waits for its lane, of whose lock others
            // have use.
            b.trim().unwrap();
            c.trim().unwrap();
            match i % 4 {
                0 => assert!(grant.revoke()),
                1 => assert!(a.revoke("other").unwrap()),
                2 => b.revoke_all(),
                _ => {}
            }
        }
        a.as_ref()
            .write(a.symbol("stop").unwrap(), &1u64.to_le_bytes())
            .unwrap();
        done.store(true, Ordering::Relaxed);
        others.join().unwrap();
        assert_eq!(hammer.join().unwrap(), 0);
    });
}

/// Once `revoke` has returned nobody gets in any more, however far a thread had come.
#[test]
fn nobody_gets_in_after_revoke_has_returned() {
    let (a, b) = (slotted(), slotted());
    let counter = b.symbol("entered").unwrap();
    let count = || {
        let mut word = [0; 8];
        b.as_ref().read(counter, &mut word).unwrap();
        u64::from_le_bytes(word)
    };
    std::thread::scope(|s| {
        let hammer = s.spawn(|| call(&a, "hammer", &[7, 7]).unwrap());
        let function = entry(&b, "count_in");
        let mut calls = 0;
        for _ in 0..60 {
            a.grant("other", &function).unwrap();
            let begun = Instant::now();
            while count() == calls && begun.elapsed() < Duration::from_millis(5) {
                std::hint::spin_loop();
            }
            b.recycle_when_idle();
            calls = 0;
            for _ in 0..100 {
                assert_eq!(
                    count(),
                    0,
                    "somebody came in after the domain was given to somebody else"
                );
            }
        }
        a.as_ref()
            .write(a.symbol("stop").unwrap(), &1u64.to_le_bytes())
            .unwrap();
        assert_eq!(hammer.join().unwrap(), 0);
    });
}

trait Recycle {
    fn recycle_when_idle(&self);
}

impl Recycle for Domain {
    fn recycle_when_idle(&self) {
        loop {
            match self.recycle() {
                Ok(()) => return,
                Err(DomainError::Busy { .. }) => std::thread::yield_now(),
                Err(e) => panic!("{e}"),
            }
        }
    }
}

#[test]
fn the_host_is_told_and_may_mend() {
    let b = domain();
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let told = seen.clone();
    let imports = slots(OnFailure::Tell).on_callee_failure(move |failure| {
        told.lock()
            .unwrap()
            .push(format!("{}: {}", failure.import, failure.error));
        if let Some(callee) = &failure.callee {
            callee.reset().expect("nobody is inside");
        }
        Ok(())
    });
    let a = slotted_with(imports, &DomainOptions::default());
    a.grant("other", &entry(&b, "divide")).unwrap();
    assert_eq!(attempt(&a, 1, 0), (0, call_status::FAULT));
    assert_eq!(
        attempt(&a, 12, 4),
        (3, call_status::OK),
        "the hook has reset the callee"
    );
    a.revoke("other").unwrap();
    assert_eq!(attempt(&a, 12, 4), (0, call_status::REVOKED));
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 2);
    assert!(
        seen[0].starts_with("other: ") && seen[0].contains("division"),
        "{seen:?}"
    );
    // It may end the caller, also by mistake.
    let calls = Arc::new(AtomicU32::new(0));
    let counted = calls.clone();
    let imports = slots(OnFailure::Tell).on_callee_failure(move |_| {
        if counted.fetch_add(1, Ordering::Relaxed) == 0 {
            return Err(EndCall::Fail("enough".into()));
        }
        panic!("a bug of the host's");
    });
    let a = slotted_with(imports, &DomainOptions::default());
    for text in ["enough", "hook for failed calls panicked"] {
        let e = entry(&a, "attempt").call(&mut Call::ints(&[1, 2])).unwrap_err();
        assert!(e.to_string().contains(text), "{e}");
        assert!(a.faulted());
        a.reset().unwrap();
    }
}

#[test]
fn a_recycled_domain_has_nothing_that_its_last_user_got() {
    let (a, b) = (slotted(), slotted());
    let own = Region::owned_by(&a, 8192).unwrap();
    let lent = Region::new(8192).unwrap();
    lent.give(
        ringfence_runtime::Actor::Host,
        ringfence_runtime::Recipient::Domain(a.as_ref()),
        Rights::Write,
    )
    .unwrap();
    a.grant("other", &entry(&b, "sevens")).unwrap();
    let out = b.grant("other", &entry(&a, "sevens")).unwrap();
    a.set_tag(17);
    assert_eq!(attempt(&a, 1, 2).1, call_status::OK);
    a.set_time_limit(Some(Duration::from_millis(1)));
    a.recycle().unwrap();
    assert!(!out.is_live());
    assert_eq!(attempt(&b, 1, 2), (0, call_status::REVOKED));
    assert_eq!(attempt(&a, 1, 2), (0, call_status::REVOKED));
    for region in [&own, &lent] {
        assert_eq!(region.rights_of(&a), Rights::None);
        assert!(a.as_ref().read(region.address_in(a.as_ref()), &mut [0]).is_err());
    }
    assert!(matches!(
        own.free(ringfence_runtime::Actor::Host),
        Err(RegionError::Rights(_))
    ));
    // No limit any more: this takes longer than a millisecond.
    assert_eq!(call(&a, "persist", &[1_000_000]).unwrap(), 1_000_000);
    // What it was made with comes back; what was revoked of that cannot.
    let imports = slots(OnFailure::Tell).domain("other", &b, "nines", LONGS_2);
    let d = slotted_with(imports, &DomainOptions::default());
    d.grant("other", &entry(&b, "sevens")).unwrap();
    assert_eq!(attempt(&d, 1, 2), (8, call_status::OK));
    d.recycle().unwrap();
    assert_eq!(attempt(&d, 1, 2), (10, call_status::OK));
    d.revoke("other").unwrap();
    assert!(matches!(d.recycle(), Err(DomainError::Spent { import }) if import == "other"));
}
