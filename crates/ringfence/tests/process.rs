//! Domains in processes of their own.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::time::Duration;

use ringfence::dynamic::Argument;
use ringfence::policy::{Captured, Policy, Stream};
use ringfence::{
    Access, Backend, CallError, Caller, Cancel, Domain, DomainError, FaultKind, Imports, LimitHit, OnLimit,
    Pool, Ptr, Signature,
};
use support::workers::{LOOPS, basic, make, options};

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
fn what_holds_the_worker_is_told() {
    let held = basic().confinement().unwrap();
    assert!(held.system_calls, "{held}");
    assert!(
        support::module("basic")
            .instantiate(support::basic_imports())
            .unwrap()
            .confinement()
            .is_err()
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
