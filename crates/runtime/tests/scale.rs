//! As many domains as the system allows: what each costs, and what happens when there is no room for another.

mod support;

use ringfence_runtime::{Domain, DomainError, DomainOptions, HostError, Imports, LoadOptions, Module};
use support::{build, call, in_child};

/// Resident memory and page tables, in bytes.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let field = |name: &str| {
        let line = status.lines().find(|l| l.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    };
    field("VmRSS:") + field("VmPTE:")
}

fn mappings() -> usize {
    let maps = std::fs::read("/proc/self/maps").unwrap();
    maps.iter().filter(|&&b| b == b'\n').count()
}

/// A module of one megabyte.
fn big() -> Module {
    let path = build("big", &[]);
    let bytes = std::fs::read(&path).unwrap();
    let _ = std::fs::remove_file(path);
    Module::from_bytes("big.rf", &bytes, &LoadOptions::default()).unwrap()
}

/// 20,000, or as many as fit under `vm.max_map_count`.
#[test]
fn domains_until_there_is_no_room() {
    in_child("domains_until_there_is_no_room", || {
        const WANTED: usize = 20_000;
        let module = big();
        let image: u32 = module.segments().iter().map(|s| s.len).sum();
        assert!(image >= 1 << 20, "{image}");
        let new = || {
            Domain::new(
                std::slice::from_ref(&module),
                Imports::new(),
                &DomainOptions::default(),
            )
        };
        let mut domains: Vec<Domain> = vec![new().unwrap()];
        domains[0].trim().unwrap();
        let (memory_before, mappings_before) = (memory(), mappings());
        let ended = loop {
            if domains.len() == WANTED {
                break None;
            }
            match new() {
                Ok(d) => {
                    assert_eq!(d.trim().unwrap(), 1, "the constructor's");
                    domains.push(d);
                }
                Err(e) => break Some(e),
            }
        };
        let made = domains.len() - 1;
        let each = (memory() - memory_before) / made as u64;
        let maps = (mappings() - mappings_before) as f64 / made as f64;
        println!("{made} domains: {each} bytes and {maps:.2} mappings for each; ended by {ended:?}");
        assert!(each < 40 << 10, "{each} bytes for each idle domain");
        assert!(maps < 12.0, "{maps} mappings for each idle domain");
        // All of them are alive, and none has seen another's data.
        for d in domains.iter().step_by(domains.len() / 50) {
            assert_eq!(
                call(d, "touch", &[5000]).unwrap(),
                5000 + 4 + i64::from(b'c') as u64
            );
            assert_eq!(call(d, "touched", &[5000]).unwrap(), 1);
            d.trim().unwrap();
        }
        let Some(ended) = ended else { return };
        let limit = match &ended {
            DomainError::Host(HostError::Mappings { limit, used }) if used > limit => *limit,
            other => panic!("{other:?}"),
        };
        assert!(
            ended.to_string().contains("sysctl -w vm.max_map_count"),
            "{ended}"
        );
        assert!(
            mappings() as u64 <= limit,
            "the kernel's limit is not reached before ours"
        );
        // The estimate is not far off either: nine tenths of it are used, but for what is left to the host.
        assert!(
            mappings() as u64 + 4096 > limit * 6 / 10,
            "{} of {limit}",
            mappings()
        );
        // Nothing has changed, and there is room again when one goes.
        assert!(new().is_err());
        domains.truncate(domains.len() - 10);
        domains.push(new().expect("room again"));
    });
}

#[test]
fn trimmed_domains_go_on_as_before() {
    let d = support::domain();
    assert_eq!(call(&d, "increment", &[]).unwrap(), 6);
    assert_eq!(call(&d, "thread_local_next", &[]).unwrap(), 7);
    assert_eq!(call(&d, "thread_local_next", &[]).unwrap(), 8);
    let calls = d.usage().calls;
    assert_eq!(d.trim().unwrap(), 1);
    assert_eq!(d.trim().unwrap(), 0);
    assert_eq!((d.usage().lanes, d.usage().calls), (0, calls));
    assert_eq!(call(&d, "increment", &[]).unwrap(), 7, "data stay");
    assert_eq!(call(&d, "thread_local_next", &[]).unwrap(), 7, "a new thread's");
    d.trim().unwrap();
    d.reset().unwrap();
    assert_eq!(call(&d, "increment", &[]).unwrap(), 6);
    d.trim().unwrap();
    d.snapshot().unwrap();
    assert_eq!(call(&d, "increment", &[]).unwrap(), 7);
    assert_eq!(call(&d, "thread_local_next", &[]).unwrap(), 7);
    // A call in progress keeps its stacks.
    let inside = {
        let d = d.clone();
        std::thread::spawn(move || call(&d, "forever", &[]))
    };
    while d.usage().active == 0 {
        std::thread::yield_now();
    }
    assert_eq!(d.trim().unwrap(), 1, "only ours");
    assert_eq!(call(&d, "add", &[2, 3]).unwrap(), 5);
    d.interrupt();
    assert!(inside.join().unwrap().is_err());
}
