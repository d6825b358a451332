//! What hosts and domains may not do with each other: typed errors, and everything as it was.

mod support;

use ringfence::{
    CallError, Domain, Error, FaultKind, GrantError, Group, Imports, InUse, ModuleError, OnFailure, Ptr,
    Region, RegionError, Rights, RightsError, Signature,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use support::Start as _;
use support::{basic, basic_imports, module};

#[test]
fn rights_and_groups() -> Result<(), Error> {
    needs!(Regions);
    let (owner, a, b) = (basic(), basic(), basic());
    let region = Region::owned_by(&owner, 8192)?;
    region.give_as(&owner, &a, Rights::Read)?;
    let closed = Group::owned_by(&owner, false)?;
    closed.admit_as(&owner, &b)?;
    region.give_group_as(&owner, &closed, Rights::Write)?;
    let state = || [&owner, &a, &b].map(|d| region.rights_of(d));
    assert_eq!(state(), [Rights::Write, Rights::Read, Rights::Write]);
    // Tries something that must fail with such an error and leave who may do what as it is.
    type Attempt<'a> = &'a dyn Fn() -> Result<(), RegionError>;
    let unchanged = |what: &str, attempt: Attempt<'_>, error: fn(&RightsError) -> bool| {
        match attempt() {
            Err(RegionError::Rights(e)) => assert!(error(&e), "{what}: {e}"),
            other => panic!("{what}: {other:?}"),
        }
        assert_eq!(state(), [Rights::Write, Rights::Read, Rights::Write], "{what}");
    };
    let not_owner = |e: &RightsError| matches!(e, RightsError::NotOwner { .. });
    for rights in [Rights::Read, Rights::Write, Rights::None] {
        unchanged("a reader gives", &|| region.give_as(&a, &b, rights), not_owner);
        unchanged(
            "a stranger gives itself",
            &|| region.give_as(&b, &b, rights),
            not_owner,
        );
    }
    unchanged("a reader frees", &|| region.free_as(&a), not_owner);
    unchanged("joining a closed group", &|| closed.admit_as(&a, &a), |e| {
        matches!(e, RightsError::Closed(_))
    });
    unchanged(
        "admitting to another's group",
        &|| closed.admit_as(&b, &a),
        not_owner,
    );
    unchanged(
        "expelling from another's group",
        &|| closed.expel_as(&a, &b),
        not_owner,
    );
    unchanged("expelling who is not in", &|| closed.expel(&a), |e| {
        matches!(e, RightsError::NotMember(..))
    });
    drop(region);
    Ok(())
}

#[test]
fn entries_that_were_revoked() -> Result<(), Error> {
    needs!(Grants);
    let signature = Signature {
        ints: 2,
        int_results: 1,
        ..Signature::NOTHING
    };
    let slots = || basic_imports().slot("host_add", signature, OnFailure::Tell);
    let (caller, callee) = (module("basic").start(slots())?, basic());
    let call = caller.func::<(i32, i32), i32>("call_host_add")?;
    let grant = caller.grant("host_add", &callee, "add")?;
    assert_eq!(call.call(2, 3)?, 6);
    assert!(grant.revoke());
    let refused = call.call(2, 3);
    assert!(
        matches!(&refused, Err(CallError::Fault(f)) if matches!(&f.kind, FaultKind::Host(why) if why.contains("revoked"))),
        "{refused:?}"
    );
    assert!(!grant.revoke() && !grant.is_live(), "a second time");
    assert!(!callee.faulted(), "it was not entered");
    assert!(matches!(
        caller.grant("no_such", &callee, "add"),
        Err(ringfence::DomainError::Grant(GrantError::NoSlot { .. }))
    ));
    caller.reset()?;
    caller.grant("host_add", &callee, "add")?;
    assert_eq!(call.call(20, 30)?, 51);
    Ok(())
}

#[test]
fn memory_that_is_unmapped_under_a_call() -> Result<(), Error> {
    needs!(Regions);
    let (runs, other) = (basic(), basic());
    let region = Region::new(1 << 16)?;
    region.give(&runs, Rights::Read)?;
    region.give(&other, Rights::Write)?;
    let stop = AtomicBool::new(false);
    std::thread::scope(|s| {
        let running = s.spawn(|| {
            let checksum = runs.func::<(Ptr<u8>, usize), u32>("checksum").unwrap();
            loop {
                if let Err(e) = checksum.call(region.ptr_in(&runs), 1 << 16) {
                    return e;
                }
                assert!(!stop.load(Ordering::Relaxed), "it must have faulted by now");
            }
        });
        while runs.usage().calls < 3 {
            std::thread::yield_now();
        }
        region.free().unwrap();
        let e = running.join().unwrap();
        stop.store(true, Ordering::Relaxed);
        assert!(
            matches!(&e, CallError::Fault(f) if matches!(f.kind, FaultKind::BadAccess { .. })),
            "{e}"
        );
    });
    assert!(!other.faulted());
    assert_eq!(other.func::<(i32, i32), i32>("add")?.call(1, 2)?, 3);
    assert!(matches!(
        region.give(&other, Rights::Read),
        Err(RegionError::Rights(RightsError::NoRegion(_)))
    ));
    runs.reset()?;
    assert_eq!(runs.func::<(i32, i32), i32>("add")?.call(1, 2)?, 3);
    Ok(())
}

#[test]
fn modules_on_the_stack() -> Result<(), Box<dyn std::error::Error>> {
    needs!(Modules);
    let own: Arc<OnceLock<Domain>> = Arc::default();
    let seen: Arc<Mutex<Vec<Result<(), ModuleError>>>> = Arc::default();
    let (d, tries) = (own.clone(), seen.clone());
    let imports: Imports = basic_imports().func("host_find", move |_name: Ptr<u8>| {
        tries.lock().unwrap().push(d.get().unwrap().remove_module("plug"));
        0u64
    });
    let mut options = support::options();
    options.extensible = true;
    let domain = Domain::instantiate(&[module("basic")], imports, &options)?;
    assert!(own.set(domain.clone()).is_ok());
    domain.add_module("plug", &module("plugin"))?;
    let usage = domain.usage();
    let by_name = domain.func_in::<(Ptr<u8>, i32, i32), i64>("plug", "call_by_name")?;
    assert_eq!(by_name.call(Ptr::from_address(0), 1, 2)?, -1);
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    assert!(
        matches!(&seen[..], [Err(ModuleError::InUse(InUse::OnStack { .. }))]),
        "{seen:?}"
    );
    assert_eq!(domain.usage().modules, usage.modules);
    assert_eq!(
        domain.func_in::<(), i64>("plug", "plugged")?.call()?,
        108 * 1000 + 47
    );
    domain.remove_module("plug")?;
    Ok(())
}
