//! What a domain has used, and what happens when that is too much.

mod support;

use ringfence_runtime::{Call, CallError, DomainError, DomainOptions, FaultKind};
use std::time::{Duration, Instant};
use support::{call, domain, domain_with, entry};

#[test]
fn calls_faults_and_memory_are_counted() {
    let d = domain();
    let start = d.usage();
    assert_eq!(
        (start.calls, start.faults, start.resets),
        (1, 0, 0),
        "the constructor"
    );
    for i in 0..100 {
        call(&d, "add", &[i, 1]).unwrap();
    }
    assert_eq!(d.usage().calls, 101);
    // Nested ones are part of the outermost.
    call(&d, "nest", &[0]).unwrap();
    assert_eq!(d.usage().calls, 102);
    let block = d.as_ref().alloc(1 << 20, 16).unwrap();
    assert!(d.usage().memory >= start.memory + (1 << 20));
    d.as_ref().free(block).unwrap();
    assert!(call(&d, "illegal", &[]).is_err());
    let u = d.usage();
    assert_eq!((u.calls, u.faults), (103, 1));
    // Refused calls are none.
    assert!(matches!(call(&d, "add", &[1, 1]), Err(CallError::Faulted { .. })));
    assert_eq!(d.usage().calls, 103);
    d.reset().unwrap();
    let u = d.usage();
    assert_eq!((u.calls, u.faults, u.resets, u.memory), (104, 1, 1, start.memory));
    assert_eq!((u.lanes, u.active), (1, 0));
    assert_eq!(u.processor_time, Duration::ZERO, "nobody asked");
    // Threads that are gone have called all the same.
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let d = d.clone();
            std::thread::spawn(move || (0..10).for_each(|i| drop(call(&d, "add", &[i, i]))))
        })
        .collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
    let u = d.usage();
    assert_eq!((u.calls, u.lanes), (144, 1));
}

#[test]
fn a_call_in_progress_is_seen() {
    let d = domain();
    let inside = {
        let d = d.clone();
        std::thread::spawn(move || call(&d, "forever", &[]))
    };
    let begin = Instant::now();
    while d.usage().active == 0 && begin.elapsed() < Duration::from_secs(20) {
        std::thread::yield_now();
    }
    assert_eq!((d.usage().active, d.usage().lanes), (1, 2));
    d.interrupt();
    assert!(inside.join().unwrap().is_err());
    assert_eq!((d.usage().active, d.usage().faults), (0, 1));
}

#[test]
fn too_many_faults_end_a_domain() {
    let mut options = DomainOptions::default();
    options.fault_limit = Some(2);
    let d = domain_with(&options);
    call(&d, "illegal", &[]).unwrap_err();
    d.reset().unwrap();
    call(&d, "illegal", &[]).unwrap_err();
    for _ in 0..2 {
        let e = d.reset().unwrap_err();
        assert!(matches!(e, DomainError::Faults { faults: 2, limit: 2 }), "{e}");
    }
    assert!(matches!(call(&d, "add", &[1, 1]), Err(CallError::Faulted { .. })));
}

fn thread_time() -> Duration {
    // SAFETY: reads a clock.
    unsafe {
        let mut t: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut t);
        Duration::new(t.tv_sec as u64, t.tv_nsec as u32)
    }
}

#[test]
fn processor_time_is_counted() {
    let mut options = DomainOptions::default();
    options.processor_time = Some(Duration::MAX);
    let d = domain_with(&options);
    let spin = entry(&d, "spin");
    let long = || {
        let begin = thread_time();
        // Calls of some milliseconds, for half a second in all.
        while thread_time() - begin < Duration::from_millis(500) {
            spin.call(&mut Call::ints(&[5_000_000])).unwrap();
        }
        thread_time() - begin
    };
    let ran = long();
    let counted = d.usage().processor_time;
    assert!(
        counted > ran / 2 && counted < ran * 3 / 2,
        "{counted:?} of {ran:?}"
    );
    // What the host does itself is not the domain's.
    let begin = thread_time();
    while thread_time() - begin < Duration::from_millis(100) {
        std::hint::black_box(0);
    }
    assert!(d.usage().processor_time - counted < Duration::from_millis(20));
}

#[test]
fn a_processor_time_that_is_used_up_ends_calls() {
    let mut options = DomainOptions::default();
    options.processor_time = Some(Duration::from_millis(60));
    let d = domain_with(&options);
    let begin = thread_time();
    let ended = match call(&d, "forever", &[]) {
        Err(CallError::Fault(f)) => f.kind,
        other => panic!("{other:?}"),
    };
    assert_eq!(ended, FaultKind::TimeLimit);
    let ran = thread_time() - begin;
    assert!(
        ran > Duration::from_millis(20) && ran < Duration::from_millis(500),
        "{ran:?}"
    );
    assert!(d.usage().processor_time > Duration::from_millis(60));
    // And it stays used up. The constructor is short enough to get through.
    d.reset().unwrap();
    assert!(matches!(call(&d, "forever", &[]), Err(CallError::Fault(f)) if f.kind == FaultKind::TimeLimit));
}
