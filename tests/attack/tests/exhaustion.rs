//! What holds when the process has run out of something.

use ringfence_attack::caller::module;
use ringfence_attack::child::in_child;
use ringfence_attack::fuzz::domain_of;
use ringfence_runtime::supervisor::{Actor, Group, Recipient, Region};
use ringfence_runtime::{Domain, DomainOptions, Imports, Rights};

fn domain() -> Domain {
    domain_of(
        &module(),
        Imports::new().closure("host", |_| Ok(())),
        &DomainOptions::default(),
    )
    .expect("a domain")
}

/// Maps single pages until the kernel refuses.
fn fill_the_table_of_mappings() {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    for n in 0.. {
        let rights = [libc::PROT_READ, libc::PROT_NONE][n % 2];
        // SAFETY: fresh mappings; rights alternate so that they are not joined.
        let p = unsafe { libc::mmap(std::ptr::null_mut(), 4096, rights, flags, -1, 0) };
        if p == libc::MAP_FAILED {
            return;
        }
    }
}

#[test]
fn rights_are_taken_back_when_there_are_no_mappings_left() {
    let status = in_child(|| {
        let (one, other) = (domain(), domain());
        let regions: Vec<Region> = (0..3).map(|_| Region::new(8192).unwrap()).collect();
        let group = Group::new(false);
        group.admit(Actor::Host, &other).unwrap();
        for region in &regions {
            region
                .give(Actor::Host, Recipient::Domain(one.as_ref()), Rights::Write)
                .unwrap();
            region
                .give(Actor::Host, Recipient::Group(&group), Rights::Read)
                .unwrap();
        }
        let reads = |domain: &Domain, region: &Region| {
            let at = region.address_in(domain.as_ref());
            domain.as_ref().read(at, &mut [0; 8]).is_ok()
        };
        assert!(regions.iter().all(|r| reads(&one, r) && reads(&other, r)));
        fill_the_table_of_mappings();
        regions[0].free(Actor::Host).unwrap();
        assert!(!reads(&one, &regions[0]) && !reads(&other, &regions[0]), "freed");
        // This one may fail, but must say so.
        let taken = regions[1].give(Actor::Host, Recipient::Domain(one.as_ref()), Rights::None);
        assert_eq!(reads(&one, &regions[1]), taken.is_err(), "{taken:?}");
        group.expel(Actor::Host, &other).unwrap();
        assert!(!reads(&other, &regions[1]), "expelled");
        let place = regions[2].address_in(one.as_ref());
        drop(regions);
        assert!(one.as_ref().read(place, &mut [0; 8]).is_err(), "dropped");
    });
    assert_eq!(status, 0);
}
