//! Threads that a domain asks for: what a hostile one may try with them, and how the host ends them.

mod support;

use std::time::{Duration, Instant};

use ringfence::policy::Policy;
use ringfence::{CallError, Domain, DomainError, FaultKind, Imports, Module};
use support::Start as _;

const MODULE: &str = r#"
enum { CLONE = 56, FORK = 57, VM = 0x100, THREAD = 0x10000 };
static volatile long told;
static void spin(void) { for (;;) ; }
static void tell(long value) { told = value; }
static void crash(void) { *(volatile int *)8 = 1; }
long start_spin(void) { return call(CLONE, VM | THREAD, (long)spin, 0); }
long start_tell(long v) { return call(CLONE, VM | THREAD, (long)tell, v); }
long start_crash(void) { return call(CLONE, VM | THREAD, (long)crash, 0); }
long start_at(long flags, long address) { return call(CLONE, flags, address, 0); }
long inside(long by) { return call(CLONE, VM | THREAD, (long)spin + by, 0); }
long process(void) { return call(FORK, 0, 0, 0); }
long what_was_told(void) { return told; }
"#;

fn module() -> Module {
    support::from_text(MODULE, &["-shared"])
}

fn domain(threads: usize) -> Domain {
    let monitor = Policy::new().threads(threads).start().unwrap();
    module().start(Imports::new().policy(monitor)).unwrap()
}

fn ask(domain: &Domain, name: &str, argument: i64) -> i64 {
    let result = domain.func::<(i64,), i64>(name).unwrap().call(argument).unwrap();
    result.into_inner_unchecked()
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

const EAGAIN: i64 = -11;
const EINVAL: i64 = -22;

#[test]
fn not_granted_no_more_than_granted_and_no_processes() {
    needs!(Policy);
    let none = domain(0);
    assert_eq!(ask(&none, "start_tell", 7), EAGAIN);
    assert_eq!(ask(&none, "process", 0), EAGAIN);
    let two = domain(2);
    assert_eq!(ask(&two, "start_spin", 0), 0);
    assert_eq!(ask(&two, "start_spin", 0), 0);
    assert_eq!(ask(&two, "start_spin", 0), EAGAIN);
    assert_eq!(two.usage().active, 2, "a thread that was made is inside");
    two.interrupt().unwrap();
    until("interrupted threads stay", || two.usage().active == 0);
}

#[test]
fn a_thread_starts_at_a_function_and_nowhere_else() {
    needs!(Policy);
    let d = domain(4);
    let clone = d.func::<(i64, i64), i64>("start_at").unwrap();
    let flags = 0x100 | 0x10000;
    let stub = d.memory().put_slice(&[0x90u8; 64]).unwrap();
    for address in [
        0,
        1,
        0x2_0000,
        0x4_0000,
        stub.ptr().address() as i64,
        i64::MIN,
        -1,
    ] {
        assert_eq!(clone.call(flags, address).unwrap(), EINVAL, "{address:#x}");
    }
    for by in [1, 4, 8, -1] {
        assert_eq!(ask(&d, "inside", by), EINVAL, "{by} bytes from an entry");
    }
    assert_eq!(clone.call(0x100, 0).unwrap(), EAGAIN);
    assert_eq!(clone.call(17, 0).unwrap(), EAGAIN);
    assert_eq!(d.usage().active, 0);
    // And it gets what it was to get.
    assert_eq!(ask(&d, "start_tell", 1 << 40), 0);
    until("not told", || ask(&d, "what_was_told", 0) == 1 << 40);
}

#[test]
fn a_domain_with_a_thread_is_not_reset_and_a_reset_one_has_none() {
    needs!(Policy);
    let d = domain(1);
    assert_eq!(ask(&d, "start_spin", 0), 0);
    assert!(matches!(d.reset(), Err(DomainError::Busy { .. })));
    d.interrupt().unwrap();
    until("busy for ever", || d.reset().is_ok());
    assert_eq!(d.usage().active, 0);
    assert_eq!(ask(&d, "start_spin", 0), 0, "the next user has the whole number");
    d.interrupt().unwrap();
}

#[test]
fn a_fault_in_one_is_the_domains() {
    needs!(Policy);
    let d = domain(1);
    // Its fault may end the call that has started it before that returns.
    match d.func::<(i64,), i64>("start_crash").unwrap().call(0) {
        Ok(started) => assert_eq!(started, 0),
        Err(CallError::Fault(fault)) => assert_eq!(fault.kind, FaultKind::Elsewhere),
        Err(error) => panic!("{error}"),
    }
    until("no fault", || d.usage().faults > 0 && d.usage().active == 0);
    assert_eq!(d.usage().faults, 1, "one fault, whoever else it ends");
    let error = d.func::<(), i64>("what_was_told").unwrap().call().unwrap_err();
    assert!(matches!(error, CallError::Faulted { .. }), "{error}");
}

#[test]
fn the_last_handle_ends_them() {
    needs!(Policy);
    let held = |monitor: &std::sync::Arc<ringfence::policy::Monitor>| std::sync::Arc::strong_count(monitor);
    for clones in [0, 3] {
        let monitor = Policy::new().threads(2).start().unwrap();
        let d = module().start(Imports::new().policy(monitor.clone())).unwrap();
        assert_eq!(ask(&d, "start_spin", 0), 0);
        assert_eq!(ask(&d, "start_spin", 0), 0);
        let more: Vec<Domain> = (0..clones).map(|_| d.clone()).collect();
        drop(d);
        std::thread::scope(|scope| {
            for one in more {
                scope.spawn(move || drop(one));
            }
        });
        until("the domain lives on", || held(&monitor) == 1);
    }
}

#[test]
fn a_threads_time_is_limited_like_a_calls() {
    needs!(Policy);
    let mut options = support::options();
    options.time_limit = Some(Duration::from_millis(50));
    let monitor = Policy::new().threads(1).start().unwrap();
    let d = Domain::instantiate(&[module()], Imports::new().policy(monitor), &options).unwrap();
    assert_eq!(ask(&d, "start_spin", 0), 0);
    until("no end", || d.usage().active == 0);
    assert_eq!(d.usage().faults, 1);
}
