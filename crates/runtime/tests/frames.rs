//! The stubs of exceptions, used well and badly by a module that is hand-made.

mod support;

use ringfence_runtime::domain::DomainRef;
use ringfence_runtime::{
    CallError, Domain, DomainOptions, FaultKind, FramesError, Imports, LoadOptions, Module,
};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use support::{build_file, call, fault};

/// What the domain got from `UNWIND`.
#[derive(Clone, Debug, Default)]
struct View {
    base: u64,
    registers: [u64; 5],
    distance: u64,
    words: Vec<u64>,
    pads: Vec<u64>,
}

/// In the order of the module's table.
enum Pad {
    Thrower,
    Middle,
    Catcher,
    Shallow,
    Stranger,
    Skipper,
    Keeper,
    Between,
    Deep,
}

fn words(domain: &DomainRef<'_>, at: u64, count: usize) -> Vec<u64> {
    let mut bytes = vec![0; 8 * count];
    domain.read(domain.translate(at), &mut bytes).unwrap();
    let word = |b: &[u8]| u64::from_le_bytes(b.try_into().unwrap());
    bytes.chunks_exact(8).map(word).collect()
}

type Pick = dyn Fn(&View) -> Option<[u64; 9]> + Send + Sync;

/// A domain in which `pick` makes the records.
fn domain_with(
    pick: impl Fn(&View) -> Option<[u64; 9]> + Send + Sync + 'static,
    enter: impl Fn() + Send + Sync + 'static,
) -> Domain {
    static MODULE: OnceLock<Module> = OnceLock::new();
    let module = MODULE.get_or_init(|| {
        let flags = ["--no-rewrite", "--import=host_pick,host_enter"];
        Module::open(build_file("frames.s", &flags), &LoadOptions::default()).unwrap()
    });
    let pick: Box<Pick> = Box::new(pick);
    let imports = Imports::new()
        .closure("host_pick", move |f| {
            let domain = f.domain();
            let head = words(&domain, f.ints[0], 7);
            let view = View {
                base: domain.base(),
                registers: head[..5].try_into().unwrap(),
                distance: head[5],
                words: words(&domain, f.ints[0] + 56, head[6] as usize),
                pads: words(&domain, f.ints[2], 9),
            };
            if let Some(record) = pick(&view) {
                let bytes: Vec<u8> = record.iter().flat_map(|w| w.to_le_bytes()).collect();
                domain.write(domain.translate(f.ints[1]), &bytes).unwrap();
            }
            Ok(())
        })
        .closure("host_enter", move |_| {
            enter();
            Ok(())
        });
    Domain::new(std::slice::from_ref(module), imports, &DomainOptions::default()).unwrap()
}

fn domain(pick: impl Fn(&View) -> Option<[u64; 9]> + Send + Sync + 'static) -> Domain {
    domain_with(pick, || ())
}

/// A record that resumes `up` words above the stack pointer that `thrower` has at its call of the stub.
fn record(view: &View, up: u64, pad: Pad) -> [u64; 9] {
    [
        view.distance.wrapping_sub(8 + 8 * up),
        view.pads[pad as usize],
        1,
        20,
        300,
        4000,
        50_000,
        600_000,
        7_000_000,
    ]
}

/// The same with the data stack as it is, for code that goes on calling.
fn sound(view: &View, up: u64, pad: Pad) -> [u64; 9] {
    let mut record = record(view, up, pad);
    record[8] = view.registers[4];
    record
}

/// From `thrower`'s stack pointer to those of its callers, in words: `middle` pushes one register, `catcher` two.
const MIDDLE: u64 = 1;
const CATCHER: u64 = 3;
const SKIPPER: u64 = 5;

fn frames(d: &Domain, name: &str, args: &[u64]) -> FramesError {
    match fault(d, name, args).kind {
        FaultKind::Frames(why) => why,
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn a_live_frame_is_resumed_at_its_pad() {
    let d = domain(|v| Some(record(v, CATCHER, Pad::Catcher)));
    for _ in 0..3 {
        assert_eq!(call(&d, "catcher", &[]).unwrap(), 7_654_321);
    }
    let d = domain(|v| Some(record(v, MIDDLE, Pad::Middle)));
    assert_eq!(call(&d, "catcher", &[]).unwrap(), 3000);
    // Its own frame.
    let d = domain(|v| Some(record(v, 0, Pad::Thrower)));
    assert_eq!(call(&d, "catcher", &[]).unwrap(), 1);
}

#[test]
fn a_domain_sees_its_own_words_and_nothing_else() {
    let seen = Arc::new(Mutex::new(View::default()));
    let into = seen.clone();
    let d = domain(move |v| {
        *into.lock().unwrap() = v.clone();
        Some(record(v, CATCHER, Pad::Catcher))
    });
    call(&d, "catcher", &[]).unwrap();
    let v = seen.lock().unwrap().clone();
    let inside = |w: u64| w & !0xFFFF_FFFF == v.base;
    // Return addresses into thrower, middle and catcher; what middle and catcher pushed; not the gate's return address.
    assert_eq!(v.words.len(), 6, "{v:x?}");
    assert_eq!(v.distance, 48);
    assert!(
        inside(v.words[0]) && inside(v.words[1]) && inside(v.words[3]),
        "{v:x?}"
    );
    assert_eq!(v.words[2], 5);
    assert_eq!(v.words[4..], [0, 0]);
    assert_eq!(v.registers[0], 77);
}

#[test]
fn words_far_up_are_told_by_distance() {
    let seen = Arc::new(Mutex::new(View::default()));
    let into = seen.clone();
    let d = domain(move |v| {
        *into.lock().unwrap() = v.clone();
        None
    });
    // Nothing of the domain is on the stack but the return address to its own caller, which is the gate.
    for wrong in [16, 24, 4, 1 << 20, u64::MAX, u64::MAX - 7] {
        assert_eq!(frames(&d, "peek", &[wrong]), FramesError::NoFrame, "{wrong}");
        d.reset().unwrap();
    }
    call(&d, "peek", &[8]).unwrap();
    assert_eq!(seen.lock().unwrap().words.len(), 1);
    let last = Arc::new(Mutex::new(View::default()));
    let into = last.clone();
    let d = domain(move |v| {
        *into.lock().unwrap() = v.clone();
        let frames = (v.distance - 16) / 16;
        Some(record(v, 2 * frames - 1, Pad::Deep))
    });
    call(&d, "deep", &[1000]).unwrap();
    let v = last.lock().unwrap().clone();
    assert_eq!((v.words.len(), v.distance), (64, 8 + 8 + 1001 * 16 - 8));
}

/// What a domain sees of its frames is the same however many calls of its own are around the one that it is in.
#[test]
fn outer_calls_do_not_show() {
    let slot: Arc<OnceLock<Domain>> = Arc::default();
    let views = Arc::new(Mutex::new(Vec::new()));
    let around = Arc::new(AtomicU32::new(0));
    let (inner, into, left) = (slot.clone(), views.clone(), around.clone());
    let d = domain_with(
        move |v| {
            into.lock().unwrap().push(v.clone());
            Some(record(v, CATCHER, Pad::Catcher))
        },
        move || {
            let d = inner.get().unwrap();
            match left.fetch_sub(1, Ordering::Relaxed) {
                1 => call(d, "catcher", &[]),
                _ => call(d, "between", &[]),
            }
            .unwrap();
        },
    );
    assert!(slot.set(d.clone()).is_ok());
    for depth in [0, 1, 2, 7] {
        around.store(depth, Ordering::Relaxed);
        let outermost = if depth == 0 { "catcher" } else { "between" };
        call(&d, outermost, &[]).unwrap();
    }
    let views = views.lock().unwrap();
    assert_eq!(views.len(), 4);
    // All but the data stack, which is the domain's own.
    let seen = |v: &View| (v.distance, v.words.clone(), v.registers[..4].to_vec());
    for v in &views[1..] {
        assert_eq!(seen(v), seen(&views[0]));
    }
}

#[test]
fn wrong_records_are_errors() {
    use FramesError::{NoFrame, NoPad, OtherDepth, OtherFunction, Pointer};
    type Wrong = fn(&View) -> [u64; 9];
    let cases: [(&str, FramesError, Wrong); 17] = [
        ("between two frames", NoFrame, |v| record(v, 2, Pad::Catcher)),
        ("above all frames", NoFrame, |v| record(v, 6, Pad::Catcher)),
        ("far above", NoFrame, |v| {
            let mut r = record(v, 0, Pad::Catcher);
            r[0] = 0u64.wrapping_sub(8);
            r
        }),
        ("the gate's own words", NoFrame, |v| {
            let mut r = record(v, 0, Pad::Catcher);
            r[0] = 0;
            r
        }),
        ("below the stack pointer", NoFrame, |v| {
            let mut r = record(v, 0, Pad::Catcher);
            r[0] += 8;
            r
        }),
        ("a misaligned stack pointer", NoFrame, |v| {
            let mut r = record(v, CATCHER, Pad::Catcher);
            r[0] += 4;
            r
        }),
        ("no distance but an address", NoFrame, |v| {
            let mut r = record(v, CATCHER, Pad::Catcher);
            r[0] = v.words[0];
            r
        }),
        ("a pad of another function", OtherFunction, |v| {
            record(v, CATCHER, Pad::Stranger)
        }),
        ("a pad of a live frame, but another one", OtherFunction, |v| {
            record(v, CATCHER, Pad::Middle)
        }),
        ("a pad of a caller", NoFrame, |v| record(v, MIDDLE, Pad::Catcher)),
        ("a pad at another depth", OtherDepth, |v| {
            record(v, CATCHER, Pad::Shallow)
        }),
        ("into the pad's no-op", NoPad, |v| {
            let mut r = record(v, CATCHER, Pad::Catcher);
            r[1] += 4;
            r
        }),
        ("behind the pad's no-op", NoPad, |v| {
            let mut r = record(v, CATCHER, Pad::Catcher);
            r[1] += 8;
            r
        }),
        ("a return address", NoPad, |v| {
            let mut r = record(v, CATCHER, Pad::Catcher);
            r[1] = v.words[3];
            r
        }),
        ("no address of the window", NoPad, |v| {
            let mut r = record(v, CATCHER, Pad::Catcher);
            r[1] &= 0xFFFF_FFFF;
            r
        }),
        ("the pad in the next window", NoPad, |v| {
            let mut r = record(v, CATCHER, Pad::Catcher);
            r[1] += 1 << 32;
            r
        }),
        ("data", NoPad, |v| {
            let mut r = record(v, CATCHER, Pad::Catcher);
            r[1] = (r[1] & !0xFFFF_FFFF) + 0x4000_0000;
            r
        }),
    ];
    for (what, why, wrong) in cases {
        let d = domain(move |v| Some(wrong(v)));
        let f = fault(&d, "catcher", &[]);
        assert_eq!(f.kind, FaultKind::Frames(why), "{what}: {f}");
        assert!(
            matches!(call(&d, "catcher", &[]), Err(CallError::Faulted { .. })),
            "{what}"
        );
    }
    let d = domain(|_| None);
    assert_eq!(frames(&d, "bad_view", &[]), Pointer);
    d.reset().unwrap();
    assert_eq!(frames(&d, "bad_record", &[]), Pointer);
}

#[test]
fn a_dead_frame_is_not_resumed() {
    let d = domain(|v| Some(sound(v, CATCHER, Pad::Catcher)));
    assert_eq!(frames(&d, "again", &[]), FramesError::NoFrame);
    // From one call in to the next.
    d.reset().unwrap();
    let kept = Arc::new(OnceLock::new());
    let into = kept.clone();
    let d = domain(move |v| Some(*into.get_or_init(|| record(v, 2 * 9 + 1, Pad::Deep))));
    call(&d, "deep", &[20]).unwrap();
    assert_eq!(frames(&d, "deep", &[3]), FramesError::NoFrame);
}

#[test]
fn what_setjmp_has_left_is_a_record() {
    let d = domain(|v| Some(sound(v, SKIPPER, Pad::Skipper)));
    assert_eq!(frames(&d, "skipper", &[]), FramesError::NoFrame);
    let d = domain(|v| Some(sound(v, 1, Pad::Keeper)));
    for _ in 0..3 {
        assert_eq!(call(&d, "keeper", &[]).unwrap(), 42);
    }
}

/// What a frame has pushed since the pad goes with what it has called; what it pops there has to be there.
#[test]
fn a_pad_may_be_less_deep_than_the_call_in_progress() {
    let d = domain(|_| None);
    for _ in 0..3 {
        assert_eq!(call(&d, "grows", &[]).unwrap(), 7);
    }
    assert_eq!(frames(&d, "shrinks", &[]), FramesError::OtherDepth);
}

#[test]
fn nothing_is_resumed_across_the_host() {
    let slot: Arc<OnceLock<Domain>> = Arc::default();
    let (inner, outer) = (slot.clone(), Arc::new(Mutex::new(Vec::new())));
    let into = outer.clone();
    let d = domain_with(
        |v| {
            // Wherever the outer call's frame may be thought to be.
            let mut r = record(v, 0, Pad::Between);
            r[0] = 8;
            Some(r)
        },
        move || {
            let f = fault(inner.get().unwrap(), "thrower", &[]);
            into.lock().unwrap().push(f.kind.clone());
        },
    );
    assert!(slot.set(d.clone()).is_ok());
    let f = fault(&d, "between", &[]);
    assert_eq!(f.kind, FaultKind::Frames(FramesError::OtherFunction));
    assert_eq!(
        outer.lock().unwrap()[..],
        [FaultKind::Frames(FramesError::OtherFunction)]
    );
}

#[test]
fn lanes_do_not_know_each_other_s_frames() {
    // One thread is deep inside; the other tries to resume there.
    let deep = Arc::new(OnceLock::new());
    let go = Arc::new(std::sync::Barrier::new(2));
    let (into, wait) = (deep.clone(), go.clone());
    let d = domain(move |v| {
        if v.distance > 200 {
            into.get_or_init(|| record(v, 2 * 9 + 1, Pad::Deep));
            wait.wait();
            wait.wait();
            return Some(record(v, 1, Pad::Deep));
        }
        Some(*into.get().unwrap())
    });
    let other = d.clone();
    let runner = std::thread::spawn(move || call(&other, "deep", &[20]));
    go.wait();
    assert_eq!(frames(&d, "deep", &[2]), FramesError::NoFrame);
    go.wait();
    // The domain has faulted: the other call ends too.
    assert!(runner.join().unwrap().is_err());
}

#[test]
fn an_uncaught_exception_is_an_error_with_a_name() {
    let d = domain(|_| None);
    for (len, name) in [(0, ""), (5, "ab\u{FFFD}c"), (1, "a"), (u64::MAX, "")] {
        let f = fault(&d, "give_up", &[len]);
        let FaultKind::Uncaught(told) = &f.kind else {
            panic!("{f}")
        };
        assert!(
            told.starts_with(name) && told.chars().all(|c| !c.is_control()),
            "{len}: {told:?}"
        );
        assert!(f.to_string().contains("uncaught exception"), "{f}");
        assert!(matches!(call(&d, "catcher", &[]), Err(CallError::Faulted { .. })));
        d.reset().unwrap();
    }
}
