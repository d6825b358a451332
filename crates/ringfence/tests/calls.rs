//! Typed calls: arguments and results of every kind, wrong claims, many domains and threads.

mod support;

use ringfence::{CallError, Domain, DomainError, Error, Ptr};
use support::Start as _;
use support::{basic, basic_imports, module};

#[test]
fn integers_and_results() -> Result<(), Error> {
    let d = basic();
    assert_eq!(d.func::<(i32, i32), i32>("add")?.call(2, 3)?, 5);
    assert_eq!(d.func::<(i32, i32), i32>("add")?.call(i32::MIN, 0)?, i32::MIN);
    d.func::<(), ()>("nothing")?.call()?;
    assert_eq!(d.func::<(), i64>("bump")?.call()?, 8);
    assert_eq!(
        d.func::<(i64, i64, i64, i64, i64, i64), i64>("six")?
            .call(1, 2, 3, 4, 5, 6)?,
        654_321
    );
    let eight = d.func::<(i64, i64, i64, i64, i64, i64, i64, i64), i64>("eight")?;
    assert_eq!(
        eight.call(1, 2, 3, 4, 5, 6, 7, 8)?,
        87_654_321,
        "the last two travel on the stack"
    );
    assert_eq!(d.func::<(i8,), i8>("narrow")?.call(-128)?, 127);
    assert_eq!(d.func::<(u16,), u16>("wide")?.call(u16::MAX)?, 0);
    let odd = d.func::<(u64,), bool>("is_odd")?;
    assert_eq!(
        (odd.call(3)?, odd.call(4)?),
        (true.into_untrusted(), false.into_untrusted())
    );
    Ok(())
}

trait IntoUntrusted: Sized {
    fn into_untrusted(self) -> ringfence::Untrusted<Self> {
        ringfence::Untrusted::new(self)
    }
}
impl IntoUntrusted for bool {}

#[test]
fn floats_and_mixtures() -> Result<(), Error> {
    let d = basic();
    let mixed = d.func::<(i32, f64, i64, f32, u8), f64>("mixed")?;
    assert_eq!(mixed.call(1, 2.5, 3, 4.25, 250)?, 1.0 + 5.0 + 3.0 + 17.0 + 250.0);
    assert_eq!(d.func::<(f32,), f32>("half")?.call(3.0)?, 1.5);
    type Ten = (f64, f64, f64, f64, f64, f64, f64, f64, f64, f64);
    let ten = d.func::<Ten, f64>("ten_doubles")?;
    assert_eq!(ten.call(1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0)?, 65.0);
    Ok(())
}

#[test]
fn a_wrong_claim_gives_wrong_numbers_and_nothing_worse() -> Result<(), Error> {
    needs!(Faults);
    let d = basic();
    let _ = d.func::<(), i32>("add")?.call()?;
    let _ = d.func::<(f64, f64), f64>("add")?.call(1.0, 2.0)?;
    let _ = d.func::<(i64,), bool>("half")?.call(5)?;
    let _ = d.func::<(Ptr<u8>, i32), Ptr<u64>>("six")?.call(Ptr::NULL, 1)?;
    let _ = d.func::<(i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64), ()>("nothing")?;
    let strlen_of_a_number = d.func::<(i64,), i64>("upper")?.call(3);
    assert!(matches!(strlen_of_a_number, Err(CallError::Fault(_))));
    d.reset()?;
    assert_eq!(d.func::<(i32, i32), i32>("add")?.call(2, 3)?, 5);
    Ok(())
}

#[test]
fn exports_that_are_not_there_or_no_functions() {
    let d = basic();
    for name in [
        "",
        "ad",
        "add\0",
        "host_add",
        "twice",
        "inner",
        &"x".repeat(100_000),
    ] {
        assert!(
            matches!(d.func::<(), ()>(name), Err(DomainError::NoExport { .. })),
            "{name:.20}"
        );
    }
    assert!(matches!(
        d.func::<(), ()>("counter"),
        Err(DomainError::NotFunction { .. })
    ));
    let message = d.func::<(), ()>("ad").unwrap_err().to_string();
    assert!(message.contains("\"ad\""), "{message}");
}

#[test]
fn domains_of_one_module_share_nothing() -> Result<(), Error> {
    let module = module("basic");
    let domains: Vec<Domain> = (0..20)
        .map(|_| module.start(basic_imports()))
        .collect::<Result<_, _>>()?;
    for (i, d) in domains.iter().enumerate() {
        let bump = d.func::<(), i64>("bump")?;
        for _ in 0..i {
            bump.call()?;
        }
    }
    for (i, d) in domains.iter().enumerate() {
        assert_eq!(d.func::<(), i64>("bump")?.call()?, 8 + i as i64);
    }
    Ok(())
}

#[test]
fn a_function_outlives_the_handle_of_its_domain() -> Result<(), Error> {
    let add = basic().func::<(i32, i32), i32>("add")?;
    assert_eq!(add.call(20, 22)?, 42);
    let again = add.clone();
    drop(add);
    assert_eq!(again.call(20, 22)?, 42);
    Ok(())
}

#[test]
fn threads_have_lanes_of_their_own() -> Result<(), Error> {
    let d = basic();
    let bump = d.func::<(), i32>("bump_thread")?;
    assert_eq!(bump.call()?, 101);
    std::thread::scope(|s| {
        for _ in 0..8 {
            s.spawn(|| {
                for i in 1..=1000 {
                    assert_eq!(
                        bump.call().unwrap(),
                        100 + i,
                        "thread-local state starts fresh on each thread"
                    );
                }
            });
        }
    });
    assert_eq!(bump.call()?, 102);
    Ok(())
}

#[test]
fn lanes_of_ended_threads_are_used_again() -> Result<(), Error> {
    let d = basic();
    let add = d.func::<(i32, i32), i32>("add")?;
    for i in 0..200 {
        std::thread::scope(|s| {
            s.spawn(|| assert_eq!(add.call(i, 1).unwrap(), i + 1))
                .join()
                .unwrap()
        });
    }
    Ok(())
}

#[test]
fn more_threads_than_lanes_is_an_error_and_no_more() -> Result<(), Error> {
    needs!(Limits);
    let d = basic();
    let add = d.func::<(i32, i32), i32>("add")?;
    let all = std::sync::Barrier::new(70);
    let refused = std::sync::atomic::AtomicU32::new(0);
    std::thread::scope(|s| {
        for _ in 0..70 {
            s.spawn(|| {
                match add.call(1, 1) {
                    Ok(two) => assert_eq!(two, 2),
                    Err(CallError::NoLane { .. }) => {
                        refused.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    }
                    Err(e) => panic!("{e}"),
                }
                all.wait();
            });
        }
    });
    assert!((7..70).contains(&refused.into_inner()), "63 lanes at most");
    assert_eq!(add.call(1, 1)?, 2);
    Ok(())
}

#[test]
fn function_pointers_of_a_domain_go_back_into_it() -> Result<(), Error> {
    needs!(Faults);
    let d = basic();
    let pick = d.func::<(i32,), Ptr<()>>("pick")?;
    let apply = d.func::<(Ptr<()>, i32), i32>("apply")?;
    assert_eq!(apply.call(pick.call(2)?.into(), 21)?, 42);
    assert_eq!(apply.call(pick.call(3)?.into(), 14)?, 42);
    assert_eq!(apply.call(d.func::<(i32,), i32>("is_odd")?.ptr(), 3)?, 1);
    let twice = d.func_at::<(i32,), i32>(pick.call(2)?)?;
    assert_eq!(twice.call(4)?, 8);
    let elsewhere = [
        0,
        1,
        twice.ptr().address() + 8,
        d.memory().base(),
        std::process::id as *const () as u64,
        u64::MAX,
    ];
    for address in elsewhere {
        let e = d.func_at::<(i32,), i32>(Ptr::from_address(address)).unwrap_err();
        assert!(matches!(e, DomainError::NoEntry { .. }), "{address:#x}: {e}");
    }
    assert!(apply.call(Ptr::NULL, 1).is_err());
    d.reset()?;
    // The address of a host function means nothing in there.
    assert!(
        apply
            .call(Ptr::from_address(std::process::id as *const () as u64), 1)
            .is_err()
    );
    Ok(())
}
