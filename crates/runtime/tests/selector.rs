//! The selector of the window, `gs`: it is the runtime's while a thread is inside, and whoever had it before finds it again.

mod support;

use ringfence_runtime::{Domain, DomainOptions, Entry};
use std::arch::asm;
use std::sync::atomic::{AtomicU64, Ordering};
use support::{call, domain, imports, module};

/// No window lies there, and no module's.
const FOREIGN: u64 = 0x1234_5678_9000;

fn gs() -> u64 {
    let base: u64;
    // SAFETY: reads a register; the runtime needs the instruction too.
    unsafe { asm!("rdgsbase {}", out(reg) base) };
    base
}

fn set_gs(base: u64) {
    // SAFETY: no code of the test uses `gs`.
    unsafe { asm!("wrgsbase {}", in(reg) base) };
}

#[test]
fn a_value_that_is_not_the_runtimes_is_put_back() {
    let (a, b) = (domain(), domain());
    for _ in 0..3 {
        set_gs(FOREIGN);
        for d in [&a, &b, &a] {
            assert_eq!(call(d, "add", &[2, 3]).unwrap(), 5);
            assert_eq!(gs(), FOREIGN);
        }
        // Also when the call ends otherwise.
        assert!(call(&a, "divide", &[1, 0]).is_err());
        assert_eq!(gs(), FOREIGN);
        assert!(call(&a, "add", &[2, 3]).is_err());
        assert_eq!(gs(), FOREIGN);
        a.reset().unwrap();
        // As before, once it is the runtime's again.
        set_gs(0);
        for d in [&a, &b, &b, &a] {
            assert_eq!(call(d, "add", &[2, 3]).unwrap(), 5);
        }
    }
}

/// Arguments in registers and on the stack, results, and counts are those of one call.
#[test]
fn a_call_that_puts_it_back_is_one_call() {
    let mut options = DomainOptions::default();
    options.call_limit = Some(4);
    let d = support::domain_with(&options);
    let before = d.usage().calls;
    for _ in before..4 {
        set_gs(FOREIGN);
        assert_eq!(call(&d, "add", &[2, 3]).unwrap(), 5);
    }
    let after = call(&d, "add", &[2, 3]);
    assert!(after.is_err(), "{before} {:?}", d.usage());
    assert_eq!(d.usage().calls, 4);
    set_gs(0);
}

#[test]
fn a_thread_inherits_a_window_and_makes_it_its_own() {
    let (d, other) = (domain(), domain());
    assert_eq!(call(&d, "add", &[2, 3]).unwrap(), 5);
    let inherited = gs();
    assert_ne!(inherited, 0);
    std::thread::scope(|s| {
        s.spawn(|| {
            assert_eq!(gs(), inherited);
            assert_eq!(call(&other, "add", &[2, 3]).unwrap(), 5);
            // Nobody's any more: left at the window that was entered last.
            assert_ne!(gs(), inherited);
        });
    });
}

static OTHER: std::sync::OnceLock<Entry> = std::sync::OnceLock::new();
static SEEN: AtomicU64 = AtomicU64::new(0);
static STATUS: AtomicU64 = AtomicU64::new(u64::MAX);

/// Does what sloppy hosts do: calls a domain, from a handler on whatever stack there is.
extern "C" fn handler(_: i32) {
    SEEN.store(gs(), Ordering::SeqCst);
    let code = match OTHER
        .get()
        .unwrap()
        .call(&mut ringfence_runtime::Call::ints(&[2, 3]))
    {
        Err(ringfence_runtime::CallError::Inside) => 1,
        _ => 2,
    };
    STATUS.store(code, Ordering::SeqCst);
}

/// A handler without an alternate stack that interrupts a domain: its own calls are refused, and the domain goes on with its `gs`.
#[test]
fn a_handler_that_interrupts_a_domain_enters_none() {
    support::in_child("a_handler_that_interrupts_a_domain_enters_none", || {
        let other = domain();
        assert!(OTHER.set(support::entry(&other, "add")).is_ok());
        let d = Domain::new(
            &[module()],
            imports().closure("host_enter", |_| Ok(())),
            &DomainOptions::default(),
        )
        .unwrap();
        assert_eq!(call(&d, "add", &[2, 3]).unwrap(), 5);
        let window = gs();
        assert_eq!(call(&other, "add", &[2, 3]).unwrap(), 5);
        // SAFETY: a handler without flags, as `signal` has it; the timer asks for it in a moment in which the domain loops.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as *const () as usize;
            libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut());
        }
        // SAFETY: asks for a number.
        let thread = unsafe { libc::pthread_self() };
        std::thread::scope(|s| {
            s.spawn(|| {
                support::wait_until_begun(&d);
                // SAFETY: the thread lives as long as the scope.
                unsafe { libc::pthread_kill(thread, libc::SIGUSR1) };
                while STATUS.load(Ordering::SeqCst) == u64::MAX {
                    std::thread::yield_now();
                }
                d.interrupt();
            });
            let fault = support::fault(&d, "announced", &[]);
            assert_eq!(fault.kind, ringfence_runtime::FaultKind::Interrupted);
        });
        assert_eq!(SEEN.load(Ordering::SeqCst), window);
        assert_eq!(STATUS.load(Ordering::SeqCst), 1);
    });
}
