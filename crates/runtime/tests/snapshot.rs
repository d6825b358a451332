//! Snapshots of initialised domains: what they hold, where they fit, what is refused.

mod support;

use ringfence_runtime::{
    Actor, CallError, Domain, DomainError, DomainOptions, Imports, LoadOptions, Module, Recipient, Region,
    Rights, Snapshot, SnapshotError, Syscall,
};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use support::{build, call};

fn module() -> Module {
    static MODULE: OnceLock<Module> = OnceLock::new();
    let load = || {
        let file = build("state", &["--import=host_enter"]);
        let module = Module::open(&file, &LoadOptions::default()).expect("module");
        let _ = std::fs::remove_file(file);
        module
    };
    MODULE.get_or_init(load).clone()
}

fn imports() -> Imports {
    Imports::new().closure("host_enter", |_| Ok(()))
}

fn make() -> Result<Domain, DomainError> {
    let mut options = DomainOptions::default();
    options.data_stack = 1 << 20;
    Domain::new(&[module()], imports(), &options)
}

/// A memory call of the domain's own.
fn memory(d: &Domain, number: i64, args: [u64; 6]) -> u64 {
    let call = Syscall {
        number: number as u64,
        args,
    };
    d.as_ref().memory_call(&call).expect("a call on memory") as u64
}

fn map(d: &Domain, len: u64) -> u64 {
    let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
    memory(d, libc::SYS_mmap, [0, len, 3, flags, u64::MAX, 0])
}

/// A list in the heap, in the break's memory and in a map, which also has pages that the domain itself cannot reach.
fn init(d: &Domain) -> Result<(), CallError> {
    let given = d.as_ref().alloc(100_000, 16).expect("memory");
    let start = memory(d, libc::SYS_brk, [0; 6]);
    memory(d, libc::SYS_brk, [start + 50_000, 0, 0, 0, 0, 0]);
    let mapped = map(d, 64 << 10);
    for i in 0..900u64 {
        let area = [given, start, mapped][(i % 3) as usize];
        call(d, "push", &[area + i / 3 * 48, i])?;
    }
    let hidden = mapped + (48 << 10);
    d.as_ref().write(hidden, &[0x77; 8192]).expect("mapped");
    assert_eq!(memory(d, libc::SYS_mprotect, [hidden, 8192, 0, 0, 0, 0]), 0);
    assert_eq!(
        memory(d, libc::SYS_mprotect, [hidden + 8192, 4096, 1, 0, 0, 0]),
        0
    );
    Ok(())
}

fn check(d: &Domain, what: &str) {
    assert_eq!(call(d, "sum", &[]).unwrap(), 899 * 900 / 2, "{what}");
    assert_eq!(call(d, "apply", &[21]).unwrap(), 42, "{what}");
    assert_eq!(call(d, "local_value", &[]).unwrap(), 903, "{what}");
    assert_eq!(call(d, "cursor_value", &[]).unwrap(), 899, "{what}");
    assert_eq!(call(d, "head_is_newest", &[]).unwrap(), 1, "{what}");
    assert_eq!(call(d, "times_constructed", &[]).unwrap(), 1, "{what}");
}

/// All of a window that can be read, but the data stacks, by offset.
fn contents(d: &Domain) -> BTreeMap<u64, Vec<u8>> {
    let base = d.as_ref().base();
    let maps = std::fs::read_to_string("/proc/self/maps").expect("maps");
    let mut pages = BTreeMap::new();
    for line in maps.lines() {
        let (range, rest) = line.split_once(' ').unwrap();
        let (start, end) = range.split_once('-').unwrap();
        let address = |s: &str| u64::from_str_radix(s, 16).unwrap();
        let (start, end) = (address(start), address(end));
        if start < base || end > base + (1 << 32) || rest.starts_with("---") || start - base >= 0xC080_0000 {
            continue;
        }
        for at in (start..end).step_by(4096) {
            let mut page = vec![0; 4096];
            d.as_ref().read(at, &mut page).expect("a readable page");
            pages.insert(at - base, page);
        }
    }
    pages
}

/// Everything that a user might do to the state.
fn spoil(d: &Domain, round: u64) {
    call(d, "spoil", &[0xD1D1]).unwrap();
    let state: Vec<u64> = contents(d)
        .into_keys()
        .filter(|at| (0x4000_0000..0xA000_0000).contains(at))
        .collect();
    let base = d.as_ref().base();
    let more = map(d, 16 << 10);
    d.as_ref().write(more, &[0xD1; 16 << 10]).unwrap();
    let page = base + state[(round as usize * 5) % state.len()];
    match round % 6 {
        0 => assert_eq!(memory(d, libc::SYS_munmap, [page, 4096, 0, 0, 0, 0]), 0),
        1 => assert_eq!(
            memory(
                d,
                libc::SYS_madvise,
                [page, 4096, libc::MADV_DONTNEED as u64, 0, 0, 0]
            ),
            0
        ),
        2 => assert_eq!(memory(d, libc::SYS_mprotect, [page, 4096, 0, 0, 0, 0]), 0),
        3 => drop(memory(d, libc::SYS_brk, [base + 0x4000_1000, 0, 0, 0, 0, 0])),
        4 => {
            for &at in &state {
                let _ = d.as_ref().write(base + at, &[0xD1; 4096]);
            }
        }
        _ => drop(call(d, "crash", &[])),
    }
}

#[test]
fn a_reset_returns_to_the_snapshot() {
    let d = make().unwrap();
    init(&d).unwrap();
    let before = contents(&d);
    d.checkpoint().unwrap();
    check(&d, "after the snapshot");
    assert!(contents(&d) == before, "the snapshot itself changes nothing");
    let used = d.as_ref().memory_used();
    for round in 0..24 {
        spoil(&d, round);
        d.reset().unwrap();
        check(&d, &format!("round {round}"));
        let after = contents(&d);
        assert_eq!(
            after.keys().collect::<Vec<_>>(),
            before.keys().collect::<Vec<_>>(),
            "round {round}"
        );
        for (at, page) in &before {
            assert!(after[at] == *page, "round {round}: at {at:#x}");
        }
        assert_eq!(d.as_ref().memory_used(), used, "round {round}");
    }
    // One on top of the other.
    call(&d, "spoil", &[5]).unwrap();
    d.checkpoint().unwrap();
    call(&d, "spoil", &[6]).unwrap();
    d.recycle().unwrap();
    assert_eq!(call(&d, "local_value", &[]).unwrap(), 5);
    assert_eq!(call(&d, "sum", &[]).unwrap(), 0);
}

#[test]
fn a_domain_drops_pages_of_an_image_and_finds_zeroes() {
    let d = make().unwrap();
    init(&d).unwrap();
    d.checkpoint().unwrap();
    let page = *contents(&d)
        .range(0x4000_0000..)
        .find(|(_, p)| p.iter().any(|&b| b != 0))
        .unwrap()
        .0;
    let at = d.as_ref().base() + page;
    assert_eq!(
        memory(
            &d,
            libc::SYS_madvise,
            [at, 4096, libc::MADV_DONTNEED as u64, 0, 0, 0]
        ),
        0
    );
    let mut bytes = vec![1; 4096];
    d.as_ref().read(at, &mut bytes).unwrap();
    assert!(
        bytes.iter().all(|&b| b == 0),
        "as Linux has it for anonymous memory"
    );
    d.reset().unwrap();
    check(&d, "after that");
}

#[test]
fn new_domains_start_from_an_image_in_any_window() {
    let snapshot = Snapshot::new(make, init).unwrap();
    let (bytes, moved) = snapshot.size();
    // Two words for each node's links, and a few more.
    assert!(
        bytes > 300_000 && (900..1100).contains(&moved),
        "{bytes} bytes, {moved} words"
    );
    let all: Vec<Domain> = (0..20)
        .map(|_| snapshot.instantiate(imports()).unwrap())
        .collect();
    for (i, d) in all.iter().enumerate() {
        check(d, &format!("domain {i}"));
        call(
            d,
            "push",
            &[d.as_ref().alloc(64, 16).unwrap(), 100_000 + i as u64],
        )
        .unwrap();
    }
    for (i, d) in all.iter().enumerate() {
        assert_eq!(call(d, "sum", &[]).unwrap(), 899 * 900 / 2 + 100_000 + i as u64);
        for round in 0..6 {
            spoil(d, round);
            d.reset().unwrap();
            check(d, &format!("domain {i}, round {round}"));
        }
    }
    // What it cannot reach is in the snapshot, too.
    let d = &all[7];
    let hidden = *contents(d)
        .keys()
        .rfind(|at| (0x7000_0000..0xA000_0000).contains(*at))
        .unwrap();
    let at = d.as_ref().base() + hidden - 12_288;
    assert_eq!(memory(d, libc::SYS_mprotect, [at, 8192, 1, 0, 0, 0]), 0);
    let mut bytes = vec![0; 8192];
    d.as_ref().read(at, &mut bytes).unwrap();
    assert!(bytes.iter().all(|&b| b == 0x77));
}

#[test]
fn domains_of_an_image_share_what_they_do_not_write() {
    let snapshot = Snapshot::new(make, |d| {
        let given = d.as_ref().alloc(4 << 20, 16).expect("memory");
        d.as_ref().write(given, &vec![0x5A; 4 << 20]).expect("memory");
        init(d)
    })
    .unwrap();
    let all: Vec<Domain> = (0..8).map(|_| snapshot.instantiate(imports()).unwrap()).collect();
    for d in &all {
        check(d, "shared");
        let base = d.as_ref().base();
        let own: u64 = std::fs::read_to_string("/proc/self/smaps")
            .unwrap()
            .lines()
            .scan(false, |inside, line| {
                if let Some((start, _)) = line.split_once('-')
                    && let Ok(start) = u64::from_str_radix(start, 16)
                {
                    *inside = (base..base + (1 << 32)).contains(&start);
                }
                let kilobytes = line.strip_prefix("Anonymous:").filter(|_| *inside);
                Some(kilobytes.map_or(0, |k| k.trim().trim_end_matches(" kB").parse::<u64>().unwrap()))
            })
            .sum();
        assert!(
            own < 300,
            "{own} KiB of its own, of a snapshot of more than 4 MiB"
        );
    }
}

#[test]
fn what_depends_on_the_address_or_on_chance_is_refused() {
    let differing = |e: SnapshotError| match e {
        SnapshotError::Differs { symbol, .. } => symbol,
        other => panic!("{other}"),
    };
    let e = Snapshot::new(make, |d| init(d).and_then(|()| call(d, "mix", &[]).map(drop))).unwrap_err();
    assert!(e.to_string().contains("in mixed"), "{e}");
    assert_eq!(differing(e).as_deref(), Some("mixed"));
    let runs = AtomicU64::new(0);
    let e = Snapshot::new(make, |d| {
        call(d, "keep", &[runs.fetch_add(1, Ordering::Relaxed)]).map(drop)
    })
    .unwrap_err();
    assert_eq!(differing(e).as_deref(), Some("mixed"));
    let e = Snapshot::new(make, |d| {
        let len = 1000 + runs.fetch_add(1, Ordering::Relaxed) * 100_000;
        d.as_ref().alloc(len, 16).map(drop)
    })
    .unwrap_err();
    assert!(matches!(e, SnapshotError::Shape { .. }), "{e}");
    let e = Snapshot::new(make, |_| Err::<(), _>("no reason")).unwrap_err();
    assert!(
        matches!(&e, SnapshotError::Init(why) if why.to_string() == "no reason"),
        "{e}"
    );
}

#[test]
fn what_no_image_can_hold_is_refused_and_changes_nothing() {
    let d = make().unwrap();
    init(&d).unwrap();
    // Rights to regions.
    let region = Region::new(4096).unwrap();
    region
        .give(Actor::Host, Recipient::Domain(d.as_ref()), Rights::Read)
        .unwrap();
    assert!(matches!(d.checkpoint(), Err(SnapshotError::Regions)));
    region
        .give(Actor::Host, Recipient::Domain(d.as_ref()), Rights::None)
        .unwrap();
    // A second thread.
    std::thread::scope(|s| {
        s.spawn(|| call(&d, "sum", &[]).unwrap()).join().unwrap();
    });
    assert!(matches!(d.checkpoint(), Err(SnapshotError::Lanes { count: 2 })));
    check(&d, "still the same");
    // A fault.
    let d = make().unwrap();
    assert!(call(&d, "crash", &[]).is_err());
    assert!(matches!(d.checkpoint(), Err(SnapshotError::Faulted)));
    assert!(matches!(call(&d, "sum", &[]), Err(CallError::Faulted { .. })));
    d.reset().unwrap();
    assert_eq!(call(&d, "times_constructed", &[]).unwrap(), 1);
    // A call in progress.
    let slot: Arc<OnceLock<Domain>> = Arc::default();
    let inner = slot.clone();
    let busy = Imports::new().closure("host_enter", move |f| {
        let refused = inner.get().unwrap().checkpoint();
        f.result[0] = u64::from(matches!(
            refused,
            Err(SnapshotError::Domain(DomainError::Busy { lanes: 1 }))
        ));
        Ok(())
    });
    let d = Domain::new(&[module()], busy, &DomainOptions::default()).unwrap();
    assert!(slot.set(d.clone()).is_ok());
    assert_eq!(call(&d, "inside", &[0]).unwrap(), 1);
    // Other imports than the snapshot was made with.
    let snapshot = Snapshot::new(make, init).unwrap();
    assert!(matches!(
        snapshot.instantiate(Imports::new()),
        Err(SnapshotError::Domain(DomainError::Unresolved { .. }))
    ));
}

/// The file behind a snapshot cannot be written, whatever a domain does to its own copy.
#[test]
fn nothing_of_one_domain_gets_into_the_image() {
    let snapshot = Snapshot::new(make, init).unwrap();
    std::thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| {
                let d = snapshot.instantiate(imports()).unwrap();
                for round in 0..30 {
                    check(&d, "its own");
                    spoil(&d, round);
                    d.reset().unwrap();
                }
                spoil(&d, 4);
            });
        }
    });
    check(&snapshot.instantiate(imports()).unwrap(), "a new one");
}

/// A module that knows how snapshots are made leaves words that look like pointers and are none. In a new window they are other words,
/// and nothing else.
#[test]
fn bent_words_are_wrong_values_of_the_modules_own() {
    let upper = |d: &Domain| d.as_ref().base() >> 32;
    let own = |d: &Domain, name: &str| d.symbol(name).expect("an object");
    // Of each: what both runs leave in `mixed`.
    type Bent = fn(u64) -> u64;
    let values: [Bent; 5] = [
        |base| base | base << 32,
        |base| base << 32 | 0xFFFF_FFFF,
        |base| base << 32 | 0x0002_0008,
        |base| base,
        |base| base << 32 | 0x4000_0001,
    ];
    for value in values {
        let snapshot = Snapshot::new(make, |d| {
            init(d)?;
            call(d, "keep", &[value(upper(d))])?;
            // A list goes on where it says.
            let node = d.as_ref().alloc(64, 16).expect("memory");
            call(d, "push", &[node, 5])?;
            d.as_ref()
                .write(node, &value(upper(d)).to_le_bytes())
                .expect("memory");
            Ok::<(), CallError>(())
        })
        .unwrap();
        let (mine, neighbour) = (snapshot.instantiate(imports()).unwrap(), make().unwrap());
        init(&neighbour).unwrap();
        let mut word = [0; 8];
        mine.as_ref().read(own(&mine, "mixed"), &mut word).unwrap();
        assert_eq!(
            u64::from_le_bytes(word),
            value(upper(&mine)),
            "moved as a pointer would be"
        );
        // It follows them: to a fault, or through its own memory until its time is up.
        mine.set_time_limit(Some(std::time::Duration::from_millis(10)));
        let walked = call(&mine, "sum", &[]);
        assert!(matches!(walked, Ok(_) | Err(CallError::Fault(_))), "{walked:?}");
        check(&neighbour, "a neighbour");
        mine.set_time_limit(None);
        mine.reset().unwrap();
        assert_eq!(
            call(&mine, "apply", &[21]).unwrap(),
            42,
            "its text is the module's"
        );
        assert_eq!(mine.as_ref().base() % (1 << 32), 0);
    }
    // One that no two windows' bases explain is refused: they are less than 2²⁰ windows apart.
    let count = AtomicU64::new(0);
    let refused = Snapshot::new(make, |d| {
        let more = count.fetch_add(1 << 20, Ordering::Relaxed);
        call(d, "keep", &[(upper(d) + more) << 32]).map(drop)
    });
    assert!(
        matches!(refused, Err(SnapshotError::Differs { .. })),
        "{refused:?}"
    );
}
