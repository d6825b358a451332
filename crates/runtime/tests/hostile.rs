//! Files that are no modules, or not quite: typed errors, and the process as before.

mod support;

use ringfence_runtime::{Call, Domain, DomainOptions, LoadError, LoadOptions, Module};
use support::{bytes, imports};

fn load(bytes: &[u8]) -> Result<Module, LoadError> {
    Module::from_bytes("hostile.rf", bytes, &LoadOptions::default())
}

/// A small generator, so that failures can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

#[test]
fn other_files_are_no_modules() {
    for (what, bytes) in [
        ("empty", Vec::new()),
        ("text", b"#!/bin/sh\nexit 0\n".to_vec()),
        ("magic only", b"\x7fELF".to_vec()),
        ("this program", std::fs::read("/proc/self/exe").unwrap()),
    ] {
        let e = load(&bytes).unwrap_err();
        assert!(
            matches!(e, LoadError::NotModule { .. } | LoadError::Malformed { .. }),
            "{what}: {e}"
        );
    }
    let missing = Module::open("/nonexistent.rf", &LoadOptions::default()).unwrap_err();
    assert!(matches!(missing, LoadError::Read { .. }), "{missing}");
    let mut other = bytes().to_vec();
    other[18] = 183; // AArch64
    assert!(matches!(load(&other), Err(LoadError::NotModule { .. })));
    let mut other = bytes().to_vec();
    other[16] = 2; // ET_EXEC
    assert!(matches!(load(&other), Err(LoadError::NotModule { .. })));
}

#[test]
fn notes_are_checked() {
    let note = bytes()
        .windows(10)
        .position(|w| w == b"Ringfence\0")
        .expect("the note");
    let descriptor = note + 12;
    let with = |at: usize, value: u32| {
        let mut changed = bytes().to_vec();
        changed[descriptor + at..descriptor + at + 4].copy_from_slice(&value.to_le_bytes());
        load(&changed)
    };
    assert!(matches!(
        with(0, 2),
        Err(LoadError::Version {
            found: 2,
            expected: 1,
            ..
        })
    ));
    assert!(matches!(with(4, 1), Err(LoadError::Integrity { .. })));
    assert!(matches!(
        with(8, 1 << 31),
        Err(LoadError::Features {
            missing: 0x8000_0000,
            ..
        })
    ));
}

#[test]
fn truncated_files_are_refused() {
    let whole = bytes();
    for len in (0..whole.len()).step_by(97) {
        // What is cut off at the end may be debug information only.
        if let Ok(module) = load(&whole[..len]) {
            assert!(module.exports().len() < 100);
        }
    }
}

#[test]
fn mangled_files_do_no_harm() {
    let whole = bytes();
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let (mut loaded, mut ran) = (0, 0);
    for round in 0..1500 {
        let mut file = whole.to_vec();
        for _ in 0..=random.below(4) {
            // Half of the changes hit the headers and tables at the beginning.
            let limit = if random.below(2) == 0 {
                0x1000.min(file.len())
            } else {
                file.len()
            };
            let at = random.below(limit);
            match random.below(3) {
                0 => file[at] ^= 1 << random.below(8),
                1 => file[at] = [0, 1, 0x7F, 0x80, 0xFF][random.below(5)],
                _ => {
                    let end = (at + 8).min(file.len());
                    let value = [0u64, 1, 1 << 32, u64::MAX, u64::MAX - 7, 1 << 63][random.below(6)];
                    file[at..end].copy_from_slice(&value.to_le_bytes()[..end - at]);
                }
            }
        }
        let Ok(module) = load(&file) else { continue };
        loaded += 1;
        // Whatever it is now, it stays in its window.
        let mut options = DomainOptions::default();
        options.time_limit = Some(std::time::Duration::from_millis(50));
        let Ok(domain) = Domain::new(&[module], imports(), &options) else {
            continue;
        };
        if let Ok(entry) = domain.entry("add")
            && round % 4 == 0
        {
            let _ = entry.call(&mut Call::ints(&[1, 2]));
            ran += 1;
        }
    }
    assert!(loaded > 100 && ran > 10, "{loaded} loaded, {ran} ran");
}
