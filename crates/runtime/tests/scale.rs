//! As many domains as the system allows: what each costs, and what happens when there is no room for another.

mod support;

use ringfence_isa::{PAGE, identifier, window};
use ringfence_runtime::{Domain, DomainError, DomainOptions, HostError, Imports, LoadOptions, Module};
use support::elf::File;
use support::{build, call, in_child};

fn field(file: &str, name: &str) -> u64 {
    let text = std::fs::read_to_string(file).unwrap();
    let line = text.lines().find(|l| l.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

/// Memory and page tables, in bytes. Pages that many domains share count once for all of them.
fn memory() -> u64 {
    field("/proc/self/smaps_rollup", "Pss:") + field("/proc/self/status", "VmPTE:")
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

/// What an idle domain of [`big`] takes: header, stubs and text, what is only read, data, and what is inaccessible.
const EACH: usize = 5;

/// Bytes that an idle domain takes at most, the host's own for it included.
const BYTES: u64 = 30 << 10;

/// What the runtime leaves to the host.
const HOST: u64 = 4096;

/// 20,000, or as many as fit under `vm.max_map_count`. Each is called and has its own data.
#[test]
#[cfg_attr(
    ringfence_tsan,
    ignore = "ThreadSanitizer's own memory for each domain is counted"
)]
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
        assert!(each <= BYTES, "{each} bytes for each idle domain");
        assert!(maps < EACH as f64 + 0.1, "{maps} mappings for each idle domain");
        if ended.is_some() {
            // Room for the stacks of one thread.
            domains.truncate(domains.len() - 2);
        }
        for (i, d) in domains.iter().enumerate() {
            let at = i as u64 & 0xFFF;
            // The constructor's 4, a letter of `names`, and what stands at the start of constants and variables.
            let expected = at + 4 + u64::from(b'a') + at % 3 + 2 * u64::from(at == 0);
            assert_eq!(call(d, "touch", &[at]).unwrap(), expected);
            d.trim().unwrap();
        }
        for (i, d) in domains.iter().enumerate() {
            let seen = [0, 1, 0xFFE].map(|n| call(d, "touched", &[(i as u64 + n) & 0xFFF]).unwrap());
            assert_eq!(seen, [1, 0, 0], "domain {i} sees what it wrote, and nothing else");
            d.trim().unwrap();
        }
        let each = memory().saturating_sub(memory_before) / domains.len() as u64;
        println!("called and trimmed: {each} bytes for each");
        assert!(each < 40 << 10, "{each} bytes for each domain after calls");
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
        // All of it is used but for what is left to the host: the last one's constructor had no room for its stacks.
        let fit = (limit - HOST) as usize / EACH;
        assert!(made + 4 >= fit, "{made} of {fit}");
        // There is room again when some go, and not without end.
        domains.truncate(domains.len() - 10);
        domains.extend((0..10).map(|_| {
            let d = new().expect("room again");
            d.trim().unwrap();
            d
        }));
        while let Ok(d) = new() {
            d.trim().unwrap();
            domains.push(d);
            assert!(domains.len() <= fit);
        }
        domains.truncate(domains.len() - 10);
        domains.push(new().expect("room again"));
    });
}

/// What lies in a window, from its base to the guard above: no hole, no border too few, and nothing both writable and executable.
#[test]
fn a_window_has_no_hole_and_few_mappings() {
    let module = big();
    let new = || {
        Domain::new(
            std::slice::from_ref(&module),
            Imports::new(),
            &DomainOptions::default(),
        )
    };
    let domains = [0; 3].map(|_| new().unwrap());
    for d in &domains {
        d.trim().unwrap();
    }
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    for d in &domains {
        let base = d.as_ref().base();
        let end = base + (1 << 32) + 0x1_0000;
        let (mut at, mut rights) = (base, Vec::new());
        for line in maps.lines() {
            let mut words = line.split_whitespace();
            let (range, mode) = (words.next().unwrap(), &words.next().unwrap()[..3]);
            let (from, to) = range.split_once('-').unwrap();
            let [from, to] = [from, to].map(|n| u64::from_str_radix(n, 16).unwrap());
            if to <= base || from >= end {
                continue;
            }
            assert!(from <= at, "a hole at {at:#x}");
            if at == base {
                assert_eq!((to - base, mode), (0x1_0000, "---"), "the null area");
            }
            if to >= end {
                assert_eq!(mode, "---", "the top and the guard");
                assert!(from < base + (1 << 31));
            }
            at = to;
            rights.push(mode);
        }
        assert!(at >= end, "a hole at {at:#x}");
        assert_eq!(
            rights,
            ["---", "r--", "r-x", "r--", "rw-", "---"],
            "null area, header, stubs and text, tables and constants, data, the rest"
        );
        let mut rest = vec![1; 0xF000];
        d.as_ref().read(base + 0x1_1000, &mut rest).unwrap();
        assert!(
            rest.iter().all(|&b| b == 0),
            "nothing but zeroes behind the header"
        );
    }
}

/// A domain of these modules, with so many functions of the host's.
fn with_imports(modules: &[Module], count: usize) -> Domain {
    let imports = (0..count).fold(Imports::new(), |imports, n| {
        imports.closure(&format!("f{n}"), |_| Ok(()))
    });
    let mut options = DomainOptions::default();
    options.extensible = true;
    Domain::new(modules, imports, &options).unwrap()
}

/// The window's bytes from `from` to where the first image begins.
fn before_the_image(d: &Domain, from: u32) -> Vec<u8> {
    let mut bytes = vec![0; (window::IMAGES - from) as usize];
    d.as_ref()
        .read(d.as_ref().base() + u64::from(from), &mut bytes)
        .unwrap();
    bytes
}

/// Whatever is behind them: nothing, text at the image's start, or a file whose tables come first, as linkers make by themselves.
#[test]
fn stubs_are_the_same_in_front_of_every_text() {
    let text_first = big();
    let tables_first = Module::from_bytes("hand", &File::default().bytes(), &LoadOptions::default()).unwrap();
    let in_page = PAGE as u32 / window::STUB_SIZE - window::STUB_FIRST_IMPORT;
    for (imports, pages) in [(0, 1), (in_page, 1), (in_page + 1, 2), (1000, 8)] {
        let module_lists: [&[Module]; 3] = [
            &[],
            std::slice::from_ref(&text_first),
            std::slice::from_ref(&tables_first),
        ];
        let seen = module_lists.map(|modules| {
            let d = with_imports(modules, imports as usize);
            before_the_image(&d, window::STUBS)
        });
        assert!(seen[0] == seen[1] && seen[1] == seen[2], "{imports} imports");
        let (none, there) = seen[0].split_at(seen[0].len() - pages * PAGE as usize);
        assert!(none.iter().all(|&b| b == 0));
        let marker = identifier::marker(identifier::FUNCTION);
        for (number, stub) in there.rchunks(window::STUB_SIZE as usize).enumerate() {
            assert_eq!(stub[..8], marker, "{number}");
            if number as u32 != window::stub::DISTANCE {
                assert_eq!(stub[10..14], (number as u32).to_le_bytes());
            }
        }
    }
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
    d.checkpoint().unwrap();
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
