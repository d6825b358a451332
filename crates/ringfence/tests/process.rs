//! Domains in processes of their own.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use ringfence::dynamic::Argument;
use ringfence::policy::{Captured, Policy, Stream};
use ringfence::{
    Access, Backend, CallError, Caller, Cancel, Domain, DomainError, DomainOptions, FaultKind, Imports,
    LimitHit, Module, OnLimit, Pool, Ptr, Signature,
};

fn options() -> DomainOptions {
    let mut options = DomainOptions::default();
    options.backend = Backend::Process;
    options
}

fn make(module: &Module, imports: Imports) -> Domain {
    Domain::instantiate(std::slice::from_ref(module), imports, &options()).expect("a domain in a process")
}

fn basic() -> Domain {
    make(&support::module("basic"), support::basic_imports())
}

/// Processes of this one's that run the worker.
fn workers() -> Vec<i32> {
    let me = std::process::id().to_string();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse() else {
            continue;
        };
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let mut words = line.split(|&b| b == 0);
        let worker = words.next().is_some_and(|w| w.ends_with(b"ringfence-worker"));
        if worker && words.next() == Some(me.as_bytes()) {
            found.push(pid);
        }
    }
    found
}

/// The one worker that this adds.
fn worker_of(make: impl FnOnce() -> Domain) -> (Domain, i32) {
    // Other tests of this program start workers too.
    static ONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let domain = make();
    // The window's header is where only its worker has something.
    let base = domain.memory().base();
    let name = format!("{base:x}-");
    let mark = domain
        .memory()
        .put(0x1234_5678_9ABC_DEF0_u64 ^ u64::from(std::process::id()))
        .unwrap();
    let expected = mark.read().unwrap().into_inner_unchecked();
    for pid in workers() {
        let _ = &name;
        let mut word = [0u8; 8];
        let mine = libc::iovec {
            iov_base: word.as_mut_ptr().cast(),
            iov_len: 8,
        };
        let theirs = libc::iovec {
            iov_base: mark.ptr().address() as *mut _,
            iov_len: 8,
        };
        // SAFETY: our own buffer.
        let n = unsafe { libc::process_vm_readv(pid, &raw const mine, 1, &raw const theirs, 1, 0) };
        if n != 8 || u64::from_le_bytes(word) != expected {
            continue;
        }
        mark.read().unwrap();
        domain.memory().write(mark.ptr(), 0).unwrap();
        // SAFETY: as above.
        unsafe { libc::process_vm_readv(pid, &raw const mine, 1, &raw const theirs, 1, 0) };
        if u64::from_le_bytes(word) == 0 {
            drop(mark);
            return (domain, pid);
        }
        domain.memory().write(mark.ptr(), expected).unwrap();
    }
    panic!("no worker has what was written");
}

#[test]
fn calls_and_memory() {
    let domain = basic();
    assert_eq!(domain.backend(), Backend::Process);
    assert_eq!(
        domain.func::<(i32, i32), i32>("add").unwrap().call(2, 3).unwrap(),
        5
    );
    let mixed = domain.func::<(i32, f64, i64, f32, u8), f64>("mixed").unwrap();
    assert_eq!(mixed.call(1, 2.5, 3, 0.5, 4).unwrap(), 15.0);
    type Ten = (f64, f64, f64, f64, f64, f64, f64, f64, f64, f64);
    let ten = domain.func::<Ten, f64>("ten_doubles").unwrap();
    assert_eq!(ten.call(1., 1., 1., 1., 1., 1., 1., 1., 1., 1.).unwrap(), 55.0);
    type Eight = (i64, i64, i64, i64, i64, i64, i64, i64);
    let eight = domain.func::<Eight, i64>("eight").unwrap();
    assert_eq!(eight.call(1, 2, 3, 4, 5, 6, 7, 8).unwrap(), 87_654_321);
    let untyped = domain.function("eight").unwrap();
    assert_eq!(untyped.call((1..=8).map(Argument::Int)).unwrap().int, 87_654_321);
    let host_eight = domain.func::<(), i64>("call_host_eight").unwrap();
    assert_eq!(host_eight.call().unwrap(), 87_654_321);
    let odd = domain.func::<(u64,), bool>("is_odd").unwrap();
    assert_eq!(odd.call(3).unwrap(), true);
    let narrow = domain.func::<(i8,), i8>("narrow").unwrap();
    assert_eq!(narrow.call(-128).unwrap(), 127);
    assert_eq!(
        domain.func::<(f32,), f32>("half").unwrap().call(3.0).unwrap(),
        1.5
    );

    // Pointers are the domain's own numbers.
    let text = domain.memory().put_c_string("twelve").unwrap();
    assert_eq!(
        domain
            .func::<(Ptr<u8>,), usize>("upper")
            .unwrap()
            .call(text.ptr())
            .unwrap(),
        6
    );
    let text = domain.memory().read_string(text.ptr(), 100).unwrap();
    assert_eq!(text.into_inner_unchecked(), "TWELVE");
    let banner = domain
        .func::<(), Ptr<u8>>("where_is_banner")
        .unwrap()
        .call()
        .unwrap();
    let there = domain.memory().read_string(banner, 100).unwrap();
    assert_eq!(there.into_inner_unchecked(), "hello from inside");
    // Rights hold for the host too.
    let banner: Ptr<u8> = banner.into();
    assert!(domain.memory().write(banner, 0u8).is_err());
    assert!(domain.memory().read::<u32>(Ptr::NULL).is_err());
    assert!(
        domain
            .memory()
            .read::<u32>(Ptr::from_address(domain.memory().base()))
            .is_err()
    );
    let counter = domain.object::<i32>("counter").unwrap();
    assert_eq!(domain.memory().read(counter).unwrap(), 7);
    let big = domain.memory().alloc_array::<u8>(1 << 20).unwrap();
    assert!(domain.memory_used() >= 1 << 20);
    drop(big);
    assert!(matches!(
        domain.func::<(), ()>("nobody"),
        Err(DomainError::NoExport { .. })
    ));
    assert!(matches!(
        domain.func::<(), ()>("counter"),
        Err(DomainError::NotFunction { .. })
    ));
    assert!(matches!(
        domain.func_at::<(), ()>(Ptr::from_address(8)),
        Err(DomainError::NoEntry { .. })
    ));
    assert!(domain.usage().calls > 0);
}

#[test]
fn a_thunk_of_c() {
    let domain = basic();
    let signature = Signature {
        ints: 2,
        int_results: 1,
        ..Signature::NOTHING
    };
    let code = domain.function("add").unwrap().thunk(signature);
    // SAFETY: a pointer to a C function of that type.
    let add: extern "C" fn(i32, i32) -> i32 = unsafe { std::mem::transmute(code) };
    assert_eq!(add(2, 3), 5);
    drop(domain);
    assert_eq!(add(2, 3), 0);
    assert!(matches!(ringfence::dynamic::take_error(), Some(CallError::Gone)));
}

#[test]
fn host_functions_use_the_domain_they_are_called_from() {
    let text = "
        long ask(const char *text, long depth);
        long run(long depth) { return ask(\"from inside\", depth) + 1; }
    ";
    let module = support::from_text(text, &["--import=ask"]);
    let domain: Arc<std::sync::OnceLock<Domain>> = Arc::default();
    let inner = domain.clone();
    let imports = Imports::new().func("ask", move |caller: &Caller, text: Ptr<u8>, depth: i64| {
        let text = caller.memory().read_string(text, 100)?.into_inner_unchecked();
        assert_eq!(text, "from inside");
        let own = caller.memory().put(depth)?;
        assert_eq!(own.read()?, depth);
        if depth == 0 {
            return Ok::<i64, ringfence::Error>(0);
        }
        // On the same thread, inside the call.
        let run = inner.get().unwrap().func::<(i64,), i64>("run")?;
        Ok(run.call(depth - 1)?.into_inner_unchecked())
    });
    let _ = domain.set(make(&module, imports));
    let run = domain.get().unwrap().func::<(i64,), i64>("run").unwrap();
    assert_eq!(run.call(20).unwrap(), 21);
}

#[test]
fn a_host_function_that_fails_ends_the_call() {
    let fail = Arc::new(AtomicBool::new(true));
    let asked = fail.clone();
    let imports = support::basic_imports().func("host_add", move |a: i32, b: i32| {
        match asked.load(Ordering::Relaxed) {
            true => Err("not today"),
            false => Ok(a + b),
        }
    });
    let domain = make(&support::module("basic"), imports);
    let call = domain.func::<(i32, i32), i32>("call_host_add").unwrap();
    match call.call(1, 2) {
        Err(CallError::Host(failure)) => {
            let text = failure.to_string();
            assert!(
                text.contains("not today") && text.contains("call_host_add"),
                "{text}"
            );
        }
        other => panic!("{other:?}"),
    }
    assert!(domain.faulted());
    assert!(matches!(call.call(1, 2), Err(CallError::Faulted { .. })));
    fail.store(false, Ordering::Relaxed);
    domain.reset().unwrap();
    assert_eq!(call.call(1, 2).unwrap(), 4);
    // A panic is one too.
    let imports = support::basic_imports().func("host_add", |_: i32, _: i32| -> i32 { panic!("on purpose") });
    let domain = make(&support::module("basic"), imports);
    let call = domain.func::<(i32, i32), i32>("call_host_add").unwrap();
    match call.call(1, 2) {
        Err(e) => assert!(e.to_string().contains("on purpose"), "{e}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn faults_are_the_same_reports() {
    let text = "
        int *nowhere = (int *)0x5000;
        int poke(int value) { *nowhere = value; return 0; }
        int deep(int n) { volatile char room[4096]; room[0] = n; return n ? deep(n + 1) + room[0] : 0; }
        int number = 5;
        int count(void) { return ++number; }
    ";
    let module = support::from_text(text, &["-g"]);
    let window = module.instantiate(Imports::new()).unwrap();
    let domain = make(&module, Imports::new());
    let fault = |d: &Domain, f: &str| match d.func::<(i32,), i32>(f).unwrap().call(3) {
        Err(CallError::Fault(fault)) => *fault,
        other => panic!("{f}: {other:?}"),
    };
    let (one, other) = (fault(&window, "poke"), fault(&domain, "poke"));
    let address = |d: &Domain| d.memory().base() + 0x5000;
    let kind = |d: &Domain| FaultKind::BadAccess {
        address: address(d),
        access: Access::Write,
    };
    assert_eq!((&one.kind, &other.kind), (&kind(&window), &kind(&domain)));
    let names = |f: &ringfence::Fault| {
        let frames = f.backtrace().into_iter();
        frames
            .map(|f| (f.function, f.line, f.module, f.offset))
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&one), names(&other));
    assert_eq!(one.addresses().len(), other.addresses().len());
    domain.reset().unwrap();
    assert_eq!(domain.resets(), 1);
    assert!(matches!(
        fault(&domain, "deep").kind,
        FaultKind::DataStack | FaultKind::ControlStack
    ));
    domain.reset().unwrap();
    let count = domain.func::<(), i32>("count").unwrap();
    assert_eq!(
        (
            count.call().unwrap().into_inner_unchecked(),
            count.call().unwrap().into_inner_unchecked()
        ),
        (6, 7)
    );
    domain.reset().unwrap();
    assert_eq!(count.call().unwrap(), 6, "data is as it was");
    assert_eq!(domain.usage().faults, 2);
}

const LOOPS: &str = "
    volatile int go = 1;
    int loop(int value) { while (go) { } return value; }
    int same(int value) { return value; }
";

#[test]
fn limits_end_calls() {
    let module = support::from_text(LOOPS, &[]);
    let mut limited = options();
    limited.time_limit = Some(Duration::from_millis(30));
    limited.call_limit = Some(1000);
    let told = Arc::new(AtomicU32::new(0));
    let counted = told.clone();
    let imports = Imports::new().on_limit(move |_, hit: &LimitHit| {
        if let LimitHit::CallTime { limit: 30_000_000 } = hit {
            counted.fetch_add(1, Ordering::Relaxed);
        }
        OnLimit::Keep
    });
    let domain = Domain::instantiate(std::slice::from_ref(&module), imports, &limited).unwrap();
    let call = domain.func::<(i32,), i32>("loop").unwrap();
    match call.call(1) {
        Err(CallError::Fault(fault)) => assert_eq!(fault.kind, FaultKind::TimeLimit),
        other => panic!("{other:?}"),
    }
    assert_eq!(told.load(Ordering::Relaxed), 1);
    domain.reset().unwrap();
    // From another thread.
    domain.set_time_limit(None).unwrap();
    let done = Arc::new(AtomicBool::new(false));
    std::thread::scope(|scope| {
        let (other, over) = (domain.clone(), done.clone());
        scope.spawn(move || {
            while !over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(5));
                other.interrupt().unwrap();
            }
        });
        match call.call(1) {
            Err(CallError::Fault(fault)) => assert_eq!(fault.kind, FaultKind::Interrupted),
            other => panic!("{other:?}"),
        }
        done.store(true, Ordering::Relaxed);
    });
    // By a word of the host's.
    let word = Arc::new(AtomicI32::new(0));
    let mut cancelled = options();
    cancelled.cancel = Some(Cancel::new(word.clone()));
    let domain = Domain::instantiate(std::slice::from_ref(&module), Imports::new(), &cancelled).unwrap();
    let call = domain.func::<(i32,), i32>("loop").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(30));
            word.store(1, Ordering::Release);
        });
        match call.call(1) {
            Err(CallError::Fault(fault)) => assert_eq!(fault.kind, FaultKind::Interrupted),
            other => panic!("{other:?}"),
        }
    });
    // Memory, and an option that cannot be.
    let mut small = options();
    small.memory_limit = 1 << 20;
    let domain = Domain::instantiate(std::slice::from_ref(&module), Imports::new(), &small).unwrap();
    assert!(matches!(
        domain.memory().alloc_array::<u8>(2 << 20),
        Err(ringfence::MemoryError::Limit { limit: 1_048_576, .. })
    ));
    let mut bad = options();
    bad.max_lanes = 70;
    assert!(matches!(
        Domain::instantiate(std::slice::from_ref(&module), Imports::new(), &bad),
        Err(DomainError::Option {
            option: "max_lanes",
            ..
        })
    ));
}

#[test]
fn system_calls_go_to_the_hosts_policy() {
    let output = Captured::default();
    let policy = Policy::new()
        .stdout(Stream::Capture(output.clone()))
        .clocks(false);
    let monitor = policy.start().unwrap();
    let module = support::module("syscall");
    let domain = make(&module, Imports::new().policy(monitor));
    type Call = (i64, i64, i64, i64, i64, i64, i64);
    let call = domain.func::<Call, i64>("system_call").unwrap();
    let sys = |number: i64, a: i64, b: i64, c: i64| {
        call.call(number, a, b, c, 0, 0, 0)
            .unwrap()
            .into_inner_unchecked()
    };
    let text = domain.memory().put_slice(b"words").unwrap();
    assert_eq!(sys(libc::SYS_write, 1, text.ptr().address() as i64, 5), 5);
    assert_eq!(output.take(), b"words");
    assert_eq!(sys(libc::SYS_write, 1, 0x10, 5), -i64::from(libc::EFAULT));
    // Nothing is opened that was not granted, and memory is the domain's own.
    let path = domain.memory().put_c_string("/etc/passwd").unwrap();
    assert!(sys(libc::SYS_open, path.ptr().address() as i64, 0, 0) < 0);
    let brk = sys(libc::SYS_brk, 0, 0, 0);
    assert_eq!(sys(libc::SYS_brk, brk + 8192, 0, 0), brk + 8192);
    assert_eq!(
        domain
            .memory()
            .read::<u64>(Ptr::from_address(brk as u64))
            .unwrap(),
        0
    );
}

#[test]
fn threads_have_slots_of_their_own() {
    let domain = basic();
    std::thread::scope(|scope| {
        for t in 0..4 {
            let domain = &domain;
            scope.spawn(move || {
                let add = domain.func::<(i32, i32), i32>("call_host_add").unwrap();
                for n in 0..200 {
                    assert_eq!(add.call(t, n).unwrap(), t + n + 1);
                }
            });
        }
    });
    // Threads that have ended have given theirs back.
    for _ in 0..100 {
        let domain = domain.clone();
        std::thread::spawn(move || {
            let add = domain.func::<(i32, i32), i32>("add").unwrap();
            assert_eq!(add.call(1, 1).unwrap(), 2);
        })
        .join()
        .unwrap();
    }
}

#[test]
fn a_worker_that_is_killed_is_an_error_and_a_reset_away() {
    let module = support::from_text(LOOPS, &[]);
    let (domain, worker) = worker_of(|| make(&module, Imports::new()));
    let call = domain.func::<(i32,), i32>("loop").unwrap();
    let same = domain.func::<(i32,), i32>("same").unwrap();
    let text = domain.memory().put(5u32).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(50));
            // SAFETY: a child of ours.
            unsafe { libc::kill(worker, libc::SIGKILL) };
        });
        let begin = Instant::now();
        match call.call(1) {
            Err(CallError::Process { how }) => assert!(how.contains("signal 9"), "{how}"),
            other => panic!("{other:?}"),
        }
        assert!(begin.elapsed() < Duration::from_secs(20));
    });
    assert!(domain.faulted());
    assert!(matches!(same.call(1), Err(CallError::Process { .. })));
    assert!(text.read().is_err());
    domain.reset().unwrap();
    assert!(!domain.faulted());
    assert_eq!(same.call(7).unwrap(), 7, "functions stay valid");
    // Nothing is left of the first one.
    let there = || workers().contains(&worker);
    assert!(!there());
}

#[test]
fn dropped_domains_leave_no_process() {
    let (domain, worker) = worker_of(basic);
    assert!(workers().contains(&worker));
    let status = std::fs::read_to_string(format!("/proc/{worker}/status")).unwrap();
    let field = |name: &str| {
        let line = status.lines().find(|l| l.starts_with(name)).unwrap_or_default();
        line.split_whitespace().nth(1).unwrap_or_default().to_owned()
    };
    assert_eq!(
        (field("Seccomp:"), field("NoNewPrivs:")),
        ("2".to_owned(), "1".to_owned())
    );
    // Nothing of the host's is open in it.
    for fd in std::fs::read_dir(format!("/proc/{worker}/fd")).unwrap().flatten() {
        let target = std::fs::read_link(fd.path()).unwrap_or_default();
        let target = target.to_string_lossy();
        // By the socket it gets files, and the host reads nothing from it.
        let known = ["memfd:", "/dev/null", "socket:"];
        assert!(known.iter().any(|k| target.contains(k)), "{target}");
    }
    drop(domain);
    assert!(!workers().contains(&worker));
}

#[test]
fn pools_keep_warm_processes() {
    let module = support::module("basic");
    let pool = Pool::new(1, move || {
        Domain::instantiate(
            std::slice::from_ref(&module),
            support::basic_imports(),
            &options(),
        )
    });
    let bump = |d: &Domain| {
        d.func::<(), i64>("bump")
            .unwrap()
            .call()
            .unwrap()
            .into_inner_unchecked()
    };
    let base = {
        let domain = pool.take().unwrap();
        assert_eq!((bump(&domain), bump(&domain)), (8, 9));
        domain.memory().base()
    };
    assert_eq!(pool.waiting(), 1);
    let domain = pool.take().unwrap();
    assert_eq!((bump(&domain), domain.memory().base()), (8, base));
}

#[test]
fn a_forked_host_has_no_part_in_it() {
    let domain = basic();
    let add = domain.func::<(i32, i32), i32>("add").unwrap();
    assert_eq!(add.call(1, 2).unwrap(), 3);
    // SAFETY: the child makes calls that are refused at once, and ends without running anything else.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let refused = matches!(add.call(1, 2), Err(CallError::Process { .. }));
        let read = domain
            .memory()
            .read::<i32>(Ptr::from_address(domain.memory().base() + 0x1000));
        drop(add);
        drop(domain);
        // SAFETY: ends this child.
        unsafe { libc::_exit(if refused && read.is_err() { 7 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: our own child.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(libc::WEXITSTATUS(status), 7);
    assert_eq!(add.call(1, 2).unwrap(), 3, "the worker lives");
}

#[test]
fn constructors_may_use_the_host() {
    let text = "
        int next_number(int *at);
        static int number;
        __attribute__((constructor)) static void begin(void) { int more; number = next_number(&more) + more; }
        int get_number(void) { return number; }
        int run(void) { return number; }
    ";
    let module = support::from_text(text, &["--import=next_number"]);
    let imports = || {
        Imports::new().func("next_number", |caller: &Caller, at: Ptr<i32>| {
            let own = caller.memory().put(40)?;
            caller.memory().write(at, 2)?;
            Ok::<i32, ringfence::Error>(own.read()?.into_inner_unchecked())
        })
    };
    let domain = make(&module, imports());
    assert_eq!(domain.func::<(), i32>("get_number").unwrap().call().unwrap(), 42);
    domain.reset().unwrap();
    assert_eq!(domain.func::<(), i32>("get_number").unwrap().call().unwrap(), 42);
    let failing = Imports::new().func("next_number", |_: Ptr<i32>| Err::<i32, _>("none left"));
    match Domain::instantiate(std::slice::from_ref(&module), failing, &options()) {
        Err(e @ DomainError::Init { .. }) => assert!(e.to_string().contains("none left"), "{e}"),
        other => panic!("{other:?}"),
    }
    match Domain::instantiate(std::slice::from_ref(&module), Imports::new(), &options()) {
        Err(DomainError::Unresolved { symbol, .. }) => assert_eq!(symbol, "next_number"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn memory_is_shared_and_pointers_are_the_same_numbers() {
    let domain = basic();
    let text = domain.memory().put_c_string("twelve").unwrap();
    let upper = domain.func::<(Ptr<u8>,), usize>("upper").unwrap();
    assert_eq!(upper.call(text.ptr()).unwrap(), 6);
    let at = text.ptr().address() as *mut u8;
    // SAFETY: a page of the domain's, mapped here as long as the domain lives; nobody is in the domain.
    unsafe {
        assert_eq!(std::slice::from_raw_parts(at, 7), b"TWELVE\0");
        at.write(b'x');
    }
    assert_eq!(upper.call(text.ptr()).unwrap(), 6);
    // SAFETY: as above.
    let first = unsafe { at.read() };
    assert_eq!(first, b'X', "what the host has stored the module finds");
    // Nobody can make it shorter, so there is a page behind every address.
    let seals = std::fs::read_dir("/proc/self/fd")
        .unwrap()
        .flatten()
        .filter_map(|fd| {
            let target = std::fs::read_link(fd.path()).ok()?;
            let number: i32 = fd.file_name().to_str()?.parse().ok()?;
            target.to_str()?.contains("ringfence-process").then_some(number)
        });
    let mut looked = 0;
    for fd in seals {
        // SAFETY: asks only.
        let has = unsafe { libc::fcntl(fd, libc::F_GET_SEALS) };
        let wanted = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        if has >= 0 {
            assert_eq!(has & wanted, wanted);
            looked += 1;
        }
    }
    assert!(looked > 0);
}

#[test]
fn checkpoints_are_kept_until_the_worker_ends() {
    let (domain, worker) = worker_of(basic);
    let bump = domain.func::<(), i64>("bump").unwrap();
    let next = || bump.call().unwrap().into_inner_unchecked();
    assert_eq!((next(), next()), (8, 9));
    domain.checkpoint().unwrap();
    assert_eq!(next(), 10);
    domain.reset().unwrap();
    assert_eq!(next(), 10, "the checkpoint's state");
    let before = domain.resets();
    // SAFETY: a child of ours.
    unsafe { libc::kill(worker, libc::SIGKILL) };
    while bump.call().is_ok() {}
    domain.reset().unwrap();
    assert!(
        domain.resets() > before,
        "{} resets, then {before}",
        domain.resets()
    );
    assert_eq!(next(), 8, "another worker has what the module begins with");
}

#[test]
fn regions_are_there_for_another_worker_too() {
    use ringfence::{Region, Rights};
    let (domain, worker) = worker_of(basic);
    let region = Region::new(4096).unwrap();
    region.give(&domain, Rights::Read).unwrap();
    region.write(0, 4711i32).unwrap();
    let read = domain.func::<(Ptr<i32>,), i32>("wild_read").unwrap();
    assert_eq!(read.call(region.ptr_in(&domain)).unwrap(), 4711);
    // SAFETY: a child of ours.
    unsafe { libc::kill(worker, libc::SIGKILL) };
    while read.call(region.ptr_in(&domain)).is_ok() {}
    domain.reset().unwrap();
    assert_eq!(read.call(region.ptr_in(&domain)).unwrap(), 4711);
    region.give(&domain, Rights::None).unwrap();
    assert!(read.call(region.ptr_in(&domain)).is_err());
}

#[test]
fn what_holds_the_worker_is_told() {
    let held = basic().confinement().expect("a process of its own");
    assert!(held.system_calls, "{held}");
    assert!(
        support::module("basic")
            .instantiate(support::basic_imports())
            .unwrap()
            .confinement()
            .is_none()
    );
}

#[test]
fn more_threads_than_slots_is_an_error_and_no_more() {
    let domain = basic();
    let add = domain.func::<(i32, i32), i32>("add").unwrap();
    let (all, refused) = (std::sync::Barrier::new(70), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for _ in 0..70 {
            scope.spawn(|| {
                match add.call(1, 2) {
                    Ok(sum) => assert_eq!(sum, 3),
                    Err(CallError::NoLane { limit: 63 }) => drop(refused.fetch_add(1, Ordering::Relaxed)),
                    Err(e) => panic!("{e}"),
                }
                all.wait();
            });
        }
    });
    assert!(refused.load(Ordering::Relaxed) >= 7);
    // The slots of threads that have ended are free.
    let sum = std::thread::scope(|scope| scope.spawn(|| add.call(1, 2).unwrap()).join().unwrap());
    assert_eq!(sum, 3);
}

/// Stops a worker. All of its threads stand when this returns: the signal alone reaches them later.
fn stop(worker: i32) {
    // SAFETY: a child of ours; writes one structure, and leaves the child's state for whoever waits for it.
    unsafe {
        libc::kill(worker, libc::SIGSTOP);
        let mut told: libc::siginfo_t = std::mem::zeroed();
        let done = libc::waitid(
            libc::P_PID,
            worker as u32,
            &raw mut told,
            libc::WSTOPPED | libc::WNOWAIT,
        );
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    }
}

#[test]
fn a_worker_that_does_not_end_a_call_in_time_is_ended() {
    let module = support::from_text(LOOPS, &[]);
    let (domain, worker) = worker_of(|| make(&module, Imports::new()));
    let same = domain.func::<(i32,), i32>("same").unwrap();
    assert_eq!(same.call(1).unwrap(), 1);
    domain.set_time_limit(Some(Duration::from_millis(30))).unwrap();
    // It cannot do its work.
    stop(worker);
    match same.call(1) {
        Err(CallError::Fault(fault)) => assert_eq!(fault.kind, FaultKind::TimeLimit),
        other => panic!("{other:?}"),
    }
    assert!(!workers().contains(&worker));
    domain.reset().unwrap();
    assert_eq!(same.call(7).unwrap(), 7);
}

#[test]
fn a_worker_ends_with_a_host_that_is_killed() {
    let me = std::env::current_exe().unwrap();
    if std::env::var_os("RINGFENCE_TEST_ORPHAN").is_some() {
        let (_domain, worker) = worker_of(basic);
        println!("worker {worker}");
        loop {
            std::thread::sleep(Duration::from_secs(60));
        }
    }
    let name = "a_worker_ends_with_a_host_that_is_killed";
    let mut host = std::process::Command::new(me)
        .args(["--exact", name, "--nocapture"])
        .env("RINGFENCE_TEST_ORPHAN", "1")
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let lines = std::io::BufRead::lines(std::io::BufReader::new(host.stdout.take().unwrap()));
    let worker: i32 = lines
        .map_while(Result::ok)
        .find_map(|line| line.split_once("worker ")?.1.parse().ok())
        .expect("the number of the worker");
    let runs = || {
        let status = std::fs::read_to_string(format!("/proc/{worker}/stat")).unwrap_or_default();
        status.contains("ringfence-worke") && !status.contains(") Z ")
    };
    assert!(runs());
    host.kill().unwrap();
    host.wait().unwrap();
    for _ in 0..3000 {
        if !runs() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("the worker {worker} lives on");
}
