//! Several libcs in one domain, each in a module of its own: each has a heap of its own, and none takes another's memory.

mod support;

use ringfence_driver::args::Front;
use ringfence_runtime::{CallError, Domain, DomainOptions, Imports, Module};
use support::call;

fn heap(name: &str, flag: &str) -> Module {
    support::with_libc("heap.c", Front::C, &[flag, &format!("-DNAME={name}")])
}

/// A size of any kind: small blocks of all classes, large ones, none.
fn size(random: u64) -> u64 {
    match random % 8 {
        0 => 0,
        1 => random >> 8 & 0x3F_FFFF,
        2..=3 => random >> 8 & 0x1_FFFF,
        _ => random >> 8 & 0x7FF,
    }
}

fn work(d: &Domain, names: &[&str], rounds: usize, random: &mut u64) {
    for round in 0..rounds {
        for name in names {
            *random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let (i, size) = (*random >> 56, size(*random >> 8));
            let wrong = call(d, &format!("set_{name}"), &[i, size, *random >> 3 & 0xFF]).unwrap();
            assert_eq!(wrong, 0, "{name}, round {round}: block {i}, {size} bytes");
        }
    }
    for name in names {
        assert_eq!(call(d, &format!("lost_{name}"), &[]).unwrap(), 0, "{name}");
    }
}

#[test]
fn libcs_of_one_domain_do_not_share_a_heap() {
    let mut options = DomainOptions::default();
    options.extensible = true;
    let modules = [heap("one", "-O1"), heap("min", "-ffreestanding")];
    let d = Domain::new(&modules, Imports::new(), &options).unwrap();
    let mut random = 1;
    work(&d, &["one", "min"], 100, &mut random);
    let third = heap("three", "-O1");
    for _ in 0..2 {
        d.add("third", &third).unwrap();
        work(&d, &["one", "three", "min"], 300, &mut random);
        d.remove("third").unwrap();
        work(&d, &["one", "min"], 50, &mut random);
    }
}

#[test]
fn a_block_of_another_libc_is_not_freed() {
    let modules = [heap("one", "-O1"), heap("two", "-O1")];
    let d = Domain::new(&modules, Imports::new(), &DomainOptions::default()).unwrap();
    // The other's heap has grown: what is looked at is no block of its own by chance.
    work(&d, &["one", "two"], 100, &mut 7);
    let of_one = call(&d, "make_one", &[]).unwrap();
    let freed = call(&d, "free_two", &[of_one]);
    assert!(matches!(freed, Err(CallError::Fault(_))), "{freed:?}");
    d.reset().unwrap();
    let of_one = call(&d, "make_one", &[]).unwrap();
    call(&d, "free_one", &[of_one]).unwrap();
}
