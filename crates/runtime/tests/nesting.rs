//! Calls that are nested too deeply are refused before anything happens: host threads do not overflow, domains do not fault.

mod support;

use ringfence_runtime::{CallError, Domain, DomainOptions, EndCall};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use support::{call, imports, module};

type Domains = Arc<OnceLock<Vec<Domain>>>;

/// Domains whose `host_enter` calls `nest` of the next one, and counts the calls that were refused.
fn ring(count: usize) -> (Domains, Arc<AtomicU32>, Arc<AtomicU32>) {
    let all = Domains::default();
    let (entered, refused) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let make = |i: usize| {
        let (all, entered, refused) = (all.clone(), entered.clone(), refused.clone());
        let imports = imports().closure("host_enter", move |f| {
            entered.fetch_add(1, Ordering::Relaxed);
            match call(&all.get().unwrap()[(i + 1) % count], "nest", &[f.ints[0]]) {
                Ok(value) => f.result[0] = value,
                Err(CallError::Nesting) => {
                    refused.fetch_add(1, Ordering::Relaxed);
                    f.result[0] = 7;
                }
                Err(e) => return Err(EndCall::Fail(e.to_string())),
            }
            Ok(())
        });
        Domain::new(&[module()], imports, &DomainOptions::default()).unwrap()
    };
    let made = (0..count).map(make).collect();
    assert!(all.set(made).is_ok());
    (all, entered, refused)
}

/// As deep as it goes, twice: nothing is left behind by the first time.
fn as_deep_as_it_goes(all: &Domains, refused: &AtomicU32) {
    for n in 1..3 {
        call(&all.get().unwrap()[0], "nest", &[100_000]).unwrap();
        assert_eq!(refused.load(Ordering::Relaxed), n);
    }
    for d in all.get().unwrap() {
        assert!(!d.faulted());
        assert_eq!(d.usage().faults, 0);
        assert_eq!(call(d, "add", &[2, 3]).unwrap(), 5);
    }
}

#[test]
fn one_lane_has_a_hundred() {
    let (all, entered, refused) = ring(1);
    as_deep_as_it_goes(&all, &refused);
    assert_eq!(entered.load(Ordering::Relaxed), 200);
}

#[test]
fn small_stacks_are_enough_for_what_begins() {
    for size in [64 << 10, 256 << 10] {
        for count in [1, 8] {
            let (all, entered, refused) = ring(count);
            let of_thread = all.clone();
            let thread = std::thread::Builder::new().stack_size(size);
            let thread = thread.spawn(move || as_deep_as_it_goes(&of_thread, &refused));
            thread.unwrap().join().unwrap();
            let entered = entered.load(Ordering::Relaxed);
            // Half a stack's worth of frames at least, and never a lane's whole depth on the smallest.
            assert!(
                entered >= 4 && (entered < 200 || size > 64 << 10),
                "{size}, {count}: {entered}"
            );
        }
    }
}

/// Calls on stacks of our own, mapped before and after the thread's alternate signal stack was, above and below it.
#[test]
fn fibers_on_either_side_of_the_signal_stack_call() {
    use std::arch::asm;
    const SIZE: usize = 256 << 10;
    let map = |at: usize| {
        // SAFETY: a fresh mapping; the address is a wish.
        let p = unsafe {
            let (rw, flags) = (
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            );
            libc::mmap(at as *mut _, SIZE, rw, flags, -1, 0)
        };
        assert_ne!(p, libc::MAP_FAILED);
        p as usize
    };
    extern "C" fn enter(d: &Domain) {
        assert_eq!(call(d, "add", &[2, 3]).unwrap(), 5);
    }
    let on = |stack: usize, d: &Domain| {
        // SAFETY: a mapped stack that nobody else uses; the old one is put back.
        unsafe {
            asm!(
                "mov r12, rsp",
                "mov rsp, {stack}",
                "call {enter}",
                "mov rsp, r12",
                stack = in(reg) stack + SIZE - 64,
                enter = sym enter,
                in("rdi") d,
                out("r12") _,
                clobber_abi("C"),
            );
        }
    };
    let work = move || {
        let early = map(0);
        let d = Domain::new(&[module()], imports(), &DomainOptions::default()).unwrap();
        assert_eq!(call(&d, "add", &[2, 3]).unwrap(), 5);
        let own = &raw const d as usize;
        // Near the program's end of memory, and near the other.
        for stack in [
            early,
            map(0),
            map(1 << 32),
            map(own + (1 << 40)),
            map(own - (1 << 40)),
        ] {
            for _ in 0..3 {
                on(stack, &d);
                assert_eq!(call(&d, "add", &[2, 3]).unwrap(), 5);
            }
        }
        assert!(!d.faulted());
    };
    std::thread::spawn(work).join().unwrap();
}
