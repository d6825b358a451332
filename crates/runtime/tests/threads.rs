//! Many threads in many domains, while everything that can change does: whatever comes back is right, or a typed error
//! that somebody caused.

mod support;

use ringfence_runtime::supervisor::{Actor, Recipient};
use ringfence_runtime::{
    Call, CallError, Code, CodeError, Domain, DomainOptions, EndCall, FaultKind, Imports, InUse, LoadOptions,
    Module, OnFailure, Region, Rights, Signature,
};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, RwLock};
use std::time::{Duration, Instant};
use support::{build, call, entry, imports, module};

const DOMAINS: usize = 6;

/// Domains with a slot that takes functions of the others.
const SLOTTED: usize = 2;

/// What a call returns that cannot succeed.
const NEVER: std::ops::RangeInclusive<u64> = u64::MAX..=u64::MAX;

/// Numbers that can be repeated.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

struct Stage {
    domains: Vec<RwLock<Domain>>,
    slotted: Vec<Domain>,
    region: Region,
    stop: AtomicBool,
    steps: AtomicU64,
}

impl Stage {
    fn domain(&self, n: u64) -> Domain {
        self.domains[n as usize % DOMAINS].read().unwrap().clone()
    }

    fn slotted(&self, n: u64) -> &Domain {
        &self.slotted[n as usize % SLOTTED]
    }
}

/// The stage, for host functions.
static STAGE: OnceLock<Arc<Stage>> = OnceLock::new();

/// `host_enter(x)` calls `nest(x)` in another domain, chosen by x.
fn entering() -> Imports {
    imports().closure("host_enter", |f| {
        let Some(stage) = STAGE.get() else {
            return Err(EndCall::Fail("too early".into()));
        };
        let x = f.ints[0];
        match call(&stage.domain(x.wrapping_mul(7)), "nest", &[x]) {
            Ok(sum) => {
                f.result[0] = sum;
                Ok(())
            }
            Err(e) => {
                check(&e, false);
                Err(EndCall::Fail("the nested call failed".into()))
            }
        }
    })
}

/// One of the domains; every second one has fewer lanes than there are threads.
fn make(n: usize) -> Domain {
    let mut options = DomainOptions::default();
    if n % 2 == 1 {
        options.max_lanes = 3;
    }
    options.time_limit = Some(Duration::from_millis(500));
    options.processor_time = Some(Duration::MAX);
    Domain::new(&[module()], entering(), &options).expect("domain")
}

fn make_slotted() -> Vec<Domain> {
    let file = build("slotted", &["--import=other,scaled,__rf_call_status"]);
    let module = Module::open(&file, &LoadOptions::default()).expect("module");
    let _ = std::fs::remove_file(file);
    let longs = Signature {
        ints: 2,
        int_results: 1,
        ..Signature::NOTHING
    };
    let slots = || {
        let imports = Imports::new().slot("other", longs, OnFailure::Tell);
        imports.slot("scaled", Signature::NOTHING, OnFailure::Tell)
    };
    let new =
        |_| Domain::new(std::slice::from_ref(&module), slots(), &DomainOptions::default()).expect("domain");
    (0..SLOTTED).map(new).collect()
}

/// Errors that what others do can cause. A call of its own may go wrong in its own way if it is `wild`.
fn check(error: &CallError, wild: bool) {
    match error {
        CallError::Fault(f) => match &f.kind {
            FaultKind::Elsewhere | FaultKind::Interrupted | FaultKind::TimeLimit | FaultKind::Host(_) => {}
            FaultKind::BadAccess { .. } | FaultKind::BadTarget | FaultKind::IllegalInstruction if wild => {}
            kind => panic!("{kind:?}: {f:?}"),
        },
        CallError::Faulted { .. }
        | CallError::Gone
        | CallError::Removed
        | CallError::Ending
        | CallError::NoLane { .. } => {}
        other => panic!("{other:?}"),
    }
}

fn adds(n: u8) -> Vec<u8> {
    let mut code = vec![0x0F, 0x1F, 0x84, 0x00, 0xFF, 0xFF, 0x9A, 0x62];
    code.extend([0x8D, 0x44, 0x37, n, 0xC3]);
    code
}

fn caller(stage: &Stage, seed: u64) -> (u64, u64) {
    let mut random = Random(seed);
    let (mut good, mut bad) = (0, 0);
    let mut count =
        |result: Result<u64, CallError>, wanted: std::ops::RangeInclusive<u64>, wild: bool| match result {
            Ok(n) => {
                assert!(wanted.contains(&n), "{n} is not in {wanted:?}");
                good += 1;
            }
            Err(e) => {
                check(&e, wild);
                bad += 1;
            }
        };
    while !stage.stop.load(Ordering::Relaxed) {
        stage.steps.fetch_add(1, Ordering::Relaxed);
        let d = stage.domain(random.next());
        let (a, b) = (random.below(1000), random.below(1000));
        match random.below(100) {
            0..40 => count(call(&d, "add", &[a, b]), a + b..=a + b, false),
            40..60 => {
                let depth = random.below(12);
                let sum = 100 + depth * (depth + 1) / 2;
                count(call(&d, "nest", &[depth]), sum..=sum, false);
            }
            60..75 => match d.find_code("sum") {
                Ok(e) => {
                    let direct = e.call(&mut Call::ints(&[a, b])).map(|r| r.rax);
                    count(direct, a + b..=a + b + 100, false);
                    if random.below(10) == 0 {
                        // It may be gone by now: the domain's own call of it faults then.
                        let through = call(&d, "through", &[e.address(), a, b]);
                        count(through, a + b + 1..=a + b + 101, true);
                    }
                }
                Err(CodeError::Unknown { .. }) => {}
                Err(e) => panic!("{e:?}"),
            },
            75..85 => {
                let at = stage.region.address_in(d.as_ref());
                if random.below(20) == 0 {
                    count(call(&d, "read_at", &[at]).map(|v| v & 0xFFFF_FFFF), 77..=77, true);
                }
            }
            // Whatever the slot calls: the sum, or nothing and a reason.
            85..89 => {
                let call = &mut Call::ints(&[a, b]);
                match entry(stage.slotted(random.next()), "attempt").call(call) {
                    Ok(outcome) if outcome.rdx as u32 == 0 => count(Ok(outcome.rax), a + b..=a + b, false),
                    Ok(outcome) => count(Ok(outcome.rax), 0..=0, false),
                    Err(e) => count(Err(e), NEVER, false),
                }
            }
            89..92 => count(call(&d, "spin", &[a * 50]), a * 50..=a * 50, false),
            92..95 => {
                let block = d.as_ref().alloc(1 + a, 16);
                if let Ok(block) = block {
                    let resets = d.as_ref().resets();
                    let _ = d.as_ref().write(block, &[1; 1]);
                    d.as_ref().free_unless_reset(block, resets);
                }
            }
            95..98 => {
                let usage = d.usage();
                assert!(usage.active <= usage.lanes && usage.lanes <= 63, "{usage:?}");
            }
            98 if random.below(20) == 0 => count(call(&d, "illegal", &[]), NEVER, true),
            99 if random.below(20) == 0 => {
                d.set_time_limit(Some(Duration::from_millis(3)));
                count(call(&d, "forever", &[]), NEVER, false);
                d.set_time_limit(Some(Duration::from_millis(500)));
            }
            _ => {}
        }
        // Whoever sees it first.
        if d.faulted() && d.reset().is_err() {
            std::thread::yield_now();
        }
    }
    (good, bad)
}

fn manager(stage: &Stage, seed: u64) -> u64 {
    let mut random = Random(seed);
    let mut done = 0;
    while !stage.stop.load(Ordering::Relaxed) {
        let n = random.next();
        let d = stage.domain(n);
        match random.below(100) {
            0..30 => {
                if d.faulted() {
                    done += u64::from(d.reset().is_ok());
                }
            }
            30..60 => {
                match d.remove_code("sum") {
                    Ok(()) => done += 1,
                    Err(CodeError::Unknown { .. } | CodeError::InUse(InUse::Busy { .. })) => {}
                    Err(e) => panic!("{e:?}"),
                }
                let pad = random.below(3) as usize * 64;
                let bytes = [vec![0xCC; pad], adds(random.below(100) as u8)].concat();
                match d.add_code(
                    "sum",
                    &Code {
                        bytes: &bytes,
                        entry: pad as u32,
                    },
                ) {
                    Ok(_) => done += 1,
                    Err(CodeError::Exists { .. }) => {}
                    Err(e) => panic!("{e:?}"),
                }
            }
            60..85 => {
                let rights = [Rights::None, Rights::Read, Rights::Write][random.below(3) as usize];
                stage
                    .region
                    .give(Actor::Host, Recipient::Domain(d.as_ref()), rights)
                    .expect("the host may");
                done += 1;
            }
            85..87 => d.interrupt(),
            87..90 => {
                let slotted = stage.slotted(random.next());
                // The second one is refused if the domain went meanwhile.
                match random.below(6) {
                    0 => {
                        slotted.revoke("other").expect("the slot");
                    }
                    1 => {
                        let _ = slotted.grant("other", &entry(&d, "illegal"));
                    }
                    _ => {
                        let _ = slotted.grant("other", &entry(&d, "add"));
                    }
                }
                done += 1;
            }
            90..92 => done += u64::from(d.reset().is_ok()),
            92..94 => done += d.trim().expect("trim") as u64,
            94..96 => {
                let n = n as usize % DOMAINS;
                *stage.domains[n].write().unwrap() = make(n);
                done += 1;
            }
            _ => std::thread::sleep(Duration::from_micros(random.below(300))),
        }
    }
    done
}

/// Children of whatever moment: an old domain gives the right result or a typed error there, a new one works.
fn forker(stage: &Stage) -> u64 {
    let mut random = Random(0xA076_1D64_78BD_642F);
    let mut done = 0;
    while !stage.stop.load(Ordering::Relaxed) {
        let d = stage.domain(random.next());
        // SAFETY: the child does what a host may do there, and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: ends a child that waits for ever.
            unsafe { libc::alarm(60) };
            let old = match call(&d, "add", &[2, 3]) {
                Ok(sum) => sum == 5,
                Err(CallError::Fault(f)) => f.kind == FaultKind::Elsewhere,
                Err(e) => matches!(e, CallError::Faulted { .. } | CallError::NoLane { .. }),
            };
            let fresh = make(0);
            let new = call(&fresh, "add", &[2, 3]).ok() == Some(5)
                && stage
                    .region
                    .give(Actor::Host, Recipient::Domain(fresh.as_ref()), Rights::Read)
                    .is_ok()
                && call(&fresh, "read_at", &[stage.region.address_in(fresh.as_ref())]).ok() == Some(77);
            // SAFETY: ends the child without the harness's doings.
            unsafe { libc::_exit(i32::from(!old) + 2 * i32::from(!new)) };
        }
        let mut status = -1;
        // SAFETY: waits for the child that was made above.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0, "child {done}");
        done += 1;
        std::thread::sleep(Duration::from_millis(random.below(20)));
    }
    done
}

/// A child finds no lock taken by a thread that did not come along, while others make domains, lanes and function pointers.
#[test]
#[cfg_attr(
    ringfence_tsan,
    ignore = "ThreadSanitizer has no children of processes with several threads that start threads themselves"
)]
fn children_can_do_what_other_threads_were_doing() {
    let work = || {
        let d = make(0);
        let pointer = entry(&d, "add").thunk(Signature {
            ints: 2,
            int_results: 1,
            ..Signature::NOTHING
        });
        // SAFETY: the type is that of the signature, and the domain lives.
        let add: extern "C" fn(u64, u64) -> u64 = unsafe { std::mem::transmute(pointer) };
        add(2, 3) == 5
    };
    assert!(work());
    let stop = AtomicBool::new(false);
    std::thread::scope(|s| {
        for _ in 0..2 {
            s.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    assert!(work());
                }
            });
        }
        for n in 0..300 {
            // SAFETY: the child does what a host may do there, and ends, after 20 s at the latest.
            let child = unsafe { libc::fork() };
            if child == 0 {
                // SAFETY: see above.
                unsafe {
                    libc::alarm(20);
                    libc::_exit(i32::from(!work()));
                }
            }
            let mut status = -1;
            // SAFETY: waits for the child that was made above.
            unsafe { libc::waitpid(child, &raw mut status, 0) };
            if status != 0 {
                stop.store(true, Ordering::Relaxed);
            }
            assert_eq!(status, 0, "child {n}");
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn everything_at_once() {
    let number = |name| {
        std::env::var(name)
            .ok()
            .and_then(|n: String| n.parse::<u64>().ok())
    };
    let seconds = match (number("RINGFENCE_SECONDS"), number("RINGFENCE_SOAK")) {
        (Some(seconds), _) => seconds,
        (None, Some(1)) => 300,
        _ => 10,
    };
    let region = Region::new(4096).expect("region");
    region.write(0, &77u32.to_le_bytes()).expect("the host's own");
    let stage = Arc::new(Stage {
        domains: (0..DOMAINS).map(|n| RwLock::new(make(n))).collect(),
        slotted: make_slotted(),
        region,
        stop: AtomicBool::new(false),
        steps: AtomicU64::new(0),
    });
    assert!(STAGE.set(stage.clone()).is_ok());
    let callers: Vec<_> = (1..=4)
        .map(|seed| {
            let stage = stage.clone();
            std::thread::spawn(move || caller(&stage, 0x9E37_79B9_7F4A_7C15u64.wrapping_mul(seed)))
        })
        .collect();
    let managers: Vec<_> = (1..=2)
        .map(|seed| {
            let stage = stage.clone();
            std::thread::spawn(move || manager(&stage, 0xD1B5_4A32_D192_ED03u64.wrapping_mul(seed)))
        })
        .collect();
    // ThreadSanitizer has no children of processes with several threads that start threads themselves.
    let children = (!cfg!(ringfence_tsan)).then(|| {
        let stage = stage.clone();
        std::thread::spawn(move || forker(&stage))
    });
    let begin = Instant::now();
    let (mut steps, mut moved) = (0, Instant::now());
    while begin.elapsed() < Duration::from_secs(seconds) {
        std::thread::sleep(Duration::from_millis(100));
        let now = stage.steps.load(Ordering::Relaxed);
        if now != steps {
            (steps, moved) = (now, Instant::now());
        }
        if callers.iter().any(|t| t.is_finished())
            || managers.iter().any(|t| t.is_finished())
            || children.iter().any(|t| t.is_finished())
        {
            break;
        }
        assert!(
            moved.elapsed() < Duration::from_secs(60),
            "nothing moves after {steps} steps"
        );
    }
    stage.stop.store(true, Ordering::Relaxed);
    let (mut good, mut bad, mut done) = (0, 0, 0);
    for caller in callers {
        let (g, b) = caller.join().expect("a caller");
        (good, bad) = (good + g, bad + b);
    }
    for manager in managers {
        done += manager.join().expect("a manager");
    }
    let children = children.map(|t| t.join().expect("the one that forks"));
    println!("{good} calls went well, {bad} did not, {done} changes, {children:?} children");
    assert!(children.is_none_or(|n| n > 10));
    assert!(good > 1000 && bad > 0 && done > 100);
}
