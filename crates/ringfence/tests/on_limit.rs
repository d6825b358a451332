//! What the host's function for limits sees, what it may raise, and what comes of its mistakes.

mod support;

use ringfence::policy::{Policy, Rights};
use ringfence::{
    CallError, Domain, DomainError, DomainOptions, FaultKind, Func, Imports, LimitHit, MemoryError, OnLimit,
};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::Duration;
use support::guest::{Scratch, errno};
use support::{basic, basic_imports, module};

type Seen = Arc<Mutex<Vec<(ThreadId, LimitHit)>>>;

/// Notes what is told and decides so.
fn noting(
    imports: Imports,
    decide: impl Fn(&LimitHit) -> OnLimit + Send + Sync + 'static,
) -> (Imports, Seen) {
    let seen = Seen::default();
    let notes = seen.clone();
    let imports = imports.on_limit(move |_, hit| {
        notes.lock().unwrap().push((std::thread::current().id(), *hit));
        decide(hit)
    });
    (imports, seen)
}

/// What was told since the last look, all of it on this thread.
fn told(seen: &Seen) -> Vec<LimitHit> {
    let here = std::thread::current().id();
    let told = std::mem::take(&mut *seen.lock().unwrap());
    assert!(told.iter().all(|(thread, _)| *thread == here));
    told.into_iter().map(|(_, hit)| hit).collect()
}

fn with(name: &str, imports: Imports, change: impl FnOnce(&mut DomainOptions)) -> Domain {
    let mut options = support::options();
    change(&mut options);
    Domain::instantiate(&[module(name)], imports, &options).unwrap()
}

fn add(d: &Domain) -> i32 {
    d.func::<(i32, i32), i32>("add")
        .unwrap()
        .call(1, 2)
        .unwrap()
        .into_inner_unchecked()
}

/// A domain of `basic` that has been called: its stacks count.
fn called(imports: Imports, change: impl FnOnce(&mut DomainOptions)) -> Domain {
    let d = with("basic", imports, change);
    assert_eq!(add(&d), 3);
    d
}

/// A page besides the data of `basic` and the stacks of a thread.
fn a_page_more() -> u64 {
    called(basic_imports(), |_| ()).memory_used() + 4096
}

type SystemCall = Func<(i64, i64, i64, i64, i64, i64, i64), i64>;

fn system_call(call: &SystemCall, number: i64, args: [i64; 4]) -> i64 {
    let [a, b, c, d] = args;
    call.call(number, a, b, c, d, -1, 0)
        .unwrap()
        .into_inner_unchecked()
}

#[test]
fn memory_may_be_raised_until_the_next_reset() {
    needs!(Policy, OnLimit);
    let monitor = Policy::new().start().unwrap();
    let imports = Imports::new().policy(monitor);
    let (imports, seen) = noting(imports, |hit| match *hit {
        LimitHit::Memory { wanted, used, .. } if wanted <= 1 << 20 => OnLimit::Raise(used + wanted),
        _ => OnLimit::Keep,
    });
    // Besides the stacks of a thread, and the module's data, which are small.
    let limit = (64 << 10) + (64 << 10) + (256 << 10);
    let d = with("syscall", imports, |o| {
        (o.data_stack, o.control_stack, o.memory_limit) = (64 << 10, 64 << 10, limit);
    });
    let call: SystemCall = d.func("system_call").unwrap();
    let map = |len: i64| system_call(&call, libc::SYS_mmap, [0, len, 3, 0x22]);
    for _ in 0..3 {
        // Within the limit nobody is asked.
        assert!(map(128 << 10) > 0);
        assert!(told(&seen).is_empty());
        let used = d.memory_used();
        assert!(map(512 << 10) > 0, "raised, and tried again");
        assert_eq!(
            told(&seen),
            [LimitHit::Memory {
                wanted: 512 << 10,
                used,
                limit
            }]
        );
        // The raised limit is one: the next byte asks again.
        let used = d.memory_used();
        assert_eq!(map(8 << 20), errno(libc::ENOMEM));
        assert!(
            matches!(told(&seen)[..], [LimitHit::Memory { wanted: 0x80_0000, used: u, limit: l }] if u == used && l == used)
        );
        assert_eq!(d.memory_used(), used);
        // The break, and the host's own allocations.
        let end = system_call(&call, libc::SYS_brk, [0, 0, 0, 0]);
        assert_eq!(
            system_call(&call, libc::SYS_brk, [end + 4096, 0, 0, 0]),
            end + 4096
        );
        assert_eq!(told(&seen).len(), 1);
        d.memory().alloc_array::<u8>(100 << 10).unwrap().leak();
        assert_eq!(told(&seen).len(), 1);
        assert!(matches!(
            d.memory().alloc_array::<u8>(4 << 20),
            Err(MemoryError::Limit { .. })
        ));
        assert_eq!(told(&seen).len(), 1);
        d.reset().unwrap();
    }
}

#[test]
fn a_raise_that_is_too_small_is_no_loop() {
    needs!(OnLimit);
    let (imports, seen) = noting(basic_imports(), |hit| OnLimit::Raise(hit.limit() + 1));
    let d = called(imports, |o| o.memory_limit = a_page_more());
    assert!(d.memory().alloc_array::<u8>(1 << 20).is_err());
    assert_eq!(told(&seen).len(), 1);
    // Less than it was is no raise.
    let (imports, seen) = noting(basic_imports(), |_| OnLimit::Raise(1));
    let d = called(imports, |o| o.memory_limit = a_page_more());
    assert!(d.memory().alloc_array::<u8>(1 << 20).is_err());
    assert_eq!(told(&seen).len(), 1);
    d.memory().alloc_array::<u8>(4096).unwrap();
}

#[test]
fn what_the_function_does_itself_is_not_told_and_a_panic_is_kept() {
    needs!(OnLimit);
    let count = Arc::new(Mutex::new(0));
    let inside = count.clone();
    let helper = basic();
    let imports = basic_imports().on_limit(move |caller, hit| {
        *inside.lock().unwrap() += 1;
        // The domain's own memory, over the limit again; and another domain.
        assert!(caller.memory().alloc_array::<u8>(1 << 20).is_err());
        let add = helper.func::<(i32, i32), i32>("add").unwrap();
        assert_eq!(add.call(20, 22).unwrap(), 42);
        assert!(matches!(hit, LimitHit::Memory { .. }));
        panic!("a mistake of the host's");
    });
    let d = called(imports, |o| o.memory_limit = a_page_more());
    for round in 1..4 {
        assert!(matches!(
            d.memory().alloc_array::<u8>(1 << 20),
            Err(MemoryError::Limit { limit, .. }) if limit == a_page_more()
        ));
        assert_eq!(*count.lock().unwrap(), round);
    }
    assert_eq!(add(&d), 3);
}

#[test]
fn time_is_told_when_the_call_has_ended() {
    needs!(OnLimit);
    let (imports, seen) = noting(basic_imports(), |_| OnLimit::Raise(u64::MAX));
    let d = with("basic", imports, |o| {
        o.time_limit = Some(Duration::from_millis(5))
    });
    let spin = d.func::<(), ()>("spin").unwrap();
    for _ in 0..2 {
        let e = spin.call().unwrap_err();
        assert!(
            matches!(&e, CallError::Fault(f) if f.kind == FaultKind::TimeLimit),
            "{e}"
        );
        assert_eq!(told(&seen), [LimitHit::CallTime { limit: 5_000_000 }]);
        d.reset().unwrap();
    }
    // Somebody else's interrupt is no limit.
    d.set_time_limit(None).unwrap();
    std::thread::scope(|s| {
        let running = s.spawn(|| spin.call());
        while d.usage().active == 0 {
            std::thread::yield_now();
        }
        d.interrupt().unwrap();
        assert!(running.join().unwrap().is_err());
    });
    assert!(told(&seen).is_empty());
}

#[test]
fn processor_time_and_faults_may_be_raised_for_good() {
    needs!(OnLimit);
    let (imports, seen) = noting(basic_imports(), |hit| match *hit {
        LimitHit::ProcessorTime { used, .. } => OnLimit::Raise(used + 3_600_000_000_000),
        LimitHit::Faults { faults: 1, .. } => OnLimit::Raise(2),
        _ => OnLimit::Keep,
    });
    let d = with("basic", imports, |o| {
        o.processor_time = Some(Duration::from_millis(5));
        o.fault_limit = Some(1);
    });
    let e = d.func::<(), ()>("spin").unwrap().call().unwrap_err();
    assert!(
        matches!(&e, CallError::Fault(f) if f.kind == FaultKind::TimeLimit),
        "{e}"
    );
    let hits = told(&seen);
    assert!(
        matches!(hits[..], [LimitHit::ProcessorTime { used, limit: 5_000_000 }] if used > 5_000_000),
        "{hits:?}"
    );
    d.reset().expect("the limit of faults was raised");
    assert_eq!(told(&seen), [LimitHit::Faults { faults: 1, limit: 1 }]);
    let spin = d.func::<(u64,), i32>("spin_for").unwrap();
    for _ in 0..20 {
        spin.call(1_000_000).expect("there is time again");
    }
    assert!(d.func::<(), ()>("trap").unwrap().call().is_err());
    assert!(matches!(
        d.reset(),
        Err(DomainError::Faults { faults: 2, limit: 2 })
    ));
    assert_eq!(told(&seen), [LimitHit::Faults { faults: 2, limit: 2 }]);
}

#[test]
fn descriptors_are_told() {
    needs!(Policy, OnLimit);
    let scratch = Scratch::new("many");
    std::fs::write(scratch.0.join("file"), "abc").unwrap();
    let monitor = Policy::new()
        .dir(&scratch.0, "/d", Rights::Read)
        .descriptors(3)
        .start()
        .unwrap();
    let (imports, seen) = noting(Imports::new().policy(monitor), |_| OnLimit::Raise(100));
    let d = with("syscall", imports, |_| {});
    let call: SystemCall = d.func("system_call").unwrap();
    let name = d.memory().put_c_string("/d/file").unwrap().leak().address() as i64;
    let open = || system_call(&call, libc::SYS_open, [name, 0, 0, 0]);
    assert_eq!([open(), open(), open()], [0, 1, 2]);
    assert!(told(&seen).is_empty());
    assert_eq!(open(), errno(libc::EMFILE));
    assert_eq!(told(&seen), [LimitHit::Descriptors { limit: 3 }]);
    assert_eq!(open(), errno(libc::EMFILE), "this one is not raised");
    assert_eq!(told(&seen).len(), 1);
    assert_eq!(system_call(&call, libc::SYS_close, [2, 0, 0, 0]), 0);
    assert_eq!(open(), 2);
    assert!(told(&seen).is_empty());
}
