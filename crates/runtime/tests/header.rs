//! The header page of a domain to which modules are added: what it tells, who can write it, and what a fork leaves of it.

mod support;

use ringfence_isa::window;
use ringfence_runtime::{Access, Domain, FaultKind, LoadOptions, Module};
use support::{build, call, domain, fault, in_child};

fn plugin() -> Module {
    let out = build("plugin", &["--import=add,host_add", "--import-data=counter"]);
    let module = Module::open(&out, &LoadOptions::default()).expect("module");
    let _ = std::fs::remove_file(out);
    module
}

/// A word of the header, as the domain's own code reads it.
fn told(d: &Domain, at: u32) -> u32 {
    let address = d.as_ref().base() + u64::from(at);
    call(d, "read_at", &[address]).expect("the header is readable") as u32
}

fn images(d: &Domain) -> Vec<(u32, u32)> {
    let entry = |i: u32| window::HEADER_IMAGES + 8 * i;
    let count = told(d, window::HEADER_IMAGE_COUNT);
    (0..count)
        .map(|i| (told(d, entry(i)), told(d, entry(i) + 4)))
        .collect()
}

#[test]
fn the_domain_reads_the_list_and_can_never_write_it() {
    let d = domain();
    let (first, second) = (plugin(), plugin());
    let own = images(&d);
    assert_eq!(own.len(), 1);
    let mut changes = vec![told(&d, window::HEADER_IMAGE_CHANGES)];
    let mut changed = |d: &Domain| {
        let now = told(d, window::HEADER_IMAGE_CHANGES);
        assert!(!changes.contains(&now), "{now} was seen before");
        changes.push(now);
    };
    d.add("a", &first).unwrap();
    changed(&d);
    let one = images(&d);
    assert_eq!((one.len(), one[0]), (2, own[0]));
    let text = d.entry_in("a", "next").unwrap().address() as u32;
    assert!(text.wrapping_sub(one[1].0) < one[1].1);
    d.add("b", &second).unwrap();
    changed(&d);
    let both = images(&d);
    assert_eq!(both[..2], one[..]);
    // Where unwinders find each one's tables: version 1, and the encodings that ld writes.
    for n in 0..3 {
        let frames = told(&d, window::HEADER_FRAMES + 4 * n);
        let mut head = [0; 4];
        d.as_ref()
            .read(d.as_ref().base() + u64::from(frames), &mut head)
            .unwrap();
        assert_eq!(head, [1, 0x1B, 3, 0x3B], "image {n}");
    }
    d.remove("a").unwrap();
    changed(&d);
    assert_eq!(images(&d), [own[0], both[2]]);

    // No store of the domain's changes it, before and after anything came.
    for at in [window::HEADER_BASE, window::HEADER_IMAGE_COUNT, window::STUBS - 8] {
        let address = d.as_ref().base() + u64::from(at);
        let f = fault(&d, "write_at", &[address, 7]);
        assert!(
            matches!(f.kind, FaultKind::BadAccess { access: Access::Write, address: a } if a == address),
            "{at:#x}: {f}"
        );
        d.reset().unwrap();
        changed(&d);
        assert_eq!(images(&d), own);
        d.add("b", &second).unwrap();
        changed(&d);
    }
    assert_eq!(
        u64::from(told(&d, window::HEADER_BASE + 4)),
        d.as_ref().base() >> 32
    );
}

#[test]
fn a_forked_child_lists_its_own() {
    in_child("a_forked_child_lists_its_own", || {
        let d = domain();
        let (first, second) = (plugin(), plugin());
        d.add("a", &first).unwrap();
        let before = images(&d);
        // SAFETY: a child of our own, which leaves without the test harness.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let seen = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                assert_eq!(images(&d), before);
                d.add("b", &second).unwrap();
                assert_eq!(images(&d).len(), 3);
                d.remove("a").unwrap();
                assert_eq!(images(&d).len(), 2);
            }));
            // SAFETY: ends the child.
            unsafe { libc::_exit(i32::from(seen.is_err())) };
        }
        let mut status = -1;
        // SAFETY: waits for our own child.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!(status, 0, "the child");
        assert_eq!(images(&d), before, "the child has not changed the parent's");
        d.remove("a").unwrap();
        assert_eq!(images(&d).len(), 1);
        assert_eq!(call(&d, "add", &[2, 3]).unwrap(), 5);
    });
}
