//! Files whose author wants loading them to take for ever, or all memory: bounds hold whatever a file says.

mod support;

use ringfence_isa::identifier;
use ringfence_runtime::{
    Bound, Domain, DomainError, DomainOptions, Exceeded, Imports, LoadError, LoadOptions, MemoryError, Module,
};
use std::os::unix::ffi::OsStrExt;
use support::elf::{File, LOAD, NOTE, READ, Segment, Symbol, WRITE};
use support::in_child;
use support::meter::{Meter, peak};

#[global_allocator]
static METER: Meter = Meter;

/// Loads a file, and checks that it took no more memory than the documentation says.
fn load(file: &[u8]) -> Result<Module, LoadError> {
    let (loaded, bytes) = peak(|| Module::from_bytes("bounds.rf", file, &LoadOptions::default()));
    let limit = (64 << 20) + 8 * file.len() as u64;
    assert!(bytes <= limit, "{bytes} bytes for a file of {}", file.len());
    loaded
}

fn malformed(file: &File, words: &str) {
    match load(&file.bytes()) {
        Err(LoadError::Malformed { reason, .. }) if reason.contains(words) => {}
        other => panic!("{words}: {other:?}"),
    }
}

fn small() -> File {
    File {
        symbols: vec![Symbol::object(1, 0x2000)],
        strings: b"\0variable\0".to_vec(),
        ..File::default()
    }
}

#[test]
fn the_plain_file_is_a_module() {
    let file = small();
    let module = load(&file.bytes()).unwrap();
    assert_eq!(module.exports().len(), 1);
    assert_eq!(module.exports()[0].name, "variable");
    Domain::new(&[module], Imports::new(), &DomainOptions::default()).unwrap();
}

#[test]
fn symbols_that_share_a_long_name_cost_what_the_file_has() {
    // One string for all: 50,000 copies of it would be 800 MB.
    let mut file = small();
    file.strings = vec![b'n'; 16_000];
    file.strings[0] = 0;
    file.strings.push(0);
    file.symbols = (0..50_000).map(|i| Symbol::object(1 + i % 8, 0x2000)).collect();
    match load(&file.bytes()) {
        Err(LoadError::Exceeded {
            source: Exceeded {
                bound: Bound::Steps, ..
            },
            ..
        }) => {}
        other => panic!("{other:?}"),
    }
    // Names that no one would write.
    file.strings = vec![b'n'; 1 << 20];
    file.strings.push(0);
    malformed(&file, "longer than 16384 bytes");
    // The last name has no end.
    file.strings = b"\0name".to_vec();
    file.symbols.truncate(1);
    malformed(&file, "no end");
    file.strings = b"\0\xFF\xFE\0".to_vec();
    malformed(&file, "UTF-8");
}

#[test]
fn names_of_exports_are_counted() {
    // 300 MB of names would fit the steps of a large file, were it not for the memory.
    let mut file = small();
    file.data = 40 << 20;
    file.strings = vec![b'n'; 16_000];
    file.strings[0] = 0;
    file.strings.push(0);
    file.symbols = (0..11_000).map(|i| Symbol::object(1 + i % 8, 0x2000)).collect();
    match load(&file.bytes()) {
        Ok(module) => assert_eq!(module.exports().len(), 11_000),
        Err(LoadError::Exceeded { .. }) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn many_small_symbols_and_relocations_load() {
    let mut file = small();
    file.data = 8 * 100_000;
    file.strings = vec![0];
    for i in 0..100_000u32 {
        let name = file.strings.len() as u32;
        file.strings.extend(format!("s{i}\0").bytes());
        file.symbols.push(Symbol::object(name, 0x2000));
        file.relocations
            .push([file.data_start() + 8 * u64::from(i), 8, i64::from(i) as u64]);
    }
    let module = load(&file.bytes()).unwrap();
    assert_eq!(module.exports().len(), 100_001);
    let ((), bytes) = peak(|| {
        Domain::new(
            std::slice::from_ref(&module),
            Imports::new(),
            &DomainOptions::default(),
        )
        .map(drop)
        .unwrap();
    });
    assert!(bytes < 8 << 20, "{bytes}");
}

#[test]
fn zeroes_are_not_touched() {
    in_child("zeroes_are_not_touched", || {
        let resident = || {
            let status = std::fs::read_to_string("/proc/self/statm").unwrap();
            status.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
        };
        let mut file = small();
        file.zeroes = 900 << 20;
        let file = file.bytes();
        assert!(file.len() < 64 << 10);
        let before = resident();
        let module = load(&file).unwrap();
        let options = DomainOptions::default();
        let domain = Domain::new(&[module], Imports::new(), &options).unwrap();
        domain.reset().unwrap();
        let after = resident();
        assert!(after < before + (8 << 20), "{before} {after}");
        drop(domain);
    });
}

#[test]
fn data_counts_as_memory() {
    let mut file = small();
    file.zeroes = 900 << 20;
    let module = load(&file.bytes()).unwrap();
    let mut options = DomainOptions::default();
    options.memory_limit = 1 << 20;
    match Domain::new(std::slice::from_ref(&module), Imports::new(), &options) {
        Err(DomainError::Memory(MemoryError::Limit { wanted, limit, .. })) => {
            assert!(wanted >= 900 << 20);
            assert_eq!(limit, 1 << 20);
        }
        other => panic!("{other:?}"),
    }
    options.memory_limit = 901 << 20;
    let domain = Domain::new(&[module], Imports::new(), &options).unwrap();
    let before = domain.usage().memory;
    assert!(before >= 900 << 20, "{before}");
    domain.as_ref().alloc(64 << 10, 16).unwrap();
    for _ in 0..2 {
        let more = domain.as_ref().alloc(2 << 20, 16);
        assert!(matches!(more, Err(MemoryError::Limit { .. })), "{more:?}");
        domain.reset().unwrap();
        assert_eq!(domain.usage().memory, before);
    }
}

#[test]
fn memory_is_not_executable_whatever_the_personality() {
    const READ_IMPLIES_EXEC: u64 = 0x0040_0000;
    in_child("memory_is_not_executable_whatever_the_personality", || {
        let module = load(&small().bytes()).unwrap();
        let domain = Domain::new(&[module], Imports::new(), &DomainOptions::default()).unwrap();
        // SAFETY: changes how the kernel maps memory for this thread.
        let before = unsafe { libc::personality(READ_IMPLIES_EXEC) };
        let allocated = domain.as_ref().alloc(64 << 10, 16);
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let reset = domain.reset();
        // SAFETY: as above.
        unsafe { libc::personality(before as u64) };
        assert!(allocated.is_err(), "{allocated:?}");
        assert!(reset.is_ok(), "{reset:?}");
        assert!(!maps.contains(" rwxp "), "{maps}");
        domain.as_ref().alloc(64 << 10, 16).unwrap();
    });
}

#[test]
fn zeroes_are_not_relocated() {
    // A page of memory, and a copy of it, for each 24 bytes of file.
    let mut file = small();
    file.zeroes = 900 << 20;
    let zeroes = file.data_start() + 0x1000;
    file.relocations = (0..1000).map(|i| [zeroes + i * 4096, 8, 0]).collect();
    malformed(&file, "relocation outside the data segments' part of the file");
}

#[test]
fn segments_are_few_and_share_nothing() {
    let mut file = small();
    file.more = (0..30)
        .map(|i| Segment(LOAD, READ | WRITE, (1 << 20) + i * 4096, 0, 4096))
        .collect();
    // They are zeroes only, at the place in the file that the address demands.
    file.data = 2 << 20;
    malformed(&file, "more than 32 loadable segments");
    file.more = (1..20).map(|_| Segment(NOTE, READ, 0, 4096, 4096)).collect();
    load(&file.bytes()).unwrap();
    let mut bytes = small().bytes();
    bytes[56..58].copy_from_slice(&129u16.to_le_bytes());
    match load(&bytes) {
        Err(LoadError::Malformed { reason, .. }) => {
            assert!(reason.contains("129 program headers"), "{reason}")
        }
        other => panic!("{other:?}"),
    }
    // The same bytes at two addresses.
    let mut file = small();
    file.data = 64 << 10;
    let whole = file.bytes();
    let mut twice = whole.clone();
    let len = whole.len() as u64;
    // The last of the loadable segments, put behind the others, now has the whole file.
    let header = 64 + 3 * 56;
    for (at, value) in [(8, 0), (16, 1 << 20), (24, 1 << 20), (32, len), (40, len)] {
        twice[header + at..header + at + 8].copy_from_slice(&u64::to_le_bytes(value));
    }
    match load(&twice) {
        Err(LoadError::Malformed { reason, .. }) => assert!(reason.contains("share bytes"), "{reason}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_module_takes_its_share_of_label_numbers() {
    let marker = |n: usize| {
        let number = identifier::label(identifier::LABEL_MIN + n as u16).unwrap();
        let mut bytes = identifier::MARKER_HEAD.to_vec();
        bytes.extend(number.to_le_bytes());
        bytes
    };
    let mut file = small();
    file.text = (0..16_385).flat_map(marker).collect();
    match load(&file.bytes()) {
        Err(LoadError::Labels { wanted, limit, .. }) => assert_eq!((wanted, limit), (16_385, 16_384)),
        other => panic!("{other:?}"),
    }
    // Whatever else is wrong with it, the host can give it more.
    let mut options = LoadOptions::default();
    options.max_labels = 20_000;
    let loaded = Module::from_bytes("bounds.rf", &file.bytes(), &options);
    assert!(!matches!(loaded, Err(LoadError::Labels { .. })), "{loaded:?}");
}

/// The loader moves identifiers to numbers of its own by their bytes alone, and so changes a constant that looks like one: the
/// verifier sees what came of it.
#[test]
fn a_label_in_a_constant_is_refused() {
    let label = identifier::marker(identifier::label(7).unwrap());
    let nops = [0x90; 6];
    let constant = [&nops[..], &[0x48, 0xB8], &label, &[0xC3]].concat(); // movabs $LABEL, %rax
    let harmless = [&nops[..], &[0x48, 0xB8], &[0x90; 8], &[0xC3]].concat();
    for (text, refused) in [(constant, true), (harmless, false)] {
        let mut file = small();
        file.text = text;
        match load(&file.bytes()) {
            Err(LoadError::Rejected { reason, .. }) if refused => {
                assert!(reason.contains("identifier"), "{reason}");
            }
            Ok(_) if !refused => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn large_files_are_not_read() {
    let path = support::unused_path("sparse");
    let file = std::fs::File::create(&path).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &small().bytes(), 0).unwrap();
    file.set_len(3 << 30).unwrap();
    let (loaded, bytes) = peak(|| Module::open(&path, &LoadOptions::default()));
    let _ = std::fs::remove_file(&path);
    match loaded {
        Err(LoadError::TooLarge { limit, .. }) => assert_eq!(limit, 256 << 20),
        other => panic!("{other:?}"),
    }
    assert!(bytes < 1 << 20, "{bytes}");
    let mut options = LoadOptions::default();
    options.max_file_size = 100;
    let small = Module::from_bytes("bounds.rf", &small().bytes(), &options);
    assert!(matches!(small, Err(LoadError::TooLarge { limit: 100, .. })));
}

#[test]
fn devices_and_pipes_are_not_read() {
    let pipe = support::unused_path("pipe");
    let name = std::ffi::CString::new(pipe.as_os_str().as_bytes()).unwrap();
    // SAFETY: the name is a C string.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    for path in [
        std::path::Path::new("/dev/zero"),
        &pipe,
        std::path::Path::new("/tmp"),
    ] {
        match Module::open(path, &LoadOptions::default()) {
            Err(LoadError::Read { source, .. }) => {
                assert_eq!(source.kind(), std::io::ErrorKind::InvalidInput, "{path:?}");
            }
            other => panic!("{path:?}: {other:?}"),
        }
    }
    let _ = std::fs::remove_file(pipe);
}
