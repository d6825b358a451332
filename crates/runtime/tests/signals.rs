//! The host's signals: which one ends calls, words that do, and handlers that come later than the runtime's.

mod support;

use ringfence_runtime::{Cancel, DomainOptions, FaultKind, HostError, InitOptions, init};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::time::Duration;
use support::{call, domain, domain_with, fault, in_child, out_of_time};

fn with_tick(signal: i32) -> Result<(), HostError> {
    let mut options = InitOptions::default();
    options.tick_signal = Some(signal);
    init(&options)
}

/// Who gets a signal now: 0 is nobody.
fn handler_of(signal: i32) -> usize {
    // SAFETY: asks only.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        assert_eq!(libc::sigaction(signal, std::ptr::null(), &raw mut now), 0);
        now.sa_sigaction
    }
}

fn handle(signal: i32, handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::ucontext_t)) {
    // SAFETY: handlers of the tests, which touch atomics and the interrupted mask.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        assert_eq!(
            libc::sigaction(signal, &raw const action, std::ptr::null_mut()),
            0
        );
    }
}

/// In a process of its own: a choice is for ever.
fn ends_calls(signal: i32) {
    with_tick(signal).unwrap();
    let d = domain();
    for _ in 0..3 {
        assert_eq!(out_of_time(&d, "forever").kind, FaultKind::TimeLimit);
        d.reset().unwrap();
    }
    assert_ne!(handler_of(signal), 0);
    assert_eq!(handler_of(libc::SIGURG), libc::SIG_DFL, "it is the host's");
    with_tick(signal).unwrap();
    let other = with_tick(libc::SIGUSR1);
    assert!(
        matches!(
            other,
            Err(HostError::TickSignal {
                signal: libc::SIGUSR1,
                ..
            })
        ),
        "{other:?}"
    );
}

#[test]
fn a_real_time_signal_ends_calls() {
    in_child("a_real_time_signal_ends_calls", || {
        ends_calls(libc::SIGRTMIN() + 3)
    });
}

#[test]
fn the_last_signal_ends_calls() {
    in_child("the_last_signal_ends_calls", || ends_calls(libc::SIGRTMAX()));
}

#[test]
fn a_signal_that_would_end_the_process_ends_calls() {
    in_child("a_signal_that_would_end_the_process_ends_calls", || {
        ends_calls(libc::SIGUSR2)
    });
}

#[test]
fn not_every_signal_can_be_chosen() {
    for wrong in [
        0,
        -1,
        65,
        libc::SIGSEGV,
        libc::SIGTRAP,
        libc::SIGKILL,
        libc::SIGSTOP,
        32,
        33,
    ] {
        let got = with_tick(wrong);
        assert!(
            matches!(got, Err(HostError::TickSignal { signal, .. }) if signal == wrong),
            "{got:?}"
        );
    }
}

#[test]
fn a_word_of_the_hosts_ends_calls() {
    let word = Arc::new(AtomicI32::new(0));
    let mut options = DomainOptions::default();
    options.cancel = Some(Cancel::new(word.clone()));
    let d = domain_with(&options);
    for name in ["announced", "out_announced"] {
        std::thread::scope(|s| {
            s.spawn(|| {
                support::wait_until_begun(&d);
                word.store(1, Ordering::Release);
            });
            assert_eq!(fault(&d, name, &[]).kind, FaultKind::Interrupted);
        });
        // As long as it is set, so do those that begin.
        d.reset().unwrap();
        assert_eq!(fault(&d, "forever", &[]).kind, FaultKind::Interrupted);
        word.store(0, Ordering::Release);
        d.reset().unwrap();
        assert_eq!(call(&d, "add", &[2, 3]).unwrap(), 5);
    }
}

/// Takes the watchdog's signal out of the mask of what it has interrupted.
extern "C" fn lets_go(_: i32, _: *mut libc::siginfo_t, context: *mut libc::ucontext_t) {
    // SAFETY: the kernel's context.
    unsafe { libc::sigdelset(&raw mut (*context).uc_sigmask, libc::SIGURG) };
}

fn block_tick() {
    // SAFETY: changes the calling thread's mask.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigaddset(&raw mut set, libc::SIGURG);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
    }
}

#[test]
fn a_blocked_signal_is_told_and_later_calls_take_it_back() {
    in_child("a_blocked_signal_is_told_and_later_calls_take_it_back", || {
        handle(libc::SIGUSR1, lets_go);
        let d = domain();
        // Before the first call: the one behind a new limit would take it back at once.
        d.set_time_limit(Some(Duration::from_millis(200)));
        assert_eq!(call(&d, "add", &[2, 3]).unwrap(), 5);
        assert_eq!(d.usage().blocked, 0);
        // As `siglongjmp` out of an error may do.
        block_tick();
        // SAFETY: asks for a number.
        let thread = unsafe { libc::pthread_self() };
        std::thread::scope(|s| {
            s.spawn(|| {
                while d.usage().blocked == 0 {
                    std::thread::yield_now();
                }
                // SAFETY: the thread lives as long as the scope.
                unsafe { libc::pthread_kill(thread, libc::SIGUSR1) };
            });
            assert_eq!(fault(&d, "forever", &[]).kind, FaultKind::TimeLimit);
        });
        assert_eq!(d.usage().blocked, 0);
    });
}

static HOSTS: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];

extern "C" fn first(_: i32, _: *mut libc::siginfo_t, _: *mut libc::ucontext_t) {
    HOSTS[0].fetch_add(1, Ordering::SeqCst);
}

extern "C" fn second(_: i32, _: *mut libc::siginfo_t, _: *mut libc::ucontext_t) {
    HOSTS[1].fetch_add(1, Ordering::SeqCst);
}

/// What is the host's goes to the handler that it has installed last, what is the module's to none.
#[test]
fn later_handlers_do_not_get_the_modules_faults() {
    in_child("later_handlers_do_not_get_the_modules_faults", || {
        let d = support::domain();
        assert_eq!(call(&d, "add", &[2, 3]).unwrap(), 5);
        for (n, handler) in [first, second].into_iter().enumerate() {
            for signal in [libc::SIGSEGV, libc::SIGFPE, libc::SIGILL] {
                handle(signal, handler);
            }
            if n == 0 {
                init(&InitOptions::default()).unwrap();
            } else {
                // A domain that is made finds out by itself.
                drop(support::domain());
            }
            for name in ["divide", "illegal", "read_at"] {
                assert!(call(&d, name, &[1, 0]).is_err(), "{name}");
                d.reset().unwrap();
            }
            assert_eq!(HOSTS[n].load(Ordering::SeqCst), 0);
            // SAFETY: a signal for this thread, with a handler.
            unsafe { libc::raise(libc::SIGSEGV) };
            assert_eq!(HOSTS[n].load(Ordering::SeqCst), 1);
        }
        assert_eq!(HOSTS[0].load(Ordering::SeqCst), 1);
    });
}
