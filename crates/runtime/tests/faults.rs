//! What a crash becomes; signals, time limits, interrupts, fork.

mod support;

use ringfence_isa::window;
use ringfence_runtime::{
    Access, CallError, Domain, DomainError, DomainOptions, FaultKind, HostError, Imports, LoadError,
    LoadOptions, Module, Signature, Verdict, domain as runtime,
};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use support::{call, domain, domain_with, fault, imports, in_child, module, wait_until_begun};

#[test]
fn every_kind_of_fault() {
    let d = domain();
    let base = d.as_ref().base();
    let expect = |name: &str, args: &[u64], kind: FaultKind, function: &str| {
        let f = fault(&d, name, args);
        assert_eq!(f.kind, kind, "{name}: {f}");
        let frames = f.backtrace();
        assert_eq!(
            frames[0].function.as_deref(),
            Some(function),
            "{name}: {frames:?}"
        );
        assert!(
            frames[0].file.as_deref().is_some_and(|f| f.ends_with("basic.c")),
            "{name}: {frames:?}"
        );
        assert!(frames[0].line.is_some_and(|l| l > 10), "{name}: {frames:?}");
        assert!(d.faulted());
        assert!(matches!(call(&d, "add", &[1, 2]), Err(CallError::Faulted { .. })));
        d.reset().unwrap();
        assert_eq!(call(&d, "add", &[1, 2]).unwrap(), 3);
    };
    let bad = |address, access| FaultKind::BadAccess { address, access };
    expect("read_at", &[0], bad(base, Access::Read), "read_at");
    expect(
        "read_at",
        &[0xFFFF_FFFC],
        bad(base + 0xFFFF_FFFC, Access::Read),
        "read_at",
    );
    // A host address is the domain's own by the time it is used.
    expect(
        "read_at",
        &[0x7FFF_1234_0010],
        bad(base + 0x1234_0010, Access::Read),
        "read_at",
    );
    expect(
        "write_at",
        &[0x2_0000, 1],
        bad(base + 0x2_0000, Access::Write),
        "write_at",
    );
    expect(
        "write_at",
        &[0x1_0000, 1],
        bad(base + 0x1_0000, Access::Write),
        "write_at",
    );
    // The zeroes between header and stubs, and the first image's own header behind the stubs.
    for constant in [0x1_1000, 0x1_FFFC, 0x4_0000] {
        expect(
            "write_at",
            &[constant, 1],
            bad(base + constant, Access::Write),
            "write_at",
        );
    }
    let text = d.symbol("add").unwrap();
    expect("write_at", &[text, 1], bad(text, Access::Write), "write_at");
    expect("divide", &[1, 0], FaultKind::Division, "divide");
    expect("divide", &[0x8000_0000, u64::MAX], FaultKind::Division, "divide");
    expect("illegal", &[], FaultKind::IllegalInstruction, "illegal");
    expect("trap", &[], FaultKind::Trap, "trap");
    expect("recurse", &[1 << 40], FaultKind::ControlStack, "recurse");
    expect("deep", &[0], FaultKind::DataStack, "deep");
    for target in [
        0,
        0x1_1000,
        0x3_FFF8,
        0x4_0000,
        d.symbol("counter").unwrap(),
        text + 8,
        0x7FFF_0000_1000,
    ] {
        let f = fault(&d, "jump_to", &[target]);
        assert_eq!(f.kind, FaultKind::BadTarget, "{target:#x}: {f}");
        d.reset().unwrap();
    }
}

#[test]
fn the_first_failure_is_told_until_the_reset() {
    let d = domain();
    let thunk = support::entry(&d, "add").thunk(Signature::UNKNOWN);
    // SAFETY: a thunk of a function with two arguments.
    let add: extern "C" fn(u64, u64) -> u64 = unsafe { std::mem::transmute(thunk) };
    let first = |e: CallError| match e {
        CallError::Faulted { first } => *first.expect("the first failure"),
        e => panic!("{e}"),
    };
    let f = fault(&d, "divide", &[1, 0]);
    for _ in 0..2 {
        let again = call(&d, "add", &[1, 2]).unwrap_err();
        assert!(
            again.to_string().contains("reset it first (the first failure: "),
            "{again}"
        );
        assert!(again.to_string().contains("division by zero"), "{again}");
        assert!(matches!(first(again), CallError::Fault(known) if *known == *f));
        assert_eq!(add(1, 2), 0);
        assert!(matches!(first(runtime::take_error().unwrap()), CallError::Fault(known) if *known == *f));
    }
    // Another thread is told as well.
    let other = std::thread::scope(|s| s.spawn(|| call(&d, "add", &[1, 2])).join().unwrap());
    assert!(matches!(first(other.unwrap_err()), CallError::Fault(known) if *known == *f));
    // What was asked for before the reset and looked at behind it is no failure any more.
    assert_eq!(add(1, 2), 0);
    d.reset().unwrap();
    assert!(!matches!(
        runtime::take_error(),
        Some(CallError::Faulted { first: Some(_) })
    ));
    assert_eq!(add(1, 2), 3);
    fault(&d, "illegal", &[]);
    let again = call(&d, "add", &[1, 2]).unwrap_err();
    assert!(matches!(first(again), CallError::Fault(f) if f.kind == FaultKind::IllegalInstruction));
}

#[test]
fn check_mode_tells_the_whole_address() {
    let flags = [
        "--check",
        "--import=host_add,host_call,host_enter,host_stack,host_scale",
    ];
    let file = support::build("basic", &flags);
    let module = Module::open(&file, &LoadOptions::default()).unwrap();
    std::fs::remove_file(file).unwrap();
    let d = Domain::new(&[module], imports(), &DomainOptions::default()).unwrap();
    let base = d.as_ref().base();
    let inside = d.symbol("counter").unwrap();
    let outside = [
        0,
        8,
        0x1234_5678_9ABC,
        0xFFFF_8000_0000_0000,
        inside - (1 << 32),
        inside + (1 << 32),
        base - 4,
    ];
    for address in outside {
        for (name, args) in [("read_at", &[address][..]), ("write_at", &[address, 9])] {
            let f = fault(&d, name, args);
            assert_eq!(f.kind, FaultKind::OutsideWindow { address }, "{name}: {f}");
            assert!(f.to_string().contains(&format!("{address:#x}")), "{f}");
            assert_eq!(f.backtrace()[0].function.as_deref(), Some(name));
            // Every other register is as it was.
            assert_eq!(f.registers.general[7], address);
            d.reset().unwrap();
        }
    }
    assert_eq!(call(&d, "read_at", &[inside]).unwrap(), 5);
    // What is inside the window is told as ever, and so are other traps.
    let kind = FaultKind::BadAccess {
        address: base + 64,
        access: Access::Read,
    };
    assert_eq!(fault(&d, "read_at", &[base + 64]).kind, kind);
    d.reset().unwrap();
    assert_eq!(fault(&d, "illegal", &[]).kind, FaultKind::IllegalInstruction);
    d.reset().unwrap();
    assert_eq!(fault(&d, "trap", &[]).kind, FaultKind::Trap);
}

#[test]
fn a_process_in_which_all_memory_is_executable_is_refused() {
    in_child("a_process_in_which_all_memory_is_executable_is_refused", || {
        const READ_IMPLIES_EXEC: u64 = 0x0040_0000;
        let (module, domain) = (module(), domain());
        // SAFETY: changes what this child's later mappings allow.
        unsafe { libc::personality(READ_IMPLIES_EXEC) };
        let e = Domain::new(&[module], imports(), &DomainOptions::default()).unwrap_err();
        assert!(matches!(e, DomainError::Host(HostError::ReadImpliesExec)), "{e}");
        let e = Module::from_bytes("basic.rf", support::bytes(), &LoadOptions::default()).unwrap_err();
        assert!(matches!(e, LoadError::Host(HostError::ReadImpliesExec)), "{e}");
        assert_eq!(call(&domain, "add", &[1, 2]).unwrap(), 3);
    });
}

#[test]
fn backtraces_show_the_fenced_frames() {
    let d = domain();
    let f = fault(&d, "outer", &[16]);
    let names: Vec<_> = f
        .backtrace()
        .iter()
        .map(|f| f.function.clone().unwrap_or_default())
        .collect();
    assert_eq!(names, ["inner", "outer"]);
    let text = f.to_string();
    assert!(text.contains("inner") && text.contains("basic.c"), "{text}");
    d.reset().unwrap();
    let f = fault(&d, "recurse", &[1 << 40]);
    assert!(f.backtrace().len() > 10);
    // No host address among the registers.
    let base = d.as_ref().base();
    assert_eq!(f.registers.general[4], 0);
    assert_eq!(f.registers.rip >> 32, base >> 32);
}

#[test]
fn time_limits_hold() {
    let mut options = DomainOptions::default();
    options.time_limit = Some(Duration::from_millis(20));
    let d = domain_with(&options);
    for _ in 0..3 {
        let start = Instant::now();
        let f = fault(&d, "forever", &[]);
        let took = start.elapsed();
        assert_eq!(f.kind, FaultKind::TimeLimit);
        assert_eq!(f.backtrace()[0].function.as_deref(), Some("forever"));
        assert!(took >= Duration::from_millis(20), "{took:?}");
        // The machine may be busy; the benchmark measures how exact it is.
        assert!(took < Duration::from_secs(20), "{took:?}");
        d.reset().unwrap();
    }
    // Short calls are not in danger, however many.
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(60) {
        assert_eq!(call(&d, "add", &[1, 2]).unwrap(), 3);
    }
    // After a long sleep of the watchdog too.
    std::thread::sleep(Duration::from_millis(150));
    assert_eq!(fault(&d, "forever", &[]).kind, FaultKind::TimeLimit);
    d.reset().unwrap();
    // The same for code that is mostly in the gate.
    assert_eq!(fault(&d, "out_forever", &[]).kind, FaultKind::TimeLimit);
    d.reset().unwrap();
    d.set_time_limit(None);
    assert_eq!(call(&d, "spin", &[100_000_000]).unwrap(), 100_000_000);
}

#[test]
fn time_in_host_functions_counts() {
    let mut options = DomainOptions::default();
    options.time_limit = Some(Duration::from_millis(10));
    let slow = imports().closure("host_add", |_| {
        // Long enough for the watchdog to get its turn on a loaded machine.
        std::thread::sleep(Duration::from_millis(400));
        Verdict::Return
    });
    let d = Domain::new(&[module()], slow, &options).unwrap();
    let f = fault(&d, "call_out", &[1, 2]);
    assert_eq!(f.kind, FaultKind::TimeLimit);
    assert_eq!(f.backtrace()[0].function.as_deref(), Some("call_out"));
}

#[test]
fn any_thread_may_interrupt() {
    let d = domain();
    for name in ["announced", "out_announced"] {
        std::thread::scope(|s| {
            let (a, b) = (d.clone(), d.clone());
            let runner = s.spawn(move || fault(&a, name, &[]));
            wait_until_begun(&b);
            b.interrupt();
            assert_eq!(runner.join().unwrap().kind, FaultKind::Interrupted);
        });
        d.reset().unwrap();
    }
    // With nobody inside nothing happens.
    d.interrupt();
    assert_eq!(call(&d, "add", &[1, 2]).unwrap(), 3);
}

#[test]
fn a_fault_ends_the_calls_of_other_threads() {
    let d = domain();
    std::thread::scope(|s| {
        let a = d.clone();
        let runner = s.spawn(move || fault(&a, "announced", &[]));
        wait_until_begun(&d);
        assert_eq!(fault(&d, "illegal", &[]).kind, FaultKind::IllegalInstruction);
        assert_eq!(runner.join().unwrap().kind, FaultKind::Elsewhere);
    });
    d.reset().unwrap();
    assert_eq!(call(&d, "add", &[1, 2]).unwrap(), 3);
}

#[test]
fn faults_of_many_threads_at_once() {
    std::thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| {
                let d = domain();
                for i in 0..100 {
                    assert_eq!(fault(&d, "divide", &[i, 0]).kind, FaultKind::Division);
                    d.reset().unwrap();
                }
            });
        }
    });
}

static SEEN: AtomicU32 = AtomicU32::new(0);

fn install(signal: i32, handler: usize, flags: i32) {
    // SAFETY: installs a handler that is sound in signal context.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler;
        action.sa_flags = flags;
        assert_eq!(
            libc::sigaction(signal, &raw const action, std::ptr::null_mut()),
            0
        );
    }
}

/// A page that faults until the handler opens it.
static PAGE: OnceLock<u64> = OnceLock::new();

extern "C" fn open_page(_: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    SEEN.fetch_add(1, Ordering::SeqCst);
    // SAFETY: asks for the address and opens our own page.
    unsafe {
        assert_eq!((*info).si_addr() as u64, *PAGE.get().unwrap());
        libc::mprotect(
            *PAGE.get().unwrap() as *mut _,
            4096,
            libc::PROT_READ | libc::PROT_WRITE,
        );
    }
}

extern "C" fn plain_handler(_: i32) {
    SEEN.fetch_add(1, Ordering::SeqCst);
}

#[test]
fn faults_of_the_host_go_where_they_went_before() {
    in_child("faults_of_the_host_go_where_they_went_before", || {
        // SAFETY: a fresh page.
        let page = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                4096,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        } as u64;
        PAGE.set(page).unwrap();
        install(libc::SIGSEGV, open_page as *const () as usize, libc::SA_SIGINFO);
        install(libc::SIGFPE, plain_handler as *const () as usize, 0);
        let d = domain();
        assert_eq!(fault(&d, "read_at", &[64]).backtrace().len(), 1);
        d.reset().unwrap();
        assert_eq!(SEEN.load(Ordering::SeqCst), 0);
        // SAFETY: faults, and is repeated after the handler has opened the page.
        unsafe { (page as *mut u64).write_volatile(7) };
        assert_eq!(SEEN.load(Ordering::SeqCst), 1);
        // SAFETY: sends ourselves a signal that has a handler.
        unsafe { libc::raise(libc::SIGFPE) };
        assert_eq!(SEEN.load(Ordering::SeqCst), 2);
        assert_eq!(fault(&d, "divide", &[1, 0]).kind, FaultKind::Division);
        assert_eq!(SEEN.load(Ordering::SeqCst), 2);
        // In a callback.
        let page_of_host = imports().closure("host_add", move |_| {
            // SAFETY: as above.
            unsafe {
                libc::mprotect(page as *mut _, 4096, libc::PROT_NONE);
                (page as *mut u64).write_volatile(7);
            }
            Verdict::Return
        });
        let d = Domain::new(&[module()], page_of_host, &DomainOptions::default()).unwrap();
        call(&d, "call_out", &[1, 2]).unwrap();
        assert_eq!(SEEN.load(Ordering::SeqCst), 3);
    });
}

/// Runs `body` in a forked child and returns its wait status.
fn forked(body: impl FnOnce()) -> i32 {
    // SAFETY: the child runs `body` and leaves at once.
    unsafe {
        let pid = libc::fork();
        if pid == 0 {
            body();
            libc::_exit(0);
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(pid, &raw mut status, 0), pid);
        status
    }
}

#[test]
fn without_a_handler_a_host_fault_kills_as_ever() {
    in_child("without_a_handler_a_host_fault_kills_as_ever", || {
        // What Rust installed is not wanted here.
        install(libc::SIGSEGV, libc::SIG_DFL, 0);
        let d = domain();
        let _ = fault(&d, "read_at", &[64]);
        // SAFETY: meant to crash.
        let status = forked(|| unsafe { (64 as *mut u64).write_volatile(1) });
        assert!(
            libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSEGV,
            "{status:#x}"
        );
        // SAFETY: sends a signal.
        let status = forked(|| unsafe {
            libc::raise(libc::SIGSEGV);
        });
        assert!(
            libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSEGV,
            "{status:#x}"
        );
    });
}

extern "C" fn faulty_handler(_: i32) {
    // SAFETY: meant to crash.
    unsafe { (64 as *mut u64).write_volatile(1) };
}

static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// Does its part, then passes the signal to the handler that was there before, as handlers are advised to.
extern "C" fn passing_handler(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    if SEEN.fetch_add(1, Ordering::SeqCst) > 100 {
        // SAFETY: ends the child.
        unsafe { libc::_exit(9) };
    }
    let before = BEFORE.get().unwrap().sa_sigaction;
    // SAFETY: the handler before was installed with SA_SIGINFO.
    unsafe {
        let before: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) = std::mem::transmute(before);
        before(signal, info, context);
    }
}

#[test]
fn a_handler_of_the_host_that_faults_itself_kills_as_ever() {
    in_child("a_handler_of_the_host_that_faults_itself_kills_as_ever", || {
        for flags in [
            0,
            libc::SA_NODEFER,
            libc::SA_ONSTACK,
            libc::SA_NODEFER | libc::SA_ONSTACK,
        ] {
            let status = forked(|| {
                install(libc::SIGSEGV, faulty_handler as *const () as usize, flags);
                let d = domain();
                let _ = fault(&d, "read_at", &[64]);
                faulty_handler(0);
            });
            assert!(
                libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSEGV,
                "{status:#x} with flags {flags:#x}"
            );
        }
    });
}

#[test]
fn a_handler_that_passes_signals_on_is_called_once() {
    in_child("a_handler_that_passes_signals_on_is_called_once", || {
        install(libc::SIGSEGV, libc::SIG_DFL, 0);
        let d = domain();
        // SAFETY: asks for the handler, which is the runtime's.
        let before = unsafe {
            let mut before: libc::sigaction = std::mem::zeroed();
            libc::sigaction(libc::SIGSEGV, std::ptr::null(), &raw mut before);
            before
        };
        assert!(BEFORE.set(before).is_ok());
        install(
            libc::SIGSEGV,
            passing_handler as *const () as usize,
            libc::SA_SIGINFO | libc::SA_ONSTACK,
        );
        let _ = fault(&d, "read_at", &[64]);
        d.reset().unwrap();
        // The runtime takes the signal back when the next domain is made, and has a handler to pass it to that passes
        // it to the runtime.
        let e = domain();
        SEEN.store(0, Ordering::SeqCst);
        let _ = fault(&e, "read_at", &[64]);
        assert_eq!(
            SEEN.load(Ordering::SeqCst),
            0,
            "a domain's fault is none of the host's"
        );
        let status = forked(|| {
            faulty_handler(0);
        });
        assert!(
            libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSEGV,
            "{status:#x}"
        );
    });
}

#[test]
fn children_have_windows_of_their_own() {
    in_child("children_have_windows_of_their_own", || {
        let mut options = DomainOptions::default();
        options.time_limit = Some(Duration::from_millis(20));
        let d = domain_with(&options);
        assert_eq!(fault(&d, "forever", &[]).kind, FaultKind::TimeLimit);
        d.reset().unwrap();
        assert_eq!(call(&d, "increment", &[]).unwrap(), 6);
        let status = forked(|| {
            assert_eq!(call(&d, "increment", &[]).unwrap(), 7);
            assert_eq!(fault(&d, "divide", &[1, 0]).kind, FaultKind::Division);
            d.reset().unwrap();
            // The watchdog is made anew.
            assert_eq!(fault(&d, "forever", &[]).kind, FaultKind::TimeLimit);
            d.reset().unwrap();
            let e = domain();
            assert_eq!(call(&e, "add", &[2, 2]).unwrap(), 4);
        });
        assert_eq!(status, 0);
        assert_eq!(call(&d, "increment", &[]).unwrap(), 7);
        // From within a callback the child comes back into its copy.
        let forks = imports().closure("host_add", |f| {
            // SAFETY: the child goes on in its copy of the domain.
            f.result[0] = u64::from(unsafe { libc::fork() } == 0);
            Verdict::Return
        });
        let d = Domain::new(&[module()], forks, &DomainOptions::default()).unwrap();
        let r = call(&d, "call_out", &[1, 2]).unwrap();
        if r == 2 {
            // SAFETY: the child ends.
            unsafe { libc::_exit(i32::from(call(&d, "add", &[1, 2]).ok() != Some(3))) };
        }
        let mut status = 0;
        // SAFETY: waits for the child.
        unsafe { libc::wait(&raw mut status) };
        assert_eq!((r, status), (1, 0));
    });
}

static ENTERED: AtomicU32 = AtomicU32::new(0);
static DOMAIN: OnceLock<Domain> = OnceLock::new();

extern "C" fn enter_from_handler(_: i32) {
    let code = match call(DOMAIN.get().unwrap(), "add", &[1, 2]) {
        Ok(3) => 1,
        Err(CallError::Inside) => 2,
        Err(CallError::SignalStack) => 4,
        _ => 8,
    };
    ENTERED.fetch_or(code, Ordering::SeqCst);
}

#[test]
#[cfg_attr(
    ringfence_tsan,
    ignore = "ThreadSanitizer lets the host's signals wait until the domain has been left"
)]
fn a_handler_that_interrupts_a_domain_cannot_enter_one() {
    in_child("a_handler_that_interrupts_a_domain_cannot_enter_one", || {
        assert!(DOMAIN.set(domain()).is_ok());
        let d = domain();
        for (flags, allowed) in [(0, 1 | 2), (libc::SA_ONSTACK, 4 | 2)] {
            install(libc::SIGALRM, enter_from_handler as *const () as usize, flags);
            ENTERED.store(0, Ordering::SeqCst);
            bombarded(|| {
                assert_eq!(call(&d, "spin", &[20_000]).unwrap(), 20_000);
                assert_eq!(call(&d, "call_out", &[1, 2]).unwrap(), 4);
            });
            let seen = ENTERED.load(Ordering::SeqCst);
            assert!(
                seen & 2 != 0 && seen & !allowed == 0,
                "{seen} with flags {flags:#x}"
            );
        }
    });
}

/// Repeats `body` for a while, in which this thread gets SIGALRM all the time.
fn bombarded(body: impl Fn()) {
    // SAFETY: asks for the thread's own handle.
    let me = unsafe { libc::pthread_self() };
    let done = AtomicU32::new(0);
    std::thread::scope(|s| {
        s.spawn(|| {
            while done.load(Ordering::SeqCst) == 0 {
                // SAFETY: the thread waits for this one before it ends.
                unsafe { libc::pthread_kill(me, libc::SIGALRM) };
                std::thread::sleep(Duration::from_micros(150));
            }
        });
        struct Stop<'a>(&'a AtomicU32);
        impl Drop for Stop<'_> {
            fn drop(&mut self) {
                self.0.store(1, Ordering::SeqCst);
            }
        }
        let _stop = Stop(&done);
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(200) {
            body();
        }
    });
}

extern "C" fn hungry_handler(_: i32) {
    let mut room = [1u8; 24 << 10];
    std::hint::black_box(&mut room);
    SEEN.fetch_add(u32::from(room[77]), Ordering::SeqCst);
}

#[test]
#[cfg_attr(
    ringfence_tsan,
    ignore = "ThreadSanitizer's own handler runs on the control stack with SIGSEGV blocked, so the guard cannot open"
)]
fn host_handlers_on_the_control_stack_have_a_reserve() {
    in_child("host_handlers_on_the_control_stack_have_a_reserve", || {
        install(libc::SIGALRM, hungry_handler as *const () as usize, 0);
        let mut options = DomainOptions::default();
        options.control_stack = 64 << 10;
        let d = domain_with(&options);
        bombarded(|| {
            for depth in [100, 2000, 3000] {
                let _ = call(&d, "recurse", &[depth]).unwrap();
            }
            assert_eq!(fault(&d, "recurse", &[1 << 30]).kind, FaultKind::ControlStack);
            d.reset().unwrap();
        });
        assert!(SEEN.load(Ordering::SeqCst) > 10);
    });
}

/// Where [`counting_handler`] counts, in a domain.
static COUNTER: AtomicU64 = AtomicU64::new(0);

extern "C" fn counting_handler(signal: i32) {
    hungry_handler(signal);
    // SAFETY: the test keeps the domain, whose variable this is.
    unsafe { AtomicU32::from_ptr(COUNTER.load(Ordering::SeqCst) as *mut u32) }.fetch_add(1, Ordering::SeqCst);
}

/// A domain that creeps along while handlers come and go must not get at the reserve that they were given: the next one
/// would find none.
#[test]
#[cfg_attr(
    ringfence_tsan,
    ignore = "ThreadSanitizer's own handler runs on the control stack with SIGSEGV blocked, so the guard cannot open"
)]
fn domains_do_not_get_the_reserve_of_handlers() {
    in_child("domains_do_not_get_the_reserve_of_handlers", || {
        let mut options = DomainOptions::default();
        options.control_stack = 64 << 10;
        let d = domain_with(&options);
        COUNTER.store(call(&d, "signals_place", &[]).unwrap(), Ordering::SeqCst);
        install(libc::SIGALRM, counting_handler as *const () as usize, 0);
        bombarded(|| {
            assert_eq!(fault(&d, "creep", &[2000]).kind, FaultKind::ControlStack);
            d.reset().unwrap();
        });
        assert!(SEEN.load(Ordering::SeqCst) > 10);
    });
}

#[test]
fn threads_with_blocked_signals_and_no_alternate_stack() {
    let d = domain();
    std::thread::scope(|s| {
        s.spawn(|| {
            // SAFETY: changes this thread's own mask and alternate stack.
            unsafe {
                let mut all: libc::sigset_t = std::mem::zeroed();
                libc::sigfillset(&raw mut all);
                libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut());
                let off = libc::stack_t {
                    ss_sp: std::ptr::null_mut(),
                    ss_flags: libc::SS_DISABLE,
                    ss_size: 0,
                };
                libc::sigaltstack(&raw const off, std::ptr::null_mut());
            }
            let mut word = [0; 4];
            assert!(d.as_ref().read(d.as_ref().base(), &mut word).is_err());
            assert_eq!(fault(&d, "recurse", &[1 << 40]).kind, FaultKind::ControlStack);
        });
    });
}

/// Operands through `r14` reach above the window's end: into what is inaccessible there, whoever's it is.
#[test]
fn what_reaches_above_a_window_is_the_domains_fault() {
    in_child("what_reaches_above_a_window_is_the_domains_fault", || {
        if !std::arch::is_x86_feature_detected!("avx2") {
            return;
        }
        let file = support::build_file("held.s", &["--no-rewrite"]);
        let module = Module::open(&file, &LoadOptions::default()).unwrap();
        std::fs::remove_file(file).unwrap();
        let new = || {
            let modules = std::slice::from_ref(&module);
            Domain::new(modules, Imports::new(), &DomainOptions::default()).unwrap()
        };
        let (low, high) = (new(), new());
        let (base, above) = (low.as_ref().base(), high.as_ref().base());
        assert_eq!(
            base + window::SIZE,
            above,
            "the first windows of a process are neighbours"
        );
        let whole = |d: &Domain| {
            let mut bytes = vec![0; 0x1_0000];
            d.as_ref()
                .read(d.as_ref().base() + u64::from(window::HEADER), &mut bytes)
                .unwrap();
            (bytes, call(d, "load", &[d.symbol("word").unwrap()]).unwrap())
        };
        let before = (whole(&low), whole(&high));
        assert_eq!(before.1.1, 0x1122_3344_5566_7788);
        const REACH: u64 = window::HELD_REACH as u64;
        // The lower of two neighbours, and the last window of a row. The upper halves of arguments do not count.
        for (d, own) in [(&low, base), (&high, above)] {
            for start in [
                0xFFFF_FFFFu64,
                0x1234_FFFF_FFFF,
                u64::MAX,
                0xFFFF_8009,
                0xFFFF_8010,
            ] {
                let far = own + (start & 0xFFFF_FFFF) + REACH - 8;
                assert!((own + window::SIZE..own + window::SIZE + REACH).contains(&far));
                for (name, address, access) in [
                    ("load_far", far, Access::Read),
                    ("store_far", far, Access::Write),
                    ("store_farthest", far + 7, Access::Write),
                    ("store_masked", far + 7, Access::Write),
                ] {
                    let f = fault(d, name, &[start, u64::MAX]);
                    assert_eq!(f.kind, FaultKind::BadAccess { address, access }, "{name}: {f}");
                    let told = f.to_string();
                    assert!(
                        told.contains(&format!("{address:#x}")) && told.contains(name),
                        "{told}"
                    );
                    assert!((own..own + window::SIZE).contains(&f.instruction()));
                    assert!(d.faulted());
                    d.reset().unwrap();
                }
                // What is masked out is not there at all.
                call(d, "store_masked", &[start, 0]).unwrap();
            }
            // The last bytes of the window and the first above them in one access.
            let f = fault(d, "store", &[0xFFFF_FFFC, 7]);
            assert!(
                matches!(
                    f.kind,
                    FaultKind::BadAccess {
                        access: Access::Write,
                        ..
                    }
                ),
                "{f}"
            );
            d.reset().unwrap();
        }
        assert!(!low.faulted() && !high.faulted());
        assert!(before == (whole(&low), whole(&high)));
        for d in [&low, &high] {
            let word = d.symbol("word").unwrap();
            call(d, "store", &[word & 0xFFFF_FFFF, 99]).unwrap();
            assert_eq!(call(d, "load_far", &[word - REACH + 8]).unwrap(), 99);
        }
    });
}
