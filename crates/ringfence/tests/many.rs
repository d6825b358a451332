//! Many domains: pools, calls from domain to domain, accounting.

mod support;

use ringfence::{
    CallError, Caller, Domain, DomainError, Error, FaultKind, GrantError, Imports, ModuleError, OnFailure,
    Pool, Ptr, Region, Rights, Signature, Snapshot, SnapshotError,
};
use std::sync::{Arc, Mutex};
use support::Start as _;
use support::{basic, basic_imports, module};

fn pool(most: usize) -> Pool {
    let module = module("basic");
    Pool::new(most, move || module.start(basic_imports()))
}

#[test]
fn nothing_of_the_last_user_is_left() -> Result<(), Error> {
    needs!(Fence);
    // A thread's stacks count from its first call on.
    let fresh = {
        let d = basic();
        d.func::<(), i32>("bump_thread")?.call()?;
        d.usage().memory
    };
    let pool = pool(4);
    let (window, allocation) = {
        let d = pool.take()?;
        let m = d.memory();
        m.write(d.object::<i32>("counter").unwrap(), 1234)?;
        m.write(d.object::<u64>("zeroes").unwrap().wrapping_add(77), 0x5EC2E7)?;
        d.func::<(), i32>("bump_thread")?.call()?;
        let secret = m.put_slice(&[0x5Eu8; 70_000])?;
        let _ = d
            .func::<(i64, i64, i64, i64, i64, i64), i64>("six")?
            .call(1, 2, 3, 4, 5, 6)?;
        (m.base(), secret.leak())
    };
    assert_eq!(pool.waiting(), 1);
    let d = pool.take()?;
    let m = d.memory();
    assert_eq!(m.base(), window, "the same domain again");
    assert_eq!(m.read(d.object::<i32>("counter").unwrap())?, 7);
    assert_eq!(m.read(d.object::<u64>("zeroes").unwrap().wrapping_add(77))?, 0);
    assert_eq!(d.func::<(), i32>("bump_thread")?.call()?, 101);
    assert_eq!(d.usage().memory, fresh, "nothing is in use but the module's data");
    assert!(
        m.read(allocation).map_or(true, |b| b.into_inner_unchecked() == 0),
        "what is still accessible is zero"
    );
    let again = m.alloc_array::<u8>(70_000)?;
    assert!(again.to_vec()?.into_inner_unchecked().iter().all(|&b| b == 0));
    // No page of image, heap, or the lane's stack and thread block holds the secret any more.
    let mut seen = 0;
    for area in [
        0x4_0000..0x14_0000u64,
        0x4000_0000..0x4010_0000,
        0x7000_0000..0x7040_0000,
        0xC000_0000..0xC100_0000,
    ] {
        for page in area.step_by(1 << 12) {
            if let Ok(words) = m.read::<[u64; 512]>(Ptr::from_address(window + page)) {
                assert!(
                    words
                        .into_inner_unchecked()
                        .iter()
                        .all(|&w| w != 0x5E5E_5E5E_5E5E_5E5E),
                    "at {page:#x}"
                );
                seen += 1;
            }
        }
    }
    assert!(seen > 1000, "{seen} pages");
    drop(again);
    drop(d);
    let d = pool.take()?;
    d.trim().expect("nobody is inside");
    assert!(d.memory().read(allocation).is_err(), "inaccessible after a trim");
    Ok(())
}

#[test]
fn what_was_kept_or_faulted_is_not_handed_out_as_it_is() -> Result<(), Error> {
    needs!(Faults);
    let pool = pool(4);
    let kept = {
        let d = pool.take()?;
        d.func::<(), i64>("bump")?
    };
    assert_eq!(pool.waiting(), 0, "somebody can still call it");
    assert_eq!(kept.call()?, 8);
    {
        let d = pool.take()?;
        assert!(d.func::<(i32, i32), i32>("divide")?.call(1, 0).is_err());
        assert!(d.faulted());
    }
    assert_eq!(pool.waiting(), 1);
    let d = pool.take()?;
    assert!(!d.faulted());
    assert_eq!(d.func::<(i32, i32), i32>("divide")?.call(6, 3)?, 2);
    Ok(())
}

#[test]
fn a_pool_keeps_no_more_than_it_should() -> Result<(), Error> {
    let pool = pool(3);
    pool.fill(100)?;
    assert_eq!(pool.waiting(), 3);
    let all: Vec<_> = (0..8).map(|_| pool.take()).collect::<Result<_, _>>()?;
    assert_eq!(pool.waiting(), 0);
    drop(all);
    assert_eq!(pool.waiting(), 3);
    std::thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| {
                for i in 0..100 {
                    let d = pool.take().unwrap();
                    let bump = d.func::<(), i64>("bump").unwrap();
                    assert_eq!(bump.call().unwrap(), 8, "round {i}: clean");
                }
            });
        }
    });
    assert_eq!(pool.waiting(), 3);
    Ok(())
}

/// A host function of the callee's fails; the caller goes on, and a later error of the host's is told as what it is.
#[test]
fn a_failure_that_was_survived_is_not_told_later() -> Result<(), Error> {
    needs!(Grants);
    let failing = basic_imports().func("host_add", |a: i32, _: i32| -> Result<i32, String> {
        if a < 0 { Err("negative".into()) } else { Ok(a) }
    });
    let callee = module("basic").start(failing)?;
    let imports = basic_imports().export_or(
        "host_add",
        &callee,
        "call_host_add",
        two_ints(),
        OnFailure::Return(5),
    );
    let caller = module("basic").start(imports)?;
    assert_eq!(caller.func::<(i32, i32), i32>("call_host_add")?.call(-1, 0)?, 6);
    let imports = basic_imports().export_or("host_add", &callee, "add", two_ints(), OnFailure::End);
    let ended = module("basic").start(imports)?;
    let e = ended
        .func::<(i32, i32), i32>("call_host_add")?
        .call(1, 0)
        .unwrap_err();
    assert!(matches!(&e, CallError::Fault(_)), "{e}");
    // What it tells is the callee's state, and the first cause of that.
    assert!(e.to_string().contains("has faulted; reset it first"), "{e}");
    Ok(())
}

#[test]
fn a_pool_takes_back_what_was_given() -> Result<(), Error> {
    needs!(Regions);
    let pool = pool(1);
    let region = Region::new(4096)?;
    let window = {
        let d = pool.take()?;
        region.give(&d, Rights::Write)?;
        d.set_time_limit(Some(std::time::Duration::from_millis(1)))
            .unwrap();
        d.memory().base()
    };
    let d = pool.take()?;
    assert_eq!(d.memory().base(), window, "the same domain again");
    assert_eq!(region.rights_of(&d), Rights::None);
    assert!(d.memory().read::<u8>(region.ptr_in(&d)).is_err());
    Ok(())
}

#[test]
fn domains_start_from_a_state_and_return_to_it() -> Result<(), Error> {
    needs!(Snapshots);
    let warm = |d: &Domain| -> Result<(), Error> {
        for _ in 0..5 {
            d.func::<(), i64>("bump")?.call()?;
        }
        Ok(())
    };
    let make = || module("basic").start(basic_imports());
    let snapshot = Snapshot::new(make, warm)?;
    let pool = Pool::from_snapshot(2, snapshot.clone(), basic_imports);
    for _ in 0..3 {
        let d = pool.take()?;
        assert_eq!(d.func::<(), i64>("bump")?.call()?, 13);
        assert_eq!(d.memory().read(d.object::<i32>("counter").unwrap())?, 13);
    }
    let e = snapshot
        .instantiate(basic_imports().func("host_other", || ()))
        .map(drop);
    assert!(e.is_ok(), "a name that the module does not need is no import");
    let d = make()?;
    warm(&d)?;
    d.checkpoint()?;
    assert_eq!(d.func::<(), i64>("bump")?.call()?, 13);
    d.reset()?;
    assert_eq!(d.func::<(), i64>("bump")?.call()?, 13);
    Ok(())
}

fn two_ints() -> Signature {
    Signature {
        ints: 2,
        floats: 0,
        stack: 0,
        int_results: 1,
        float_results: 0,
        x87_results: 0,
        ..Signature::NOTHING
    }
}

#[test]
fn domains_call_each_other() -> Result<(), Error> {
    needs!(Grants);
    let callee = basic();
    let caller = module("basic").start(basic_imports().export("host_add", &callee, "add", two_ints()))?;
    let call = caller.func::<(i32, i32), i32>("call_host_add")?;
    assert_eq!(call.call(20, 21)?, 42);
    let many = caller.func::<(i32,), i32>("add_many")?;
    assert_eq!(many.call(10_000)?, 10_000);
    // The callee is protected from the caller and the other way round: a fault of one names the other's function. This
    // caller cannot ask how its call went, so it is ended.
    let divide = |imports: Imports, on_failure| {
        imports.export_or("host_add", &callee, "divide", two_ints(), on_failure)
    };
    let caller = module("basic").start(divide(basic_imports(), OnFailure::Tell))?;
    let call = caller.func::<(i32, i32), i32>("call_host_add")?;
    assert_eq!(call.call(6, 2)?, 4);
    let e = call.call(6, 0).unwrap_err();
    let CallError::Fault(fault) = &e else {
        panic!("{e}")
    };
    let FaultKind::Callee(inner) = &fault.kind else {
        panic!("{e}")
    };
    assert!(matches!(inner.kind, FaultKind::Division), "{e}");
    assert_eq!(inner.backtrace()[0].function.as_deref(), Some("divide"));
    assert!(callee.faulted());
    callee.reset()?;
    caller.reset()?;
    assert_eq!(call.call(6, 2)?, 4);
    // With a value for failures it goes on, and the host hears of it.
    let heard = Arc::new(Mutex::new(Vec::new()));
    let log = heard.clone();
    let imports =
        divide(basic_imports(), OnFailure::Return(77)).on_callee_failure(move |import, callee, error| {
            log.lock().unwrap().push(format!("{import}: {error}"));
            callee.map_or(Ok(()), |callee| callee.reset())
        });
    let caller = module("basic").start(imports)?;
    let call = caller.func::<(i32, i32), i32>("call_host_add")?;
    assert_eq!(call.call(6, 0)?, 78);
    assert_eq!(call.call(6, 2)?, 4, "the hook has reset the callee");
    assert_eq!(heard.lock().unwrap().len(), 1);
    assert!(caller.revoke("host_add")?);
    assert_eq!(call.call(6, 2)?, 78);
    let grant = caller.grant("host_add", &callee, "add")?;
    assert_eq!(call.call(6, 2)?, 9);
    assert!(grant.revoke() && !grant.is_live());
    assert!(matches!(
        caller.grant("host_mix", &callee, "add"),
        Err(DomainError::Grant(GrantError::NoSlot { .. }))
    ));
    // A callee that is not there, or no function.
    for wrong in ["no_such", "counter"] {
        let imports = basic_imports().export("host_add", &callee, wrong, two_ints());
        assert!(module("basic").start(imports).is_err(), "{wrong}");
    }
    Ok(())
}

#[test]
fn memory_is_accounted_for() -> Result<(), Error> {
    let d: Domain = basic();
    let before = d.memory_used();
    let block = d.memory().alloc_array::<u8>(1 << 20)?;
    assert!(d.memory_used() >= before + (1 << 20));
    drop(block);
    d.reset()?;
    assert!(d.memory_used() <= before);
    assert_eq!(d.resets(), 1);
    Ok(())
}

#[test]
fn plug_ins_come_and_go() -> Result<(), Box<dyn std::error::Error>> {
    needs!(Modules);
    let mut options = support::options();
    let imports = || {
        basic_imports().func("host_find", |caller: &Caller, name: Ptr<u8>| {
            // Any text will do for a look into a table.
            let name = caller.memory().read_string(name, 64)?.into_inner_unchecked();
            Ok::<u64, Error>(caller.symbol(None, &name).unwrap_or(0))
        })
    };
    let d = Domain::instantiate(&[module("basic")], imports(), &options)?;
    let plugin = module("plugin");
    let refused = d.add_module("plug", &plugin);
    assert!(matches!(refused, Err(ModuleError::Link { .. })), "{refused:?}");
    options.extensible = true;
    let d = Domain::instantiate(&[module("basic")], imports(), &options)?;
    for _ in 0..3 {
        let counter = d.object::<i32>("counter").unwrap();
        d.memory().write(counter, 7)?;
        d.add_module("plug", &plugin)?;
        let plugged = d.func_in::<(), i64>("plug", "plugged")?;
        assert_eq!(plugged.call()?, 108 * 1000 + 41 + 6);
        assert_eq!(d.memory().read(counter)?, 108);
        assert_eq!(d.module_names(), ["plug"]);
        let by_name = d.func::<(Ptr<u8>, i32, i32), i64>("call_by_name")?;
        for (name, result) in [("add", 42), ("nobody", -1)] {
            let name = d.memory().put_c_string(name)?;
            assert_eq!(by_name.call(name.ptr(), 20, 22)?, result);
        }
        assert!(matches!(d.checkpoint(), Err(SnapshotError::Held(_))));
        d.remove_module("plug")?;
        assert_eq!(d.memory().read(counter)?, -1, "its destructor ran");
        assert!(matches!(plugged.call(), Err(CallError::Removed)));
    }
    Ok(())
}
