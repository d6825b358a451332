//! Limits of calls and of threads: exact, told, raised, and given anew.

mod support;

use ringfence_runtime::{
    Call, CallError, Code, Domain, DomainError, DomainOptions, Imports, LimitHit, MemoryError, OnLimit,
    Signature,
};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex, OnceLock};
use support::{call, domain_with, entry, imports, module};

fn limited(calls: u64) -> DomainOptions {
    let mut options = DomainOptions::default();
    options.call_limit = Some(calls);
    options
}

fn add(d: &Domain) -> Result<u64, CallError> {
    call(d, "add", &[2, 3])
}

fn used_up(result: Result<u64, CallError>, limit: u64) -> bool {
    matches!(result, Err(CallError::Calls { limit: l }) if l == limit)
}

/// Notes what is told and answers so.
fn noting(
    imports: Imports,
    answer: impl Fn(&LimitHit) -> OnLimit + Send + Sync + 'static,
) -> (Imports, Arc<Mutex<Vec<LimitHit>>>) {
    let seen = Arc::<Mutex<Vec<LimitHit>>>::default();
    let notes = seen.clone();
    let imports = imports.on_limit(move |_, hit| {
        notes.lock().unwrap().push(*hit);
        answer(hit)
    });
    (imports, seen)
}

#[test]
fn the_last_call_is_the_last() {
    let slot: Arc<OnceLock<Domain>> = Arc::default();
    let inner = slot.clone();
    let nesting = imports().closure("host_enter", move |f| {
        f.result[0] = call(inner.get().unwrap(), "nest", &[f.ints[0]]).unwrap();
        Ok(())
    });
    // The module has one constructor.
    let d = Domain::new(&[module()], nesting, &limited(4)).unwrap();
    assert!(slot.set(d.clone()).is_ok());
    for _ in 0..2 {
        assert_eq!(add(&d).unwrap(), 5);
    }
    // With the calls that it is nested in this is one.
    assert_eq!(call(&d, "nest", &[5]).unwrap(), 115);
    for _ in 0..3 {
        assert!(used_up(add(&d), 4));
    }
    let u = d.usage();
    assert_eq!((u.calls, u.faults), (4, 0));
    assert!(!d.faulted(), "the domain is as it was");
    // A reset does not renew it: there is no call left for the constructor.
    let e = d.reset().unwrap_err();
    let why = match &e {
        DomainError::Init { source, .. } => &**source,
        other => panic!("{other}"),
    };
    assert!(matches!(why, CallError::Calls { limit: 4 }), "{e}");
    assert_eq!(d.usage().calls, 4);
    // A pool's next user has them all.
    d.recycle().unwrap();
    for _ in 0..3 {
        assert_eq!(add(&d).unwrap(), 5);
    }
    assert!(used_up(add(&d), 4));
    let e = Domain::new(&[module()], imports(), &limited(0))
        .map(drop)
        .unwrap_err();
    assert!(
        matches!(
            e,
            DomainError::Option {
                option: "call_limit",
                ..
            }
        ),
        "{e}"
    );
}

#[test]
fn threads_get_no_more_together() {
    const LIMIT: u64 = 20_000;
    const THREADS: usize = 6;
    let d = domain_with(&limited(LIMIT));
    let begin = Barrier::new(THREADS);
    let good = AtomicU64::new(1);
    let one = |d: &Domain| {
        let add = entry(d, "add");
        begin.wait();
        let mut n = 0;
        while add.call(&mut Call::ints(&[1, 1])).is_ok() {
            n += 1;
        }
        good.fetch_add(n, Ordering::Relaxed);
        assert!(used_up(call(d, "add", &[1, 1]), LIMIT));
    };
    std::thread::scope(|s| {
        for _ in 0..THREADS {
            s.spawn(|| one(&d));
        }
    });
    assert_eq!(good.load(Ordering::Relaxed), LIMIT, "with the constructor");
    assert_eq!(d.usage().calls, LIMIT);
}

#[test]
fn what_a_thread_leaves_others_get() {
    let d = domain_with(&limited(300));
    // A thread that ends, one whose stacks are trimmed, and one that has some left.
    std::thread::scope(|s| s.spawn(|| assert_eq!(add(&d).unwrap(), 5)).join().unwrap());
    add(&d).unwrap();
    d.trim().unwrap();
    std::thread::scope(|s| {
        s.spawn(|| (0..100).for_each(|_| assert_eq!(add(&d).unwrap(), 5)))
            .join()
            .unwrap()
    });
    let left = 300 - d.usage().calls;
    assert_eq!(left, 300 - 1 - 2 - 100);
    for _ in 0..left {
        add(&d).unwrap();
    }
    assert!(used_up(add(&d), 300));
}

#[test]
fn the_host_may_raise_it() {
    let (imports, seen) = noting(imports(), |hit| match *hit {
        LimitHit::Calls { limit } if limit < 6 => OnLimit::Raise(limit + 2),
        LimitHit::Calls { limit: 6 } => OnLimit::Raise(6),
        _ => OnLimit::Keep,
    });
    let d = Domain::new(&[module()], imports, &limited(2)).unwrap();
    for _ in 0..5 {
        assert_eq!(add(&d).unwrap(), 5);
    }
    assert!(used_up(add(&d), 6));
    assert_eq!(
        *seen.lock().unwrap(),
        [2, 4, 6].map(|limit| LimitHit::Calls { limit })
    );
    assert_eq!(d.usage().calls, 6);
    // The next user has what the domain was made with.
    d.recycle().unwrap();
    add(&d).unwrap();
    seen.lock().unwrap().clear();
    add(&d).unwrap();
    assert_eq!(*seen.lock().unwrap(), [LimitHit::Calls { limit: 2 }]);
    // For ever, as it seems: it stays a limit.
    let (imports, seen) = noting(support::imports(), |_| OnLimit::Raise(u64::MAX));
    let d = Domain::new(&[module()], imports, &limited(1)).unwrap();
    for _ in 0..600 {
        add(&d).unwrap();
    }
    assert_eq!(seen.lock().unwrap().len(), 1);
}

#[test]
fn more_threads_may_be_let_in() {
    let (imports, seen) = noting(imports(), |hit| match *hit {
        LimitHit::Lanes { limit: 1 } => OnLimit::Raise(2),
        LimitHit::Lanes { limit: 2 } => OnLimit::Raise(2),
        _ => OnLimit::Keep,
    });
    let mut options = DomainOptions::default();
    options.max_lanes = 1;
    let d = Domain::new(&[module()], imports, &options).unwrap();
    add(&d).unwrap();
    let elsewhere = |d: &Domain| std::thread::scope(|s| s.spawn(|| add(d)).join().unwrap());
    let (done, wait) = (Barrier::new(2), Barrier::new(2));
    std::thread::scope(|s| {
        let other = s.spawn(|| {
            assert_eq!(add(&d).unwrap(), 5);
            done.wait();
            wait.wait();
        });
        done.wait();
        let refused = elsewhere(&d);
        wait.wait();
        // With its thread-local variables, which hold its stacks.
        other.join().unwrap();
        let e = refused.unwrap_err();
        assert!(matches!(e, CallError::NoLane { limit: 2 }), "{e}");
        assert!(e.to_string().contains("max_lanes"));
    });
    assert_eq!(
        *seen.lock().unwrap(),
        [1, 2].map(|limit| LimitHit::Lanes { limit })
    );
    // There is room again, and who has stacks already goes on.
    assert_eq!(elsewhere(&d).unwrap(), 5);
    assert_eq!(add(&d).unwrap(), 5);
    d.recycle().unwrap();
    seen.lock().unwrap().clear();
    std::thread::scope(|s| s.spawn(|| assert_eq!(add(&d).unwrap(), 5)).join().unwrap());
    // 63 is the most there are.
    let (imports, seen) = noting(support::imports(), |_| OnLimit::Raise(1000));
    options.max_lanes = 62;
    let d = Domain::new(&[module()], imports, &options).unwrap();
    let all = Barrier::new(63);
    std::thread::scope(|s| {
        for _ in 0..62 {
            s.spawn(|| {
                assert_eq!(add(&d).unwrap(), 5);
                all.wait();
                all.wait();
            });
        }
        all.wait();
        let last = elsewhere(&d);
        all.wait();
        assert!(matches!(last, Err(CallError::NoLane { limit: 63 })));
    });
    let told: Vec<u64> = seen.lock().unwrap().iter().map(LimitHit::limit).collect();
    assert_eq!(told, [62, 63]);
}

/// Stacks count in full, from a thread's first call until the domain is trimmed, together with what else the domain has.
#[test]
fn stacks_count_as_memory() {
    let mut options = DomainOptions::default();
    (options.data_stack, options.control_stack) = (128 << 10, 64 << 10);
    let d = domain_with(&options);
    d.trim().unwrap();
    let data = d.usage().memory;
    add(&d).unwrap();
    let stacks = d.usage().memory - data;
    assert!(
        (192 << 10..256 << 10).contains(&stacks),
        "and a block of thread-local variables: {stacks}"
    );
    add(&d).unwrap();
    for _ in 0..2 {
        assert_eq!(d.usage().memory, data + stacks, "they stay");
        d.reset().unwrap();
        assert_eq!(d.usage().memory, data + stacks, "also when nobody is in");
        d.recycle().unwrap();
    }
    d.trim().unwrap();
    assert_eq!(d.usage().memory, data);

    // Two threads' stacks and half of a third's.
    options.memory_limit = data + stacks * 5 / 2;
    let made = || {
        let (imports, seen) = noting(imports(), |_| OnLimit::Keep);
        let d = Domain::new(&[module()], imports, &options).unwrap();
        // The constructors ran on this thread.
        d.trim().unwrap();
        (d, seen)
    };
    let (d, seen) = made();
    let all = Barrier::new(3);
    std::thread::scope(|s| {
        for _ in 0..2 {
            s.spawn(|| {
                assert_eq!(add(&d).unwrap(), 5);
                all.wait();
                all.wait();
            });
        }
        all.wait();
        let refused = std::thread::scope(|s| s.spawn(|| add(&d)).join().unwrap());
        let more = d.as_ref().alloc(stacks, 16);
        all.wait();
        let limit = options.memory_limit;
        let e = refused.unwrap_err();
        assert!(
            matches!(e, CallError::Memory(MemoryError::Limit { wanted, used, limit: l })
                if wanted == stacks && used == data + 2 * stacks && l == limit),
            "{e}"
        );
        assert!(e.to_string().contains("data_stack"), "{e}");
        assert!(matches!(more, Err(MemoryError::Limit { .. })));
    });
    let hit = LimitHit::Memory {
        wanted: stacks,
        used: data + 2 * stacks,
        limit: options.memory_limit,
    };
    assert_eq!(seen.lock().unwrap()[0], hit);

    // What the heap has is not there for stacks.
    let (d, _) = made();
    let block = d.as_ref().alloc(stacks * 2, 16).unwrap();
    assert!(matches!(add(&d), Err(CallError::Memory(_))));
    d.as_ref().free(block).unwrap();
    d.reset().unwrap();
    assert_eq!(add(&d).unwrap(), 5, "as it was");

    // The host may raise the limit for another thread.
    let (imports, seen) = noting(imports(), move |hit| OnLimit::Raise(hit.limit() + stacks));
    let mut options = options.clone();
    options.memory_limit = data + stacks;
    let d = Domain::new(&[module()], imports, &options).unwrap();
    assert_eq!(add(&d).unwrap(), 5);
    std::thread::scope(|s| s.spawn(|| assert_eq!(add(&d).unwrap(), 5)).join().unwrap());
    assert_eq!(seen.lock().unwrap().len(), 1);
}

/// A plain pointer keeps its domain from nothing: it may be closed while the host is told of a limit.
#[test]
fn the_domain_may_go_while_the_host_is_told() {
    for lanes in [false, true] {
        let (told, gone) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
        let (at, go) = (told.clone(), gone.clone());
        let imports = imports().on_limit(move |d, hit| {
            at.wait();
            go.wait();
            // It is there still, for this function.
            assert!(d.base() != 0 && hit.limit() == 1);
            OnLimit::Raise(2)
        });
        let mut options = DomainOptions::default();
        if lanes {
            options.max_lanes = 1;
        } else {
            options.call_limit = Some(1);
        }
        let d = Domain::new(&[module()], imports, &options).unwrap();
        let two = Signature {
            ints: 2,
            int_results: 1,
            ..Signature::NOTHING
        };
        let pointer = entry(&d, "add").thunk(two) as usize;
        std::thread::scope(|s| {
            s.spawn(|| {
                // SAFETY: a thunk of this type, which outlives its domain.
                let add: extern "C" fn(u64, u64) -> u64 = unsafe { std::mem::transmute(pointer) };
                for _ in 0..2 {
                    assert_eq!(add(2, 3), 0);
                    assert_ne!(ringfence_runtime::domain::last_status(), 0);
                    let e = ringfence_runtime::domain::take_error();
                    assert!(matches!(e, Some(CallError::Gone)), "{e:?}");
                }
            });
            told.wait();
            drop(d);
            gone.wait();
        });
    }
}

/// The handler of a fault or of a tick has ended before the host is told: it is on a stack of its own, with its signals blocked or not
/// as the host has them.
#[test]
fn the_host_is_told_outside_of_signal_handlers() {
    fn blocked() -> [bool; 65] {
        // SAFETY: asks only.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &raw mut set);
            std::array::from_fn(|n| n > 0 && libc::sigismember(&raw const set, n as i32) == 1)
        }
    }
    fn on_signal_stack() -> bool {
        // SAFETY: asks only.
        unsafe {
            let mut stack: libc::stack_t = std::mem::zeroed();
            assert_eq!(libc::sigaltstack(std::ptr::null(), &raw mut stack), 0);
            stack.ss_flags & libc::SS_ONSTACK != 0
        }
    }
    let told: Arc<Mutex<Vec<LimitHit>>> = Arc::default();
    let (seen, mask) = (told.clone(), Arc::new(OnceLock::new()));
    let expected = mask.clone();
    let imports = imports().on_limit(move |d, hit| {
        assert!(!on_signal_stack(), "{hit:?}");
        assert!(blocked() == *expected.get().unwrap(), "{hit:?}");
        // What no handler may do.
        assert!(d.alloc(64, 16).is_ok_and(|at| d.free(at).is_ok()));
        seen.lock().unwrap().push(*hit);
        OnLimit::Keep
    });
    let mut options = limited(6);
    options.memory_limit = 64 << 20;
    options.max_lanes = 1;
    let d = Domain::new(&[module()], imports, &options).unwrap();
    assert_eq!(add(&d).unwrap(), 5);
    mask.set(blocked()).unwrap();
    assert!(d.as_ref().alloc(1 << 30, 16).is_err());
    std::thread::scope(|s| s.spawn(|| assert!(add(&d).is_err())).join().unwrap());
    // Ended by the tick.
    d.set_time_limit(Some(std::time::Duration::from_millis(1)));
    assert!(call(&d, "forever", &[]).is_err());
    d.set_time_limit(None);
    d.reset().unwrap();
    while add(&d).is_ok() {}
    let told = told.lock().unwrap();
    let all = |of: fn(&LimitHit) -> bool| told.iter().any(of);
    assert!(all(|h| matches!(h, LimitHit::Memory { .. })), "{told:?}");
    assert!(all(|h| matches!(h, LimitHit::CallTime { .. })), "{told:?}");
    assert!(all(|h| matches!(h, LimitHit::Calls { .. })), "{told:?}");
    assert!(all(|h| matches!(h, LimitHit::Lanes { .. })), "{told:?}");
}

/// What sends a call the slow way besides the limit of calls: each changes neither how many calls there are, nor is it passed by.
#[test]
fn a_limit_of_calls_beside_every_other_reason() {
    const SUM: [u8; 12] = [
        0x0F, 0x1F, 0x84, 0, 0xFF, 0xFF, 0x9A, 0x62, 0x8D, 0x04, 0x37, 0xC3,
    ];
    type Reason = (&'static str, fn(&Domain), fn(&Domain));
    fn nothing(_: &Domain) {}
    let reasons: [Reason; 7] = [
        ("nothing", nothing, nothing),
        (
            "a fault",
            |d| assert!(call(d, "illegal", &[]).is_err()),
            |d| {
                assert!(matches!(add(d), Err(CallError::Faulted { .. })), "it is seen");
                d.reset().unwrap();
            },
        ),
        ("a reset", |d| d.reset().unwrap(), nothing),
        (
            "code that goes",
            |d| {
                let code = Code {
                    bytes: &SUM,
                    entry: 0,
                };
                let sum = d.add_code("sum", &code).unwrap();
                assert_eq!(sum.call(&mut Call::ints(&[2, 3])).unwrap().rax, 5);
                d.remove_code("sum").unwrap();
                assert!(matches!(
                    sum.call(&mut Call::ints(&[2, 3])),
                    Err(CallError::Removed)
                ));
            },
            nothing,
        ),
        (
            "a limit of time",
            |d| {
                d.set_time_limit(Some(std::time::Duration::from_millis(1)));
                assert!(call(d, "forever", &[]).is_err());
            },
            |d| {
                d.set_time_limit(Some(std::time::Duration::from_secs(3600)));
                assert!(matches!(add(d), Err(CallError::Faulted { .. })), "it is seen");
                d.reset().unwrap();
            },
        ),
        (
            "an interrupt",
            |d| {
                std::thread::scope(|s| {
                    let call = s.spawn(|| call(d, "announced", &[]));
                    support::wait_until_begun(d);
                    d.interrupt();
                    assert!(call.join().unwrap().is_err());
                });
            },
            |d| d.reset().unwrap(),
        ),
        (
            "calls that are nested in calls",
            |d| assert_eq!(call(d, "call_out", &[2, 3]).unwrap(), 6),
            nothing,
        ),
    ];
    for (what, before, after) in reasons {
        let mut options = limited(40);
        options.extensible = true;
        let d = Domain::new(&[module()], imports(), &options).unwrap();
        assert_eq!(add(&d).unwrap(), 5, "{what}");
        for _ in 0..3 {
            before(&d);
            after(&d);
            assert_eq!(add(&d).unwrap(), 5, "{what}");
        }
        let used = d.usage().calls;
        let mut left = 0;
        while add(&d).is_ok() {
            left += 1;
        }
        assert_eq!((used + left, d.usage().calls), (40, 40), "{what}");
        assert!(used_up(add(&d), 40), "{what}");
    }
}
