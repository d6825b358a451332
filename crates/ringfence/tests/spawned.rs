//! Threads that a domain asks for: what a hostile one may try with them, and how the host ends them.

use std::time::{Duration, Instant};

use ringfence::policy::Policy;
use ringfence::{CallError, Domain, DomainError, Imports, Module};

const MODULE: &str = r#"
static long call(long n, long a, long b, long c)
{
	register long r10 __asm__("r10") = 0;
	register long r8 __asm__("r8") = 0;
	register long r9 __asm__("r9") = 0;
	__asm__ volatile("call __rf_syscall" : "+a"(n), "+D"(a), "+S"(b), "+d"(c), "+r"(r10), "+r"(r8), "+r"(r9) : :
		"rcx", "r11", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
		"xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
	return n;
}
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
    let dir = std::env::temp_dir().join(format!("rf-spawned-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let thread = std::thread::current().name().unwrap_or("x").replace(':', "-");
    let (source, module) = (dir.join(format!("{thread}.c")), dir.join(format!("{thread}.rf")));
    std::fs::write(&source, MODULE).unwrap();
    let mut args = Vec::from(["-O1", "-shared", "--sysroot-rf=", "-o"].map(std::ffi::OsString::from));
    args.extend([module.clone().into_os_string(), source.into_os_string()]);
    assert_eq!(ringfence_driver::cc(ringfence_driver::args::Front::C, args), 0);
    let opened = Module::open(&module).unwrap();
    let _ = std::fs::remove_file(&module);
    opened
}

fn domain(threads: usize) -> Domain {
    let monitor = Policy::new().threads(threads).start().unwrap();
    Domain::new(&module(), Imports::new().policy(monitor)).unwrap()
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
    let none = domain(0);
    assert_eq!(ask(&none, "start_tell", 7), EAGAIN);
    assert_eq!(ask(&none, "process", 0), EAGAIN);
    let two = domain(2);
    assert_eq!(ask(&two, "start_spin", 0), 0);
    assert_eq!(ask(&two, "start_spin", 0), 0);
    assert_eq!(ask(&two, "start_spin", 0), EAGAIN);
    assert_eq!(two.usage().active, 2, "a thread that was made is inside");
    two.interrupt();
    until("interrupted threads stay", || two.usage().active == 0);
}

#[test]
fn a_thread_starts_at_a_function_and_nowhere_else() {
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
    let d = domain(1);
    assert_eq!(ask(&d, "start_spin", 0), 0);
    assert!(matches!(d.reset(), Err(DomainError::Busy { .. })));
    d.interrupt();
    until("busy for ever", || d.reset().is_ok());
    assert_eq!(d.usage().active, 0);
    assert_eq!(ask(&d, "start_spin", 0), 0, "the next user has the whole number");
    d.interrupt();
}

#[test]
fn a_fault_in_one_is_the_domains() {
    let d = domain(1);
    assert_eq!(ask(&d, "start_crash", 0), 0);
    until("no fault", || d.usage().faults == 1);
    let error = d.func::<(), i64>("what_was_told").unwrap().call().unwrap_err();
    assert!(matches!(error, CallError::Faulted), "{error}");
}

#[test]
fn the_last_handle_ends_them() {
    let held = |monitor: &std::sync::Arc<ringfence::policy::Monitor>| std::sync::Arc::strong_count(monitor);
    for clones in [0, 3] {
        let monitor = Policy::new().threads(2).start().unwrap();
        let d = Domain::new(&module(), Imports::new().policy(monitor.clone())).unwrap();
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
    let mut options = ringfence::DomainOptions::default();
    options.time_limit = Some(Duration::from_millis(50));
    let monitor = Policy::new().threads(1).start().unwrap();
    let d = Domain::link(&[module()], Imports::new().policy(monitor), &options).unwrap();
    assert_eq!(ask(&d, "start_spin", 0), 0);
    until("no end", || d.usage().active == 0);
    assert_eq!(d.usage().faults, 1);
}
