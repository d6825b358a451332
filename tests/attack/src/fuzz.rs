//! Programs that the verifier accepts are executed in real domains, and the host looks whether anything of it changed.

use crate::elf::{self, Builder, DATA, DATA_LEN, TEXT};
use crate::host;
use crate::objects::Objects;
use crate::program::{self, Pool, Program};
use crate::rng::Rng;
use ringfence_isa::{Isolation, note, window, words};
use ringfence_runtime::domain::{last_status, take_error};
use ringfence_runtime::{
    Call, CallError, Domain, DomainError, DomainOptions, EndCall, Entry, FaultKind, Imports, LoadOptions,
    Module, Signature,
};
use ringfence_verify::{Image, Rules, Segment, SegmentKind, identifiers, verify};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ops::Range;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What to do, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Where random values start from.
    pub seed: u64,
    /// When to stop at the latest.
    pub limit: Duration,
    /// After how many accepted programs to stop.
    pub programs: u64,
    /// How many encodings to draw for the grammar.
    pub draws: u64,
    /// Programs of the words mode, beside objects that they have rights to.
    pub words: bool,
    /// Prints each seed of a batch before it runs, so that a crash can be replayed.
    pub trace: bool,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Programs made.
    pub made: u64,
    /// Of these: mutated, or with something forbidden in them.
    pub bent: u64,
    /// Accepted by the verifier, and executed.
    pub accepted: u64,
    /// Of these: mutated, or with something forbidden in them.
    pub accepted_bent: u64,
    /// Returned.
    pub returned: u64,
    /// How the others ended.
    pub ends: BTreeMap<&'static str, u64>,
    /// Forms of instructions in executed programs, and in the grammar.
    pub forms: (usize, usize),
    /// Operands through `r14` in accepted programs.
    pub through_r14: u64,
    /// Operands behind the window in accepted programs, and programs of which each was told in advance.
    pub views: (u64, u64),
    /// Calls from domains to host functions.
    pub host_calls: u64,
    /// Anything wrong; must be empty.
    pub violations: Vec<String>,
}

const BATCH: usize = 1500;
const BATCH_BYTES: usize = 0xE_0000;
const MAGIC: u64 = 0x51EC_12E7_51EC_12E7;
const CANARY_WORDS: usize = 4096;

static HOST_CALLS: AtomicU64 = AtomicU64::new(0);
static BAD_HOST_CALL: AtomicU64 = AtomicU64::new(0);
static AGAIN: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static TARGET: AtomicU64 = AtomicU64::new(0);

/// A host function that checks the state it is called in.
extern "C" fn plain(a: u64, b: u64) -> u64 {
    HOST_CALLS.fetch_add(1, Ordering::Relaxed);
    let (mut flags, mut mxcsr): (u64, u32);
    // SAFETY: reads flags and MXCSR.
    unsafe {
        std::arch::asm!("pushfq", "pop {}", out(reg) flags);
        mxcsr = 0;
        std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut mxcsr);
    }
    flags &= 0x4_0400;
    if flags != 0 || mxcsr & !0x3F != 0x1F80 {
        BAD_HOST_CALL.store(flags | 1, Ordering::Relaxed);
    }
    a ^ b
}

/// A host function that calls into the domain again.
extern "C" fn nested(a: u64, b: u64) -> u64 {
    HOST_CALLS.fetch_add(1, Ordering::Relaxed);
    let thunk = AGAIN.load(Ordering::Relaxed);
    let target = TARGET.load(Ordering::Relaxed);
    // SAFETY: a thunk of a live domain.
    let enter: extern "C" fn(u64, u64, u64) -> u64 = unsafe { std::mem::transmute(thunk) };
    enter(target, a, b)
}

/// Runs until a limit is reached or something is wrong.
///
/// # Panics
///
/// If the runtime refuses what it should accept.
#[must_use]
pub fn run(options: Options) -> Outcome {
    let mut rng = Rng::new(options.seed);
    let pool = Pool::new(options.draws, &mut rng);
    let mut outcome = Outcome {
        forms: (0, pool.forms()),
        ..Outcome::default()
    };
    let mut seen = vec![false; pool.forms()];
    let mut objects = options.words.then(Objects::new);
    let end = Instant::now() + options.limit;
    while Instant::now() < end && outcome.accepted < options.programs && outcome.violations.is_empty() {
        let seed = rng.bits();
        if options.trace {
            eprintln!("batch {seed:#x}");
        }
        batch(seed, &pool, &mut objects, &mut outcome, &mut seen, end);
    }
    outcome.forms.0 = seen.iter().filter(|s| **s).count();
    outcome.host_calls = HOST_CALLS.load(Ordering::Relaxed);
    outcome
}

fn segments(text: usize) -> [Segment; 3] {
    [
        Segment {
            start: 0,
            len: 0x1000,
            kind: SegmentKind::ReadOnly,
        },
        Segment {
            start: TEXT,
            len: text as u32,
            kind: SegmentKind::Text,
        },
        Segment {
            start: DATA,
            len: DATA_LEN,
            kind: SegmentKind::Data,
        },
    ]
}

/// Offsets of rejected instructions, or nothing.
fn rejections(text: &[u8], words: bool) -> Vec<u32> {
    let segments = segments(text.len());
    let image = Image {
        text,
        text_address: TEXT,
        segments: &segments,
        image_offset: None,
    };
    let mut rules = Rules::default();
    if words {
        rules.isolation = Isolation::Words;
    }
    match verify(&image, &[TEXT], &rules) {
        Ok(_) => Vec::new(),
        Err(rejected) => rejected
            .rejections
            .iter()
            .map(|r| r.offset.wrapping_sub(TEXT))
            .collect(),
    }
}

/// Whether a marker carries something that is no identifier: the loader takes it for a label that is not numbered yet.
fn stray_marker(text: &[u8]) -> bool {
    let places = identifiers(text, TEXT).unwrap_or_default();
    places
        .iter()
        .any(|p| !ringfence_isa::identifier::is_reserved(p.id))
}

/// The dispatcher, which everything is called through: `rdi` is where to go.
fn dispatcher() -> Vec<u8> {
    use ringfence_isa::{identifier, sequence};
    let mut text = identifier::marker(identifier::FUNCTION).to_vec();
    text.extend([0x41, 0x89, 0xFB]); // mov %edi, %r11d
    while (text.len() + sequence::ID_OFFSET) % 8 == 4 {
        text.push(0x90);
    }
    text.extend(sequence::AND);
    text.extend(sequence::CMP);
    text.extend(identifier::FUNCTION.to_le_bytes());
    text.extend(sequence::CMOV);
    text.extend(sequence::ADD);
    text.extend(sequence::JMP);
    text.resize(48, 0xCC);
    text
}

/// A policy with something to do, but no files.
#[cfg(not(feature = "holes"))]
fn policy() -> std::sync::Arc<ringfence_policy::Monitor> {
    use ringfence_policy::{Captured, Policy, Stream};
    Policy::new()
        .clocks(true)
        .randomness(true)
        .stdin(Stream::Bytes(vec![7; 64]))
        .stdout(Stream::Capture(Captured::default()))
        .stderr(Stream::Null)
        .capture_limit(4096)
        .start()
        .expect("a policy")
}

fn batch(
    seed: u64,
    pool: &Pool,
    objects: &mut Option<Objects>,
    outcome: &mut Outcome,
    seen: &mut [bool],
    end: Instant,
) {
    let words = objects.is_some();
    let mut rng = Rng::new(seed);
    let mut labels = 0u16;
    let mut text = dispatcher();
    let mut programs: Vec<(usize, Program)> = Vec::new();
    let mut tries = 0;
    while programs.len() < BATCH && text.len() < BATCH_BYTES && labels < 60_000 && tries < 20 * BATCH {
        tries += 1;
        let hostility = if rng.one_in(4) { 12 } else { 0 };
        let mut p = program::make(
            pool,
            &mut rng,
            &mut labels,
            hostility,
            objects.as_ref().map(Objects::range),
        );
        while !p.text.len().is_multiple_of(16) {
            p.text.push(0xCC);
        }
        if rng.one_in(2) {
            let from = rng.below(programs.len() as u64 + 1) as usize;
            let other = programs
                .get(from)
                .map_or(&text[..], |(_, other)| &other.text[..])
                .to_vec();
            program::mutate(&mut p, &other, &mut rng);
        }
        outcome.made += 1;
        outcome.bent += u64::from(p.mutated || p.hostile);
        if rejections(&p.text, words).is_empty() && !stray_marker(&p.text) {
            let at = text.len();
            text.extend(&p.text);
            programs.push((at, p));
        } else if !p.mutated && !p.hostile && outcome.violations.is_empty() {
            // The grammar has only what the rules allow (but for the odd displacement that looks like an identifier).
            *outcome.ends.entry("refused though well-made").or_default() += 1;
        }
    }
    // In its place a program may have targets that it did not have alone.
    loop {
        let bad = rejections(&text, words);
        if bad.is_empty() {
            break;
        }
        for at in bad {
            let at = at as usize;
            let after = programs.partition_point(|(start, _)| *start <= at);
            assert!(after > 0, "the dispatcher is refused");
            let (start, p) = programs.remove(after - 1);
            text[start..start + p.text.len()].fill(0xCC);
        }
    }
    execute(text, &programs, objects, &mut rng, outcome, seen, end);
}

fn execute(
    text: Vec<u8>,
    programs: &[(usize, Program)],
    objects: &mut Option<Objects>,
    rng: &mut Rng,
    outcome: &mut Outcome,
    seen: &mut [bool],
    end: Instant,
) {
    let mut builder = Builder {
        text,
        data: vec![0; 0x1_0000],
        exports: vec![("run".into(), 0)],
        imports: vec!["plain".into(), "closure".into(), "nested".into(), "fails".into()],
        flags: if objects.is_some() { note::flag::WORDS } else { 0 },
        ..Builder::default()
    };
    for byte in &mut builder.data[64..] {
        *byte = rng.bits() as u8;
    }
    let file = builder.build();
    let mut load = LoadOptions::default();
    load.allow_words = objects.is_some();
    let module = match Module::from_bytes("fuzz", &file, &load) {
        Ok(module) => module,
        Err(e) => {
            return outcome
                .violations
                .push(format!("the loader refuses what the verifier accepts: {e}"));
        }
    };
    let signature = Signature {
        ints: 2,
        floats: 0,
        stack: 0,
        int_results: 1,
        x87_results: 0,
        ..Signature::UNKNOWN
    };
    // SAFETY: functions of that signature.
    let imports = unsafe {
        Imports::new()
            .plain("plain", plain as *const c_void, signature)
            .plain("nested", nested as *const c_void, signature)
    };
    let imports = imports
        .closure("closure", |frame| {
            frame.result[0] = frame.ints[0].wrapping_add(frame.stack_argument(0).unwrap_or(1));
            Ok(())
        })
        .closure("fails", |_| Err(EndCall::Fail("as it should".into())));
    // With a hole planted, system calls of the process are few, so that others tell of an escape.
    #[cfg(not(feature = "holes"))]
    let imports = imports.policy(policy());
    let imports = match &*objects {
        Some(objects) => imports.arena(objects.arena()),
        None => imports,
    };
    let mut options = DomainOptions::default();
    options.time_limit = Some(Duration::from_millis(20));
    options.memory_limit = 8 << 20;
    options.data_stack = 64 << 10;
    options.control_stack = 64 << 10;
    let domain = Domain::new(&[module], imports, &options).expect("a domain");
    let base = domain.as_ref().base();
    let run = domain.entry("run").expect("the dispatcher");
    let thunk = run.thunk(Signature {
        ints: 6,
        floats: 0,
        stack: 0,
        x87_results: 0,
        ..Signature::UNKNOWN
    });
    AGAIN.store(thunk.cast_mut(), Ordering::Relaxed);

    let mut canary = vec![MAGIC; CANARY_WORDS];
    let canary_at = canary.as_mut_ptr() as u64;
    if let Some(objects) = objects {
        objects.fresh(rng);
        objects.change(&domain, rng);
    }
    let room = objects.as_ref().map_or(window::SIZE, |_| words::SIZE);
    let sides = [base.wrapping_sub(4096), base + room].map(Side::new);
    let idle = host_state();
    let mask = signal_mask();
    // Such windows lie higher than others, and objects hold addresses of the arena.
    let arena = objects.iter().map(Objects::addresses);
    let told: Vec<_> = arena
        .chain([base..base + room, canary_at..canary_at + 1])
        .collect();
    let leaks = Leaks::new(&told);
    // Now and then another thread runs programs of the same domain at the same time, on a lane of its own.
    let other = rng
        .one_in(8)
        .then(|| Other::start(&domain, &run, programs, rng.bits()));
    for (start, p) in programs {
        if Instant::now() > end {
            break;
        }
        let entry = base + u64::from(window::IMAGES + TEXT) + *start as u64;
        let again = programs[rng.below(programs.len() as u64) as usize].0;
        TARGET.store(
            base + u64::from(window::IMAGES + TEXT) + again as u64,
            Ordering::Relaxed,
        );
        let mut arguments = [entry, 0, 0, 0, 0, 0];
        for argument in &mut arguments[1..] {
            *argument = match rng.below(5) {
                0 => rng.bits(),
                1 => rng.bits() & 0xFF,
                2 if objects.is_some() => objects.as_ref().map_or(0, |o| o.somewhere(rng)),
                2 | 3 => canary_at + 8 * rng.below(CANARY_WORDS as u64 - 64),
                _ => base + u64::from(window::IMAGES + DATA) + rng.below(0x1_0000),
            };
        }
        // SAFETY: a thunk that takes six integers.
        let state = unsafe { host::call(thunk, &arguments) };
        outcome.accepted += 1;
        outcome.through_r14 += u64::from(p.through_r14);
        outcome.views.0 += u64::from(p.views);
        outcome.accepted_bent += u64::from(p.mutated || p.hostile);
        for form in &p.forms {
            seen[*form as usize] = true;
        }
        let mut wrong = state.compare(&idle);
        let told = (p.only_known && !p.mutated && other.is_none()).then_some(&p.known[..]);
        outcome.views.1 += u64::from(told.is_some());
        if last_status() == 0 {
            outcome.returned += 1;
            if let (Some(objects), Some(known)) = (&objects, told) {
                wrong.extend(objects.judge(known, None));
            }
            if objects.is_some() && state.results().iter().any(|r| Objects::secret(*r)) {
                wrong.push("a word was read that nobody may read".into());
            }
            if state.results().contains(&MAGIC) {
                wrong.push("host memory was read".into());
            }
            if let Some(address) = state.results().into_iter().find(|r| leaks.told(*r)) {
                wrong.push(format!(
                    "host address {address:#x} in {:#x?}, canary {canary_at:#x}",
                    state.results()
                ));
            }
        } else {
            let error = take_error();
            let (name, problem) = judge(error.as_ref(), base, room);
            if let (Some(objects), Some(known), Some(CallError::Fault(fault))) = (&objects, told, &error) {
                wrong.extend(objects.judge(known, Some(&fault.kind)));
            }
            *outcome.ends.entry(name).or_default() += 1;
            wrong.extend(problem);
            if domain.faulted()
                && let Err(e) = reset(&domain)
            {
                wrong.push(format!("reset: {e}"));
            }
        }
        if let Some(objects) = objects {
            wrong.extend(objects.wrong());
            // An access of another thread's may still come that was allowed before.
            if other.is_none() && rng.one_in(4) {
                objects.change(&domain, rng);
            }
        }
        if signal_mask() != mask {
            wrong.push("signal mask".into());
        }
        if BAD_HOST_CALL.load(Ordering::Relaxed) != 0 {
            wrong.push("host function called with live flags or control".into());
        }
        if !wrong.is_empty() {
            outcome.violations.push(format!(
                "{}: {:02x?} after {arguments:x?}",
                wrong.join("; "),
                p.text
            ));
            break;
        }
    }
    drop(other);
    if canary.iter().any(|word| *word != MAGIC) {
        outcome.violations.push("host memory was written".into());
    }
    if sides.iter().any(|side| !side.intact()) {
        outcome
            .violations
            .push("a page beside the window was written".into());
    }
}

/// As soon as the other thread is out.
fn reset(domain: &Domain) -> Result<(), DomainError> {
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        match domain.reset() {
            Err(DomainError::Busy { .. }) if Instant::now() < end => std::thread::yield_now(),
            other => return other,
        }
    }
}

/// Memory of the host's whose addresses no domain was told.
struct Leaks(Vec<(u64, u64)>);

impl Leaks {
    /// What is in `known` was told, as the window's own addresses are.
    fn new(known: &[Range<u64>]) -> Leaks {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        let ranges = maps.lines().filter_map(|line| {
            let (range, rest) = line.split_once(' ')?;
            let (start, end) = range.split_once('-')?;
            let (start, end) = (hex(start)?, hex(end)?);
            let reserved = rest.starts_with("---");
            let told = known.iter().any(|k| k.start < end && start < k.end);
            (!reserved && !told).then_some((start, end))
        });
        // Windows are below, and small numbers are no addresses.
        Leaks(ranges.filter(|r| r.0 > 0x5000_0000_0000).collect())
    }

    fn told(&self, value: u64) -> bool {
        self.0.iter().any(|(start, end)| (*start..*end).contains(&value))
    }
}

/// A thread that calls programs until it is dropped.
struct Other {
    stop: std::sync::Arc<std::sync::atomic::AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Other {
    fn start(domain: &Domain, run: &Entry, programs: &[(usize, Program)], seed: u64) -> Other {
        let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let base = domain.as_ref().base();
        let places: Vec<u64> = programs
            .iter()
            .map(|(at, _)| base + u64::from(window::IMAGES + TEXT) + *at as u64)
            .collect();
        let (stopped, run) = (stop.clone(), run.clone());
        let thread = std::thread::spawn(move || {
            let mut rng = Rng::new(seed);
            while !stopped.load(Ordering::Relaxed) {
                let place = rng.pick(&places);
                let arguments = [place, rng.bits(), rng.below(256), base + rng.below(1 << 32), 0, 1];
                // A fault is the main thread's to clear away.
                if run.call(&mut Call::ints(&arguments)).is_err() {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        });
        Other {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of its is a violation.
            thread.join().expect("the other thread");
        }
    }
}

/// What kind of end a call had, and what is wrong about it.
fn judge(error: Option<&CallError>, base: u64, room: u64) -> (&'static str, Option<String>) {
    let inside = |address: u64| address.wrapping_sub(base) < room + window::HELD_REACH as u64 + 64;
    match error {
        None => ("no error", Some("a failed call without an error".into())),
        Some(CallError::Exit(_)) => ("exit", None),
        Some(CallError::Fault(fault)) => {
            let name = match &fault.kind {
                FaultKind::BadAccess { address, .. } => {
                    let fine = *address == 0 || inside(*address);
                    let problem = (!fine).then(|| format!("access to {address:#x}"));
                    return ("bad access", problem);
                }
                FaultKind::Denied { .. } => "denied",
                FaultKind::BadTarget => "bad target",
                FaultKind::Division => "division",
                FaultKind::FloatingPoint => "floating point",
                FaultKind::IllegalInstruction => "illegal instruction",
                FaultKind::Trap => "trap",
                FaultKind::Protection => "protection",
                FaultKind::ControlStack => "control stack",
                FaultKind::DataStack => "data stack",
                FaultKind::TimeLimit => "time limit",
                FaultKind::OutOfMemory => "out of memory",
                FaultKind::Abort(_) => "abort",
                FaultKind::Unbound(_) => "unbound",
                FaultKind::OutOfOrder => "out of order",
                FaultKind::Host(_) => "host",
                _ => "other fault",
            };
            let rip = fault.registers.rip;
            let stray =
                rip != 0 && !inside(rip) && matches!(name, "illegal instruction" | "division" | "trap");
            (name, stray.then(|| format!("{name} at {rip:#x}")))
        }
        Some(_) => ("other error", None),
    }
}

extern "C" fn nothing() {}

fn host_state() -> host::State {
    // SAFETY: a function that does nothing.
    unsafe { host::call(nothing as *const c_void, &[0; 6]) }
}

/// The calling thread's signal mask.
#[must_use]
pub fn signal_mask() -> u64 {
    let mut mask = 0u64;
    // SAFETY: reads the mask into eight bytes.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_BLOCK,
            std::ptr::null::<u64>(),
            &raw mut mask,
            8,
        );
    }
    mask
}

/// A page of ours beside the window, if that place is free.
struct Side(Option<*mut u64>);

impl Side {
    fn new(address: u64) -> Side {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
        let rw = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: replaces nothing.
        let p = unsafe { libc::mmap(address as *mut c_void, 4096, rw, flags, -1, 0) };
        if p as u64 != address {
            return Side(None);
        }
        let p: *mut u64 = p.cast();
        for n in 0..512 {
            // SAFETY: our page.
            unsafe { p.add(n).write_volatile(MAGIC) };
        }
        Side(Some(p))
    }

    fn intact(&self) -> bool {
        // SAFETY: our page.
        self.0
            .is_none_or(|p| (0..512).all(|n| unsafe { p.add(n).read_volatile() } == MAGIC))
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        if let Some(p) = self.0 {
            // SAFETY: our page.
            unsafe { libc::munmap(p.cast(), 4096) };
        }
    }
}

/// Used by other attacks: a domain from bare text.
///
/// # Errors
///
/// What the loader or the domain says.
pub fn domain_of(builder: &Builder, imports: Imports, options: &DomainOptions) -> Result<Domain, String> {
    let module =
        Module::from_bytes("attack", &builder.build(), &LoadOptions::default()).map_err(|e| e.to_string())?;
    Domain::new(&[module], imports, options).map_err(|e| e.to_string())
}

/// Address of offset `at` of the text of the first module of a window at `base`.
#[must_use]
pub fn text_address(base: u64, at: u32) -> u64 {
    base + u64::from(window::IMAGES + elf::TEXT + at)
}

/// Imports for all functions that a module asks for: some work, some fail.
#[must_use]
pub fn imports_for(module: &Module) -> Imports {
    let mut imports = Imports::new();
    for (n, import) in module.imports().iter().enumerate() {
        imports = imports.closure(&import.name, move |frame| {
            frame.result[0] = frame.ints[0].wrapping_add(n as u64);
            if n % 7 == 6 {
                Err(EndCall::Fail("as it should".into()))
            } else {
                Ok(())
            }
        });
    }
    imports
}

/// The host's state before calls, to compare with.
#[derive(Debug)]
pub struct Watch {
    idle: host::State,
    mask: u64,
}

impl Default for Watch {
    fn default() -> Self {
        Watch::new()
    }
}

impl Watch {
    /// The state as it is now.
    #[must_use]
    pub fn new() -> Watch {
        Watch {
            idle: host_state(),
            mask: signal_mask(),
        }
    }

    /// After a call: whether it returned, and what is wrong. Resets a domain that has faulted.
    #[must_use]
    pub fn judge(&self, domain: &Domain, state: &host::State) -> (bool, Option<String>) {
        let returned = last_status() == 0;
        let mut wrong = state.compare(&self.idle);
        if !returned {
            let error = take_error();
            wrong.extend(judge(error.as_ref(), domain.as_ref().base(), window::SIZE).1);
            if domain.faulted() {
                // Constructors that a mutation broke may fail again and again.
                let _ = domain.reset();
            }
        }
        // The first lane of a thread unblocks the signals of faults.
        let faults: u64 = [4, 5, 7, 8, 11, 23].iter().map(|s| 1 << (s - 1)).sum();
        if (signal_mask() ^ self.mask) & !faults != 0 {
            wrong.push("signal mask".into());
        }
        (returned, (!wrong.is_empty()).then(|| wrong.join("; ")))
    }
}
