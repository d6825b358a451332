//! What a crash becomes; time limits, interrupts, fork.

mod support;

use ringfence_isa::window;
use ringfence_runtime::{
    Access, CallError, Domain, DomainError, DomainOptions, FaultKind, HostError, Imports, LoadError,
    LoadOptions, Module, Signature, domain as runtime,
};
use std::time::{Duration, Instant};
use support::{call, domain, fault, forked, imports, in_child, module, out_of_time, wait_until_begun};

#[test]
fn every_kind_of_fault() {
    let d = domain();
    let base = d.as_ref().base();
    let expect = |name: &str, args: &[u64], kind: FaultKind, function: &str| {
        let f = fault(&d, name, args);
        assert_eq!(f.kind, kind, "{name}: {f}");
        let frames = f.backtrace();
        assert_eq!(
            frames[0].function.as_deref(),
            Some(function),
            "{name}: {frames:?}"
        );
        assert!(
            frames[0].file.as_deref().is_some_and(|f| f.ends_with("basic.c")),
            "{name}: {frames:?}"
        );
        assert!(frames[0].line.is_some_and(|l| l > 10), "{name}: {frames:?}");
        assert!(d.faulted());
        assert!(matches!(call(&d, "add", &[1, 2]), Err(CallError::Faulted { .. })));
        d.reset().unwrap();
        assert_eq!(call(&d, "add", &[1, 2]).unwrap(), 3);
    };
    let bad = |address, access| FaultKind::BadAccess { address, access };
    expect("read_at", &[0], bad(base, Access::Read), "read_at");
    expect(
        "read_at",
        &[0xFFFF_FFFC],
        bad(base + 0xFFFF_FFFC, Access::Read),
        "read_at",
    );
    // A host address is the domain's own by the time it is used.
    expect(
        "read_at",
        &[0x7FFF_1234_0010],
        bad(base + 0x1234_0010, Access::Read),
        "read_at",
    );
    expect(
        "write_at",
        &[0x2_0000, 1],
        bad(base + 0x2_0000, Access::Write),
        "write_at",
    );
    expect(
        "write_at",
        &[0x1_0000, 1],
        bad(base + 0x1_0000, Access::Write),
        "write_at",
    );
    // The zeroes between header and stubs, the stubs, and the first image's text behind them.
    for constant in [0x1_1000, 0x1_FFFC, 0x3_EFFC, 0x3_FFE0, 0x4_0000] {
        expect(
            "write_at",
            &[constant, 1],
            bad(base + constant, Access::Write),
            "write_at",
        );
    }
    let text = d.symbol("add").unwrap();
    expect("write_at", &[text, 1], bad(text, Access::Write), "write_at");
    expect("divide", &[1, 0], FaultKind::Division, "divide");
    expect("divide", &[0x8000_0000, u64::MAX], FaultKind::Division, "divide");
    expect("illegal", &[], FaultKind::IllegalInstruction, "illegal");
    expect("trap", &[], FaultKind::Trap, "trap");
    expect("recurse", &[1 << 40], FaultKind::ControlStack, "recurse");
    expect("deep", &[0], FaultKind::DataStack, "deep");
    // Zeroes behind the header, places of stubs that this window does not have, the middle of one that it has, and so on.
    for target in [
        0,
        0x1_1000,
        0x2_0000,
        0x3_EFE0,
        0x3_FFF8,
        0x4_0000,
        d.symbol("counter").unwrap(),
        text + 8,
        0x7FFF_0000_1000,
    ] {
        let f = fault(&d, "jump_to", &[target]);
        assert_eq!(f.kind, FaultKind::BadTarget, "{target:#x}: {f}");
        d.reset().unwrap();
    }
}

#[test]
fn the_first_failure_is_told_until_the_reset() {
    let d = domain();
    let thunk = support::entry(&d, "add").thunk(Signature::UNKNOWN);
    // SAFETY: a thunk of a function with two arguments.
    let add: extern "C" fn(u64, u64) -> u64 = unsafe { std::mem::transmute(thunk) };
    let first = |e: CallError| match e {
        CallError::Faulted { first } => *first.expect("the first failure"),
        e => panic!("{e}"),
    };
    let f = fault(&d, "divide", &[1, 0]);
    for _ in 0..2 {
        let again = call(&d, "add", &[1, 2]).unwrap_err();
        assert!(
            again.to_string().contains("reset it first (the first failure: "),
            "{again}"
        );
        assert!(again.to_string().contains("division by zero"), "{again}");
        assert!(matches!(first(again), CallError::Fault(known) if *known == *f));
        assert_eq!(add(1, 2), 0);
        assert!(matches!(first(runtime::take_error().unwrap()), CallError::Fault(known) if *known == *f));
    }
    // Another thread is told as well.
    let other = std::thread::scope(|s| s.spawn(|| call(&d, "add", &[1, 2])).join().unwrap());
    assert!(matches!(first(other.unwrap_err()), CallError::Fault(known) if *known == *f));
    // What was asked for before the reset and looked at behind it is no failure any more.
    assert_eq!(add(1, 2), 0);
    d.reset().unwrap();
    assert!(!matches!(
        runtime::take_error(),
        Some(CallError::Faulted { first: Some(_) })
    ));
    assert_eq!(add(1, 2), 3);
    fault(&d, "illegal", &[]);
    let again = call(&d, "add", &[1, 2]).unwrap_err();
    assert!(matches!(first(again), CallError::Fault(f) if f.kind == FaultKind::IllegalInstruction));
}

#[test]
fn check_mode_tells_the_whole_address() {
    let flags = [
        "--check",
        "--import=host_add,host_call,host_enter,host_stack,host_scale",
    ];
    let file = support::build("basic", &flags);
    let module = Module::open(&file, &LoadOptions::default()).unwrap();
    std::fs::remove_file(file).unwrap();
    let d = Domain::new(&[module], imports(), &DomainOptions::default()).unwrap();
    let base = d.as_ref().base();
    let inside = d.symbol("counter").unwrap();
    let outside = [
        0,
        8,
        0x1234_5678_9ABC,
        0xFFFF_8000_0000_0000,
        inside - (1 << 32),
        inside + (1 << 32),
        base - 4,
    ];
    for address in outside {
        for (name, args) in [("read_at", &[address][..]), ("write_at", &[address, 9])] {
            let f = fault(&d, name, args);
            assert_eq!(f.kind, FaultKind::OutsideWindow { address }, "{name}: {f}");
            assert!(f.to_string().contains(&format!("{address:#x}")), "{f}");
            assert_eq!(f.backtrace()[0].function.as_deref(), Some(name));
            // Every other register is as it was.
            assert_eq!(f.registers.general[7], address);
            d.reset().unwrap();
        }
    }
    assert_eq!(call(&d, "read_at", &[inside]).unwrap(), 5);
    // What is inside the window is told as ever, and so are other traps.
    let kind = FaultKind::BadAccess {
        address: base + 64,
        access: Access::Read,
    };
    assert_eq!(fault(&d, "read_at", &[base + 64]).kind, kind);
    d.reset().unwrap();
    assert_eq!(fault(&d, "illegal", &[]).kind, FaultKind::IllegalInstruction);
    d.reset().unwrap();
    assert_eq!(fault(&d, "trap", &[]).kind, FaultKind::Trap);
}

#[test]
fn a_process_in_which_all_memory_is_executable_is_refused() {
    in_child("a_process_in_which_all_memory_is_executable_is_refused", || {
        const READ_IMPLIES_EXEC: u64 = 0x0040_0000;
        let (module, domain) = (module(), domain());
        // SAFETY: changes what this child's later mappings allow.
        unsafe { libc::personality(READ_IMPLIES_EXEC) };
        let e = Domain::new(&[module], imports(), &DomainOptions::default()).unwrap_err();
        assert!(matches!(e, DomainError::Host(HostError::ReadImpliesExec)), "{e}");
        let e = Module::from_bytes("basic.rf", support::bytes(), &LoadOptions::default()).unwrap_err();
        assert!(matches!(e, LoadError::Host(HostError::ReadImpliesExec)), "{e}");
        assert_eq!(call(&domain, "add", &[1, 2]).unwrap(), 3);
    });
}

#[test]
fn backtraces_show_the_fenced_frames() {
    let d = domain();
    let f = fault(&d, "outer", &[16]);
    let names: Vec<_> = f
        .backtrace()
        .iter()
        .map(|f| f.function.clone().unwrap_or_default())
        .collect();
    assert_eq!(names, ["inner", "outer"]);
    let text = f.to_string();
    assert!(text.contains("inner") && text.contains("basic.c"), "{text}");
    d.reset().unwrap();
    let f = fault(&d, "recurse", &[1 << 40]);
    assert!(f.backtrace().len() > 10);
    // No host address among the registers.
    let base = d.as_ref().base();
    assert_eq!(f.registers.general[4], 0);
    assert_eq!(f.registers.rip >> 32, base >> 32);
}

#[test]
fn time_limits_hold() {
    let d = domain();
    for _ in 0..3 {
        let start = Instant::now();
        let f = out_of_time(&d, "forever");
        let took = start.elapsed();
        assert_eq!(f.kind, FaultKind::TimeLimit);
        assert_eq!(f.backtrace()[0].function.as_deref(), Some("forever"));
        assert!(took >= Duration::from_millis(20), "{took:?}");
        // The machine may be busy; the benchmark measures how exact it is.
        assert!(took < Duration::from_secs(20), "{took:?}");
        d.reset().unwrap();
    }
    // Short calls are not in danger, however many, but one that is kept from the processor for so long.
    let mut ended = 0;
    let limit = Some(Duration::from_millis(20));
    d.set_time_limit(limit);
    for _ in 0..300_000 {
        match call(&d, "add", &[1, 2]) {
            Ok(sum) => assert_eq!(sum, 3),
            Err(CallError::Fault(f)) => {
                assert_eq!(f.kind, FaultKind::TimeLimit);
                d.set_time_limit(None);
                d.reset().unwrap();
                d.set_time_limit(limit);
                ended += 1;
            }
            Err(e) => panic!("{e}"),
        }
    }
    assert!(ended < 1000, "{ended} of 300,000 were ended");
    // After a long sleep of the watchdog too.
    std::thread::sleep(Duration::from_millis(150));
    assert_eq!(out_of_time(&d, "forever").kind, FaultKind::TimeLimit);
    d.reset().unwrap();
    // The same for code that is mostly in the gate.
    assert_eq!(out_of_time(&d, "out_forever").kind, FaultKind::TimeLimit);
    d.reset().unwrap();
    assert_eq!(call(&d, "spin", &[100_000_000]).unwrap(), 100_000_000);
}

#[test]
fn time_in_host_functions_counts() {
    let mut options = DomainOptions::default();
    options.time_limit = Some(Duration::from_millis(10));
    let slow = imports().closure("host_add", |f| {
        // However long the watchdog takes to get its turn on a loaded machine.
        while !f.domain().ending() {
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    });
    let d = Domain::new(&[module()], slow, &options).unwrap();
    let f = fault(&d, "call_out", &[1, 2]);
    assert_eq!(f.kind, FaultKind::TimeLimit);
    assert_eq!(f.backtrace()[0].function.as_deref(), Some("call_out"));
}

#[test]
fn any_thread_may_interrupt() {
    let d = domain();
    for name in ["announced", "out_announced"] {
        std::thread::scope(|s| {
            let (a, b) = (d.clone(), d.clone());
            let runner = s.spawn(move || fault(&a, name, &[]));
            wait_until_begun(&b);
            b.interrupt();
            assert_eq!(runner.join().unwrap().kind, FaultKind::Interrupted);
        });
        d.reset().unwrap();
    }
    // With nobody inside nothing happens.
    d.interrupt();
    assert_eq!(call(&d, "add", &[1, 2]).unwrap(), 3);
}

#[test]
fn a_fault_ends_the_calls_of_other_threads() {
    let d = domain();
    std::thread::scope(|s| {
        let a = d.clone();
        let runner = s.spawn(move || fault(&a, "announced", &[]));
        wait_until_begun(&d);
        assert_eq!(fault(&d, "illegal", &[]).kind, FaultKind::IllegalInstruction);
        assert_eq!(runner.join().unwrap().kind, FaultKind::Elsewhere);
    });
    d.reset().unwrap();
    assert_eq!(call(&d, "add", &[1, 2]).unwrap(), 3);
}

#[test]
fn faults_of_many_threads_at_once() {
    std::thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| {
                let d = domain();
                for i in 0..100 {
                    assert_eq!(fault(&d, "divide", &[i, 0]).kind, FaultKind::Division);
                    d.reset().unwrap();
                }
            });
        }
    });
}

#[test]
fn children_have_windows_of_their_own() {
    in_child("children_have_windows_of_their_own", || {
        let d = domain();
        let limited = || {
            assert_eq!(out_of_time(&d, "forever").kind, FaultKind::TimeLimit);
            d.reset().unwrap();
        };
        limited();
        assert_eq!(call(&d, "increment", &[]).unwrap(), 6);
        let status = forked(|| {
            assert_eq!(call(&d, "increment", &[]).unwrap(), 7);
            assert_eq!(fault(&d, "divide", &[1, 0]).kind, FaultKind::Division);
            d.reset().unwrap();
            // The watchdog is made anew.
            limited();
            let e = domain();
            assert_eq!(call(&e, "add", &[2, 2]).unwrap(), 4);
        });
        assert_eq!(status, 0);
        assert_eq!(call(&d, "increment", &[]).unwrap(), 7);
        // From within a callback the child comes back into its copy.
        let forks = imports().closure("host_add", |f| {
            // SAFETY: the child goes on in its copy of the domain.
            f.result[0] = u64::from(unsafe { libc::fork() } == 0);
            Ok(())
        });
        let d = Domain::new(&[module()], forks, &DomainOptions::default()).unwrap();
        let r = call(&d, "call_out", &[1, 2]).unwrap();
        if r == 2 {
            // SAFETY: the child ends.
            unsafe { libc::_exit(i32::from(call(&d, "add", &[1, 2]).ok() != Some(3))) };
        }
        let mut status = 0;
        // SAFETY: waits for the child.
        unsafe { libc::wait(&raw mut status) };
        assert_eq!((r, status), (1, 0));
    });
}

/// Operands through `r14` reach above the window's end: into what is inaccessible there, whoever's it is.
#[test]
fn what_reaches_above_a_window_is_the_domains_fault() {
    in_child("what_reaches_above_a_window_is_the_domains_fault", || {
        if !std::arch::is_x86_feature_detected!("avx2") {
            return;
        }
        let file = support::build_file("held.s", &["--no-rewrite"]);
        let module = Module::open(&file, &LoadOptions::default()).unwrap();
        std::fs::remove_file(file).unwrap();
        let new = || {
            let modules = std::slice::from_ref(&module);
            Domain::new(modules, Imports::new(), &DomainOptions::default()).unwrap()
        };
        let (low, high) = (new(), new());
        let (base, above) = (low.as_ref().base(), high.as_ref().base());
        assert_eq!(
            base + window::SIZE,
            above,
            "the first windows of a process are neighbours"
        );
        let whole = |d: &Domain| {
            let mut bytes = vec![0; 0x1_0000];
            d.as_ref()
                .read(d.as_ref().base() + u64::from(window::HEADER), &mut bytes)
                .unwrap();
            (bytes, call(d, "load", &[d.symbol("word").unwrap()]).unwrap())
        };
        let before = (whole(&low), whole(&high));
        assert_eq!(before.1.1, 0x1122_3344_5566_7788);
        const REACH: u64 = window::HELD_REACH as u64;
        // The lower of two neighbours, and the last window of a row. The upper halves of arguments do not count.
        for (d, own) in [(&low, base), (&high, above)] {
            for start in [
                0xFFFF_FFFFu64,
                0x1234_FFFF_FFFF,
                u64::MAX,
                0xFFFF_8009,
                0xFFFF_8010,
            ] {
                let far = own + (start & 0xFFFF_FFFF) + REACH - 8;
                assert!((own + window::SIZE..own + window::SIZE + REACH).contains(&far));
                for (name, address, access) in [
                    ("load_far", far, Access::Read),
                    ("store_far", far, Access::Write),
                    ("store_farthest", far + 7, Access::Write),
                    ("store_masked", far + 7, Access::Write),
                ] {
                    let f = fault(d, name, &[start, u64::MAX]);
                    assert_eq!(f.kind, FaultKind::BadAccess { address, access }, "{name}: {f}");
                    let told = f.to_string();
                    assert!(
                        told.contains(&format!("{address:#x}")) && told.contains(name),
                        "{told}"
                    );
                    assert!((own..own + window::SIZE).contains(&f.instruction()));
                    assert!(d.faulted());
                    d.reset().unwrap();
                }
                // What is masked out is not there at all.
                call(d, "store_masked", &[start, 0]).unwrap();
            }
            // The last bytes of the window and the first above them in one access.
            let f = fault(d, "store", &[0xFFFF_FFFC, 7]);
            assert!(
                matches!(
                    f.kind,
                    FaultKind::BadAccess {
                        access: Access::Write,
                        ..
                    }
                ),
                "{f}"
            );
            d.reset().unwrap();
        }
        assert!(!low.faulted() && !high.faulted());
        assert!(before == (whole(&low), whole(&high)));
        for d in [&low, &high] {
            let word = d.symbol("word").unwrap();
            call(d, "store", &[word & 0xFFFF_FFFF, 99]).unwrap();
            assert_eq!(call(d, "load_far", &[word - REACH + 8]).unwrap(), 99);
        }
    });
}
