//! Memory shared between domains: rights that change while domains run, groups, owners, and what ends with whom.

mod support;

use std::os::fd::{FromRawFd, OwnedFd};
use std::time::Duration;

use ringfence::{
    CallError, Domain, Error, FaultKind, Func, Group, MemoryError, Ptr, Region, RegionError, Rights,
    RightsError, matrix, overview,
};
use support::basic;

fn reader(d: &Domain) -> Func<(Ptr<i32>,), i32> {
    d.func("wild_read").unwrap()
}

fn writer(d: &Domain) -> Func<(Ptr<i32>, i32), ()> {
    d.func("wild_write").unwrap()
}

/// Whether the domain can read and write the region, by trying.
fn can(d: &Domain, r: &Region) -> (bool, bool) {
    let can = |result: Result<(), CallError>| match result {
        Ok(()) => true,
        Err(CallError::Fault(f)) => {
            assert!(matches!(f.kind, FaultKind::BadAccess { .. }), "{f}");
            d.reset().unwrap();
            false
        }
        Err(e) => panic!("{e}"),
    };
    let at = r.ptr_in(d);
    (
        can(reader(d).call(at).map(drop)),
        can(writer(d).call(at, 1).map(drop)),
    )
}

#[track_caller]
fn refused(result: Result<(), RegionError>, why: impl Fn(RightsError) -> bool) {
    match result {
        Err(RegionError::Rights(e)) if why(e) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_region_many_domains_rights_of_each() -> Result<(), Error> {
    needs!(Regions);
    let (a, b, c) = (basic(), basic(), basic());
    let r = Region::new(10_000)?;
    assert_eq!((can(&a, &r), can(&b, &r)), ((false, false), (false, false)));
    r.give(&a, Rights::Write)?;
    r.give(&b, Rights::Read)?;
    assert_eq!(
        (can(&a, &r), can(&b, &r), can(&c, &r)),
        ((true, true), (true, false), (false, false))
    );
    assert_eq!(
        (r.rights_of(&a), r.rights_of(&b), r.rights_of(&c)),
        (Rights::Write, Rights::Read, Rights::None)
    );

    // What one writes, the others and the host see, at the same offset.
    writer(&a).call(r.ptr_in(&a), 4711)?;
    assert_eq!(reader(&b).call(r.ptr_in(&b))?, 4711);
    assert_eq!(r.read::<i32>(0)?, 4711);
    r.write(4096, 42i32)?;
    assert_eq!(reader(&b).call(r.ptr_in::<i32>(&b).field(4096))?, 42);
    assert_eq!(
        r.ptr_in::<u8>(&a).address() as u32,
        r.ptr_in::<u8>(&b).address() as u32
    );

    // A reset restores the domain, not what it shares.
    a.reset()?;
    assert_eq!(reader(&a).call(r.ptr_in(&a))?, 4711);

    r.give(&a, Rights::Read)?;
    r.give(&b, Rights::None)?;
    assert_eq!((can(&a, &r), can(&b, &r)), ((true, false), (false, false)));
    r.free()?;
    assert_eq!(can(&a, &r), (false, false));
    refused(r.give(&a, Rights::Read), |e| {
        matches!(e, RightsError::NoRegion(_))
    });
    refused(r.free(), |e| matches!(e, RightsError::NoRegion(_)));
    assert_eq!(
        r.read::<i32>(0)?,
        4711,
        "the host's view stays until the last handle goes"
    );
    Ok(())
}

#[test]
fn the_last_handle_takes_the_region_along() -> Result<(), Error> {
    needs!(Regions);
    let d = basic();
    let r = Region::new(4096)?;
    let at = r.ptr_in(&d);
    r.give(&d, Rights::Write)?;
    let again = r.clone();
    drop(r);
    assert_eq!(can(&d, &again), (true, true));
    drop(again);
    assert!(reader(&d).call(at).is_err());
    Ok(())
}

#[test]
fn rights_go_while_a_domain_runs() -> Result<(), Error> {
    needs!(Regions);
    let d = basic();
    let checksum = d.func::<(Ptr<u8>, usize), u32>("checksum")?;
    for _ in 0..5 {
        let r = Region::new(1 << 20)?;
        r.give(&d, Rights::Read)?;
        std::thread::scope(|s| {
            let running = s.spawn(|| {
                loop {
                    if let Err(e) = checksum.call(r.ptr_in(&d), 1 << 20) {
                        return e;
                    }
                }
            });
            std::thread::sleep(Duration::from_millis(3));
            r.give(&d, Rights::None).unwrap();
            let e = running.join().unwrap();
            assert!(
                matches!(&e, CallError::Fault(f) if matches!(f.kind, FaultKind::BadAccess { .. })),
                "{e}"
            );
        });
        d.reset()?;
    }
    Ok(())
}

#[test]
fn groups() -> Result<(), Error> {
    needs!(Regions);
    let (a, b, owner) = (basic(), basic(), basic());
    let r = Region::new(4096)?;
    let group = Group::owned_by(&owner, false)?;
    r.give_group(&group, Rights::Read)?;
    refused(group.admit_as(&a, &a), |e| matches!(e, RightsError::Closed(_)));
    refused(group.admit_as(&a, &b), |e| {
        matches!(e, RightsError::NotOwner { .. })
    });
    group.admit_as(&owner, &a)?;
    group.admit(&b)?;
    assert_eq!((can(&a, &r), can(&b, &r)), ((true, false), (true, false)));
    r.give(&b, Rights::Write)?;
    r.give_group(&group, Rights::None)?;
    assert_eq!((can(&a, &r), can(&b, &r)), ((false, false), (true, true)));
    r.give_group(&group, Rights::Write)?;
    refused(group.expel_as(&b, &a), |e| {
        matches!(e, RightsError::NotOwner { .. })
    });
    group.expel_as(&a, &a)?;
    refused(group.expel(&a), |e| matches!(e, RightsError::NotMember(..)));
    assert_eq!(can(&a, &r), (false, false));
    // With its owner the group ends, and with it what it gave.
    group.admit(&a)?;
    assert_eq!(can(&a, &r), (true, true));
    drop(owner);
    assert_eq!((can(&a, &r), can(&b, &r)), ((false, false), (true, true)));

    let open = Group::new(true);
    r.give_group(&open, Rights::Read)?;
    open.admit_as(&a, &a)?;
    assert_eq!(can(&a, &r), (true, false));
    drop(open);
    assert_eq!(can(&a, &r), (false, false));
    Ok(())
}

#[test]
fn owners_give_no_more_than_they_have_and_take_it_along() -> Result<(), Error> {
    needs!(Regions);
    let (a, b, c) = (basic(), basic(), basic());
    let r = Region::owned_by(&a, 4096)?;
    assert_eq!((can(&a, &r), can(&b, &r)), ((true, true), (false, false)));
    refused(r.give_as(&b, &b, Rights::Read), |e| {
        matches!(e, RightsError::NotOwner { .. })
    });
    r.give_as(&a, &b, Rights::Read)?;
    refused(r.give_as(&b, &c, Rights::Read), |e| {
        matches!(e, RightsError::NotOwner { .. })
    });
    r.give_as(&a, &a, Rights::None)?;
    assert_eq!(can(&a, &r), (true, true), "an owner cannot lose what it owns");
    refused(r.free_as(&b), |e| matches!(e, RightsError::NotOwner { .. }));
    // It outlives the host's handles, and goes with its owner.
    let at = r.ptr_in::<i32>(&b);
    drop(r);
    assert!(reader(&b).call(at).is_ok());
    drop(a);
    assert!(reader(&b).call(at).is_err());
    Ok(())
}

fn memory_file(len: i64, flags: u32) -> OwnedFd {
    // SAFETY: a C string; the descriptor is fresh.
    unsafe {
        let fd = libc::memfd_create(c"test".as_ptr(), flags);
        assert!(fd >= 0 && libc::ftruncate(fd, len) == 0);
        OwnedFd::from_raw_fd(fd)
    }
}

#[test]
fn files_become_regions() -> Result<(), Error> {
    needs!(Regions);
    use std::os::fd::AsRawFd;
    let d = basic();
    let file = memory_file(8192, libc::MFD_ALLOW_SEALING);
    let mine = file.try_clone().unwrap();
    let r = Region::from_file(file, 8192, Rights::Read)?;
    refused(r.give(&d, Rights::Write), |e| {
        matches!(e, RightsError::Exceeds { .. })
    });
    r.give(&d, Rights::Read)?;
    assert_eq!(can(&d, &r), (true, false));
    assert!(matches!(r.write(0, 1i32), Err(MemoryError::Unmapped { .. })));
    // SAFETY: the descriptor is open.
    let shrunk = unsafe { libc::ftruncate(mine.as_raw_fd(), 0) };
    assert_ne!(shrunk, 0, "sealed against shrinking");

    assert!(matches!(
        Region::from_file(memory_file(8192, 0), 8192, Rights::Read),
        Err(RegionError::NotSealable(_))
    ));
    let short = memory_file(100, libc::MFD_ALLOW_SEALING);
    assert!(matches!(
        Region::from_file(short, 100, Rights::Read),
        Err(RegionError::Short { .. })
    ));
    let ordinary = std::fs::File::open(std::env::current_exe().unwrap()).unwrap();
    assert!(Region::from_file(ordinary.into(), 4096, Rights::Read).is_err());
    Ok(())
}

#[test]
fn sizes_and_the_end_of_room() -> Result<(), Error> {
    for len in [0, 1 << 29, 1 << 32, u64::MAX] {
        assert!(
            matches!(Region::new(len), Err(RegionError::Size { .. })),
            "{len:#x}"
        );
    }
    let mut all = Vec::new();
    let e = loop {
        match Region::new(100 << 20) {
            Ok(r) => all.push(r),
            Err(e) => break e,
        }
    };
    assert!(matches!(e, RegionError::Space { .. }), "{e}");
    assert!(!all.is_empty());
    all.clear();
    let r = Region::new(100 << 20)?;
    assert!(matches!(
        r.read::<u64>((100 << 20) - 7),
        Err(MemoryError::Outside { .. })
    ));
    assert!(matches!(
        r.read::<u64>(u64::MAX - 3),
        Err(MemoryError::Outside { .. })
    ));
    assert!(matches!(
        r.read_bytes(0, usize::MAX),
        Err(MemoryError::Outside { .. })
    ));
    assert!(matches!(
        r.write_slice(100 << 20, &[1u8]),
        Err(MemoryError::Outside { .. })
    ));
    assert_eq!(r.read::<u64>((100 << 20) - 8)?, 0);
    Ok(())
}

#[test]
fn the_matrix_can_be_printed() -> Result<(), Error> {
    needs!(Regions);
    let (a, b) = (basic(), basic());
    let r = Region::new(12_345)?;
    r.give(&a, Rights::Write)?;
    r.give(&b, Rights::Read)?;
    let row = matrix()
        .into_iter()
        .find(|row| row.len == 12_345)
        .expect("listed");
    assert_eq!(
        row.rights.iter().map(|x| x.1).collect::<Vec<_>>(),
        [Rights::Write, Rights::Read]
    );
    let line = row.to_string();
    assert!(
        line.contains("12345 bytes, of host:") && line.contains("=rw ") && line.ends_with("=r"),
        "{line}"
    );
    drop(r);
    assert!(matrix().iter().all(|row| row.len != 12_345));
    Ok(())
}

#[test]
fn groups_can_be_printed() -> Result<(), Error> {
    needs!(Regions);
    let (a, b) = (basic(), basic());
    let r = Region::new(54_321)?;
    let mine = Group::owned_by(&a, true)?;
    mine.admit(&b)?;
    r.give_group(&mine, Rights::Read)?;
    let all = overview();
    let row = all.regions.iter().find(|row| row.len == 54_321).expect("listed");
    let [(name, Rights::Read)] = &row.rights[..] else {
        panic!("{row}")
    };
    let group = |all: &ringfence::Overview| all.groups.iter().find(|g| g.members.contains(name)).cloned();
    let g = group(&all).expect("listed");
    assert_eq!(
        (g.open, &g.members[..], &g.rights[..]),
        (true, &[name.clone()][..], &[(row.region, Rights::Read)][..])
    );
    let owner = g.owner.clone().expect("a domain");
    assert_ne!(owner, *name);
    let line = format!(
        "group {}, open, of {owner}: {name}; region {}=r\n",
        g.group, row.region
    );
    assert!(all.to_string().contains(&line), "{all}");
    let json = format!(
        r#"{{"group":{},"owner":"{owner}","open":true,"members":["{name}"],"rights":{{"{}":"r"}}}}"#,
        g.group, row.region
    );
    assert!(all.to_json().contains(&json), "{}", all.to_json());
    // Who goes is not listed any more, nor what it owned.
    mine.expel(&b)?;
    assert!(group(&overview()).is_none());
    assert!(overview().groups.iter().any(|g| g.owner.as_ref() == Some(&owner)));
    drop(a);
    assert!(overview().groups.iter().all(|g| g.owner.as_ref() != Some(&owner)));
    Ok(())
}

#[test]
fn many_regions_many_domains_many_threads() {
    needs!(Regions);
    let domains: Vec<Domain> = (0..6).map(|_| basic()).collect();
    std::thread::scope(|s| {
        for t in 0..3usize {
            let domains = &domains;
            s.spawn(move || {
                for i in 0..60 {
                    let r = Region::new(4096 * (1 + i as u64 % 5)).unwrap();
                    let (x, y) = (&domains[(i + t) % 6], &domains[(i * 5 + t + 1) % 6]);
                    r.give(x, Rights::Write).unwrap();
                    r.give(y, Rights::Write).unwrap();
                    writer(x).call(r.ptr_in(x), i as i32).unwrap();
                    assert_eq!(reader(y).call(r.ptr_in(y)).unwrap(), i as i32);
                    assert_eq!(r.read::<i32>(0).unwrap(), i as i32);
                }
            });
        }
    });
}

#[test]
fn a_forked_child_shares_nothing_with_its_parents_domains() -> Result<(), Error> {
    needs!(Regions);
    let d = basic();
    let r = Region::new(4096)?;
    r.give(&d, Rights::Write)?;
    writer(&d).call(r.ptr_in(&d), 5)?;
    let (write, at) = (writer(&d), r.ptr_in(&d));
    // SAFETY: the child only calls into a domain and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let failed = write.call(at, 6).is_err();
        // SAFETY: ends the child without running the test harness's end.
        unsafe { libc::_exit(i32::from(!failed)) };
    }
    let mut status = -1;
    // SAFETY: waits for our own child.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child's domain must have lost the region");
    assert_eq!(r.read::<i32>(0)?, 5);
    assert_eq!(can(&d, &r), (true, true));
    Ok(())
}
