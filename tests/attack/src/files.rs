//! Module files bent out of shape: the loader must refuse them or load them, and what it loads must stay in its window.

use crate::fuzz::{Watch, imports_for};
use crate::host;
use crate::rng::Rng;
use ringfence_runtime::{Domain, DomainOptions, ExportKind, LoadOptions, Module, Signature};
use std::time::{Duration, Instant};

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Files made.
    pub files: u64,
    /// Accepted by the loader (verifier included).
    pub loaded: u64,
    /// Of these: with changed code.
    pub changed_code: u64,
    /// Made a domain.
    pub domains: u64,
    /// Calls of their functions.
    pub calls: u64,
    /// Calls that returned.
    pub returned: u64,
    /// Anything wrong; must be empty.
    pub violations: Vec<String>,
}

/// Bends the files `seeds` until the limit is reached. A panic of the loader is a violation; a crash is one, too.
#[must_use]
pub fn run(seeds: &[Vec<u8>], seed: u64, limit: Duration, most: u64) -> Outcome {
    let mut rng = Rng::new(seed);
    let mut outcome = Outcome::default();
    let end = Instant::now() + limit;
    let watch = Watch::new();
    while Instant::now() < end && outcome.files < most && outcome.violations.is_empty() && !seeds.is_empty() {
        let original = &seeds[rng.below(seeds.len() as u64) as usize];
        let mut file = original.clone();
        let code = bend(&mut file, &mut rng);
        outcome.files += 1;
        let turn = std::panic::AssertUnwindSafe(|| attempt(&file, code, &mut rng, &watch, &mut outcome));
        if std::panic::catch_unwind(turn).is_err() {
            let at: Vec<_> = (0..file.len())
                .filter(|&i| original.get(i) != file.get(i))
                .take(8)
                .collect();
            outcome
                .violations
                .push(format!("panic; file {} differs at {at:x?}", outcome.files));
        }
    }
    outcome
}

/// Tries files as they are.
#[must_use]
pub fn replay(files: &[Vec<u8>]) -> Outcome {
    let mut rng = Rng::new(1);
    let mut outcome = Outcome::default();
    let watch = Watch::new();
    for (n, file) in files.iter().enumerate() {
        outcome.files += 1;
        let turn = std::panic::AssertUnwindSafe(|| attempt(file, false, &mut rng, &watch, &mut outcome));
        if std::panic::catch_unwind(turn).is_err() {
            outcome.violations.push(format!("panic; file {n}"));
        }
    }
    outcome
}

/// Some bytes as a number, 0 beyond the end. Places come from files that are bent already: they may be anything.
fn word(file: &[u8], at: usize, len: usize) -> u64 {
    let mut bytes = [0; 8];
    if let Some(b) = file.get(at..at.saturating_add(len)) {
        bytes[..len].copy_from_slice(b);
    }
    u64::from_le_bytes(bytes)
}

fn field(file: &[u8], header: usize, offset: usize, len: usize) -> u64 {
    word(file, header.saturating_add(offset), len)
}

/// Where the pieces of the file are that its headers name.
fn places(file: &[u8]) -> Vec<(usize, usize)> {
    let mut places = vec![(0, 64)];
    let (headers, count) = (word(file, 32, 8) as usize, word(file, 56, 2) as usize);
    places.push((headers, count * 56));
    for n in 0..count.min(32) {
        let at = headers.saturating_add(56 * n);
        // Dynamic section, notes, thread-local template.
        if matches!(word(file, at, 4), 2 | 4 | 7) {
            places.push((field(file, at, 8, 8) as usize, field(file, at, 32, 8) as usize));
        }
    }
    let (sections, count) = (word(file, 40, 8) as usize, word(file, 60, 2) as usize);
    for n in 0..count.min(64) {
        let at = sections.saturating_add(64 * n);
        // Dynamic symbols, strings and relocations.
        if matches!(field(file, at, 4, 4), 3 | 4 | 11) {
            places.push((field(file, at, 24, 8) as usize, field(file, at, 32, 8) as usize));
        }
    }
    places.push((sections, count * 64));
    places.retain(|p| p.1 > 0 && p.0.checked_add(p.1).is_some_and(|end| end <= file.len()));
    places
}

/// The executable segment.
fn text(file: &[u8]) -> Option<(usize, usize)> {
    let (headers, count) = (word(file, 32, 8) as usize, word(file, 56, 2) as usize);
    (0..count.min(32))
        .map(|n| headers.saturating_add(56 * n))
        .find_map(|at| {
            let found = word(file, at, 4) == 1 && field(file, at, 4, 4) & 1 != 0;
            let segment = (field(file, at, 8, 8) as usize, field(file, at, 32, 8) as usize);
            (found && segment.0 < file.len() && segment.1 <= file.len()).then_some(segment)
        })
}

/// Changes a few bytes. Whether they are code.
fn bend(file: &mut Vec<u8>, rng: &mut Rng) -> bool {
    let code = rng.one_in(2);
    let places = if code {
        text(file).into_iter().collect()
    } else {
        places(file)
    };
    if places.is_empty() {
        return false;
    }
    for _ in 0..=rng.below(3) {
        let (start, len) = places[rng.below(places.len() as u64) as usize];
        let at = start + rng.below(len.max(1) as u64) as usize;
        if at >= file.len() {
            continue;
        }
        match rng.below(6) {
            0 => file[at] ^= 1 << rng.below(8),
            1 => file[at] = rng.bits() as u8,
            2 => file[at] = rng.pick(&[0, 0xFF, 0x7F, 0x80, 1, 0x65, 0x67, 0x41]),
            // Whole words.
            3 | 4 if !code => {
                let at = start + (at - start) / 8 * 8;
                let value = match rng.below(5) {
                    0 => u64::MAX - rng.below(64),
                    1 => 1 << rng.below(64),
                    2 => rng.below(1 << 24),
                    3 => word(file, at, 8).wrapping_add(rng.below(4096)).wrapping_sub(2048),
                    _ => word(file, start + rng.below((len / 8).max(1) as u64) as usize * 8, 8),
                };
                if let Some(bytes) = file.get_mut(at..at + 8) {
                    bytes.copy_from_slice(&value.to_le_bytes());
                }
            }
            _ => file[at] = file[at].wrapping_add(rng.pick(&[1, 0xFF, 8, 0x40])),
        }
    }
    if !code && rng.one_in(30) {
        file.truncate(rng.below(file.len() as u64) as usize);
    }
    code
}

fn attempt(file: &[u8], code: bool, rng: &mut Rng, watch: &Watch, outcome: &mut Outcome) {
    let Ok(module) = Module::from_bytes("bent", file, &LoadOptions::default()) else {
        return;
    };
    outcome.loaded += 1;
    outcome.changed_code += u64::from(code);
    let mut options = DomainOptions::default();
    options.time_limit = Some(Duration::from_millis(20));
    options.memory_limit = 16 << 20;
    let Ok(domain) = Domain::new(std::slice::from_ref(&module), imports_for(&module), &options) else {
        return;
    };
    outcome.domains += 1;
    let base = domain.as_ref().base();
    let functions: Vec<_> = module
        .exports()
        .iter()
        .filter(|e| e.kind == ExportKind::Function)
        .collect();
    for _ in 0..3.min(functions.len()) {
        let name = &functions[rng.below(functions.len() as u64) as usize].name;
        let Ok(entry) = domain.entry(name) else { continue };
        let thunk = entry.thunk(Signature {
            floats: 0,
            stack: 0,
            x87_results: 0,
            ..Signature::UNKNOWN
        });
        let arguments = std::array::from_fn(|_| match rng.below(3) {
            0 => rng.bits(),
            1 => rng.bits() & 0xFF,
            _ => base + 0x80_0000 + (rng.bits() & 0xFFFF),
        });
        // SAFETY: a thunk that takes six integers.
        let state = unsafe { host::call(thunk, &arguments) };
        outcome.calls += 1;
        let (returned, problem) = watch.judge(&domain, &state);
        outcome.returned += u64::from(returned);
        if let Some(problem) = problem {
            outcome.violations.push(format!("{name}: {problem}"));
        }
    }
}
