//! Every kind of failure of a module is an error with place and backtrace, and the host goes on.

mod support;

use std::time::{Duration, Instant};

use ringfence::{Access, CallError, Domain, Error, Fault, FaultKind, Ptr};
use support::{basic, line};

fn fault<T: std::fmt::Debug>(result: Result<T, CallError>) -> Fault {
    match result {
        Err(CallError::Fault(fault)) => *fault,
        other => panic!("a fault was expected, not {other:?}"),
    }
}

/// The fault is in `function`, at the line that carries its name; the domain refuses calls until it is reset.
#[track_caller]
fn expect(d: &Domain, fault: &Fault, function: &str, at: Option<&str>) {
    let frames = fault.backtrace();
    let first = frames.first().unwrap_or_else(|| panic!("no frames: {fault}"));
    assert_eq!(first.function.as_deref(), Some(function), "{fault}");
    if let Some(marker) = at {
        assert!(
            first.file.as_deref().is_some_and(|f| f.ends_with("basic.c")),
            "{fault}"
        );
        assert_eq!(first.line, Some(line("basic", marker)), "{fault}");
        let message = fault.to_string();
        assert!(
            message.contains(function) && message.contains("basic.c"),
            "{message}"
        );
    }
    assert!(d.faulted());
    let add = d.func::<(i32, i32), i32>("add").unwrap();
    assert!(matches!(add.call(1, 1), Err(CallError::Faulted { .. })));
    d.reset().unwrap();
    assert!(!d.faulted());
    assert_eq!(add.call(1, 1).unwrap(), 2);
}

#[test]
fn wild_reads_and_writes() -> Result<(), Error> {
    needs!(Faults);
    let d = basic();
    let read = d.func::<(Ptr<i32>,), i32>("wild_read")?;
    let write = d.func::<(Ptr<i32>, i32), ()>("wild_write")?;
    for offset in [0u64, 16, 0xFFFC, 0x3000_0000, 0xFFFF_FFF0] {
        let f = fault(read.call(Ptr::from_address(offset)));
        let FaultKind::BadAccess { address, access } = f.kind else {
            panic!("{f}")
        };
        assert_eq!((address & 0xFFFF_FFFF, access), (offset, Access::Read), "{f}");
        expect(&d, &f, "wild_read", Some("wild_read"));
        let f = fault(write.call(Ptr::from_address(offset), 1));
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
        expect(&d, &f, "wild_write", Some("wild_write"));
    }
    Ok(())
}

#[test]
fn host_memory_is_out_of_reach() -> Result<(), Error> {
    needs!(Fence);
    let d = basic();
    let mut secret = Box::new(0x1234_5678i32);
    let address = Ptr::from_address((&raw mut *secret) as u64);
    // The address's lower half lands somewhere in the window: mapped or not, it is never the host's memory.
    if let Ok(value) = d.func::<(Ptr<i32>,), i32>("wild_read")?.call(address) {
        assert_ne!(value, 0x1234_5678);
    } else {
        d.reset()?;
    }
    let _ = d.func::<(Ptr<i32>, i32), ()>("wild_write")?.call(address, 0x666);
    assert_eq!(*secret, 0x1234_5678);
    Ok(())
}

#[test]
fn arithmetic_and_traps() -> Result<(), Error> {
    needs!(Faults);
    let d = basic();
    let divide = d.func::<(i32, i32), i32>("divide")?;
    assert_eq!(divide.call(7, 2)?, 3);
    for (a, b) in [(1, 0), (i32::MIN, -1)] {
        let f = fault(divide.call(a, b));
        assert!(matches!(f.kind, FaultKind::Division), "{f}");
        expect(&d, &f, "divide", Some("divide"));
    }
    let f = fault(d.func::<(), ()>("trap")?.call());
    assert!(matches!(f.kind, FaultKind::IllegalInstruction), "{f}");
    expect(&d, &f, "trap", Some("trap"));
    Ok(())
}

#[test]
fn jumps_to_what_is_no_function() -> Result<(), Error> {
    needs!(Faults);
    let d = basic();
    let jump = d.func::<(u64,), i32>("jump_to")?;
    let nothing = d.func::<(), ()>("nothing")?.ptr().address();
    let zeroes = d.object::<u8>("zeroes").unwrap().address();
    for target in [
        0,
        1,
        nothing + 8,
        nothing - 8, // the lowest three bits are cleared first: `nothing + 1` would be `nothing`
        zeroes,
        std::process::abort as *const () as u64,
        u64::MAX,
    ] {
        let result = jump.call(target);
        assert!(
            result.is_err(),
            "{target:#x}: {result:?}, nothing is at {nothing:#x}"
        );
        let f = fault(result);
        assert!(
            matches!(f.kind, FaultKind::BadTarget | FaultKind::BadAccess { .. }),
            "{target:#x}: {f}"
        );
        d.reset()?;
    }
    Ok(())
}

#[test]
fn both_stacks_end() -> Result<(), Error> {
    needs!(Faults);
    let d = basic();
    let f = fault(d.func::<(i32,), i32>("recurse_control")?.call(0));
    assert!(
        matches!(f.kind, FaultKind::ControlStack | FaultKind::DataStack),
        "{f}"
    );
    expect(&d, &f, "recurse_control", None);
    let f = fault(d.func::<(), i32>("recurse_data")?.call());
    assert!(
        matches!(f.kind, FaultKind::ControlStack | FaultKind::DataStack),
        "{f}"
    );
    d.reset()?;
    // Threads with small stacks of their own are no different: a domain does not use them.
    let recurse = d.func::<(), i32>("recurse_data")?;
    std::thread::Builder::new()
        .stack_size(64 << 10)
        .spawn(move || drop(fault(recurse.call())))
        .unwrap()
        .join()
        .unwrap();
    Ok(())
}

#[test]
fn the_backtrace_names_the_callers() -> Result<(), Error> {
    needs!(Faults);
    let d = basic();
    let f = fault(d.func::<(Ptr<i32>,), i32>("outer")?.call(Ptr::NULL));
    let frames = f.backtrace();
    let names: Vec<&str> = frames.iter().filter_map(|f| f.function.as_deref()).collect();
    assert!(names.contains(&"outer"), "{names:?}");
    assert_eq!(
        f.domain.rsplit('/').next().map(|n| n.starts_with("basic")),
        Some(true),
        "{}",
        f.domain
    );
    Ok(())
}

#[test]
fn time_limits() -> Result<(), Error> {
    needs!(Limits, Faults);
    let d = basic();
    let spin = d.func::<(), ()>("spin")?;
    let add = d.func::<(i32, i32), i32>("add")?;
    d.set_time_limit(Some(Duration::from_millis(20))).unwrap();
    for _ in 0..3 {
        let start = Instant::now();
        let f = fault(spin.call());
        let took = start.elapsed();
        assert!(matches!(f.kind, FaultKind::TimeLimit), "{f}");
        assert!(took >= Duration::from_millis(19), "{took:?} is too early");
        assert!(
            took < Duration::from_secs(20),
            "{took:?} is too late, even for a loaded machine"
        );
        expect(&d, &f, "spin", None);
    }
    // Short calls are not hurt by a limit that passed long ago for others; but one may be kept from the processor for so long.
    let mut good = 0;
    for i in 0..50 {
        match add.call(i, 1) {
            Ok(sum) => good += i32::from(sum == i + 1),
            Err(_) => d.reset()?,
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(good > 25, "{good} of 50");
    d.set_time_limit(None).unwrap();
    assert_eq!(d.func::<(u64,), i32>("spin_for")?.call(50_000_000)?, 1);
    Ok(())
}

#[test]
fn interrupts_from_another_thread() -> Result<(), Error> {
    needs!(Interrupt, Faults);
    let d = basic();
    let spin = d.func::<(), ()>("spin")?;
    d.interrupt().unwrap(); // nobody is inside: nothing happens
    assert_eq!(d.func::<(i32, i32), i32>("add")?.call(1, 1)?, 2);
    for _ in 0..5 {
        std::thread::scope(|s| {
            let running = s.spawn(|| fault(spin.call()));
            while !running.is_finished() {
                std::thread::sleep(Duration::from_millis(5));
                d.interrupt().unwrap();
            }
            let f = running.join().unwrap();
            assert!(matches!(f.kind, FaultKind::Interrupted), "{f}");
        });
        d.reset()?;
    }
    Ok(())
}

#[test]
fn a_fault_in_one_thread_ends_the_others_calls_or_leaves_them_alone() -> Result<(), Error> {
    needs!(Faults);
    let d = basic();
    let (spin_for, divide) = (
        d.func::<(u64,), i32>("spin_for")?,
        d.func::<(i32, i32), i32>("divide")?,
    );
    std::thread::scope(|s| {
        let other = s.spawn(|| spin_for.call(300_000_000));
        while d.usage().active == 0 && !other.is_finished() {
            std::thread::yield_now();
        }
        let f = fault(divide.call(1, 0));
        assert!(matches!(f.kind, FaultKind::Division), "{f}");
        match other.join().unwrap() {
            Ok(one) => assert_eq!(one, 1),
            Err(CallError::Fault(f)) => assert!(matches!(f.kind, FaultKind::Elsewhere), "{f}"),
            // It had announced itself, and was not in yet.
            Err(CallError::Faulted { .. }) => {}
            Err(e) => panic!("{e}"),
        }
    });
    d.reset()?;
    Ok(())
}

#[test]
fn reset_restores_data() -> Result<(), Error> {
    needs!(Fence);
    let d = basic();
    let bump = d.func::<(), i64>("bump")?;
    let thread = d.func::<(), i32>("bump_thread")?;
    for round in 0..50 {
        assert_eq!(bump.call()?, 8, "round {round}");
        assert_eq!(bump.call()?, 9);
        assert_eq!(thread.call()?, 101, "thread-local data too");
        let zeroes: Ptr<u64> = d.object("zeroes").unwrap();
        assert_eq!(d.memory().read(zeroes.wrapping_add(600))?, 0);
        d.memory().write(zeroes.wrapping_add(600), 5)?;
        d.reset()?;
    }
    Ok(())
}
