//! What the host's own limits of resources do to the runtime: errors, never signals.

mod support;

use ringfence_runtime::{
    CallError, Domain, DomainError, DomainOptions, FaultKind, HostError, LoadError, LoadOptions, Module,
};
use std::time::Duration;
use support::{call, domain, fault, imports, in_child, out_of_time, refuse, wait_until_begun};

/// A soft limit of this process.
fn set_limit(what: libc::__rlimit_resource_t, value: u64) {
    // SAFETY: reads and writes one structure.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        assert_eq!(libc::getrlimit(what, &raw mut limit), 0);
        limit.rlim_cur = value.min(limit.rlim_max);
        assert_eq!(libc::setrlimit(what, &raw const limit), 0);
    }
}

/// `RLIMIT_FSIZE` holds for memory files too, and what is larger raises `SIGXFSZ`, which would end the process.
#[test]
fn a_limit_of_file_sizes_is_an_error() {
    in_child("a_limit_of_file_sizes_is_an_error", || {
        let bytes = support::bytes();
        for limit in [0, 4096, 12_288] {
            set_limit(libc::RLIMIT_FSIZE, limit);
            let loaded = Module::from_bytes("basic.rf", bytes, &LoadOptions::default());
            assert!(
                matches!(&loaded, Err(LoadError::Host(HostError::FileSize { limit: l, .. })) if *l == limit),
                "{loaded:?}"
            );
        }
        set_limit(libc::RLIMIT_FSIZE, 0);
        // The stubs' file, which all domains without modules share, has not been made yet.
        let mut options = DomainOptions::default();
        options.extensible = true;
        let made = Domain::new(&[], imports(), &options);
        assert!(
            matches!(made, Err(DomainError::Host(HostError::FileSize { .. }))),
            "{made:?}"
        );
        set_limit(libc::RLIMIT_FSIZE, libc::RLIM_INFINITY);
        assert_eq!(call(&domain(), "add", &[2, 3]).unwrap(), 5);
    });
}

/// Locked pages cannot be dropped as others are.
#[test]
fn locked_memory_is_reset_too() {
    in_child("locked_memory_is_reset_too", || {
        let mut options = DomainOptions::default();
        (options.data_stack, options.control_stack) = (64 << 10, 64 << 10);
        options.memory_limit = 1 << 20;
        // SAFETY: no pointers.
        if unsafe { libc::mlockall(libc::MCL_FUTURE) } != 0 {
            eprintln!("SKIPPED: this process may not lock memory");
            return;
        }
        let d = match Domain::new(&[support::module()], imports(), &options) {
            Ok(d) => d,
            Err(e) => {
                assert!(matches!(e, DomainError::Host(HostError::Locked)), "{e}");
                eprintln!("SKIPPED: this process may not lock a window ({e})");
                return;
            }
        };
        for _ in 0..3 {
            assert_eq!(call(&d, "increment", &[]).unwrap(), 6);
            assert_eq!(call(&d, "increment", &[]).unwrap(), 7);
            assert!(call(&d, "divide", &[1, 0]).is_err());
            d.reset().unwrap();
        }
        assert_eq!(call(&d, "increment", &[]).unwrap(), 6);
    });
}

/// A domain with a limit of time.
fn limited() -> Domain {
    let d = domain();
    d.set_time_limit(Some(Duration::from_millis(20)));
    d
}

/// An endless loop ends, on a new thread and on the one that is there.
fn limits_hold() {
    let ends = || {
        let d = domain();
        for _ in 0..3 {
            assert_eq!(out_of_time(&d, "forever").kind, FaultKind::TimeLimit);
            d.reset().unwrap();
        }
    };
    ends();
    std::thread::spawn(ends).join().unwrap();
}

/// Then the kernel drops what a signal carries.
#[test]
fn limits_hold_where_no_signals_are_queued() {
    in_child("limits_hold_where_no_signals_are_queued", || {
        set_limit(libc::RLIMIT_SIGPENDING, 0);
        limits_hold();
    });
}

#[test]
fn limits_hold_where_signals_cannot_be_marked() {
    in_child("limits_hold_where_signals_cannot_be_marked", || {
        support::refuse::calls(&[libc::SYS_rt_tgsigqueueinfo]);
        limits_hold();
    });
}

#[test]
fn limits_hold_where_threads_are_not_told_their_numbers() {
    in_child("limits_hold_where_threads_are_not_told_their_numbers", || {
        support::refuse::calls(&[libc::SYS_gettid]);
        limits_hold();
    });
}

/// What cannot be ended is not begun.
#[test]
fn where_no_signal_is_sent_calls_with_limits_are_errors() {
    in_child("where_no_signal_is_sent_calls_with_limits_are_errors", || {
        support::refuse::calls(&[libc::SYS_rt_tgsigqueueinfo, libc::SYS_tgkill]);
        let d = limited();
        for _ in 0..3 {
            let e = call(&d, "add", &[2, 3]).unwrap_err();
            assert!(
                matches!(&e, CallError::Lane(why) if why.contains("tgkill")),
                "{e}"
            );
        }
        d.set_time_limit(None);
        assert_eq!(call(&d, "add", &[2, 3]).unwrap(), 5);
    });
}

/// Ends this process if it hangs: that would be a call that nobody ends.
fn no_hang() {
    // SAFETY: no pointers.
    unsafe { libc::alarm(300) };
}

/// The watchdog's thread cannot be made: no call with a limit begins, however often it is tried. Once it can, calls end by it.
#[test]
fn without_a_watchdog_no_call_with_a_limit_begins() {
    in_child("without_a_watchdog_no_call_with_a_limit_begins", || {
        no_hang();
        let refused = std::thread::spawn(|| {
            // The lane is there before there is a limit; a second one would start the watchdog.
            let d = domain();
            assert_eq!(call(&d, "add", &[2, 3]).unwrap(), 5);
            refuse::calls(&[libc::SYS_clone, libc::SYS_clone3]);
            d.set_time_limit(Some(Duration::from_millis(20)));
            for _ in 0..3 {
                let refused = call(&d, "forever", &[]);
                assert!(
                    matches!(&refused, Err(CallError::Lane(why)) if why.contains("starting the watchdog")),
                    "{refused:?}"
                );
            }
            assert!(!d.faulted());
            d
        });
        let d = refused.join().unwrap();
        let fault = fault(&d, "forever", &[]);
        assert!(matches!(fault.kind, FaultKind::TimeLimit), "{fault}");
    });
}

/// Who interrupts a domain whose calls have no limit does what the watchdog would, if that cannot be made.
#[test]
fn an_interrupt_needs_no_watchdog() {
    in_child("an_interrupt_needs_no_watchdog", || {
        no_hang();
        // One lane in all: a second one would start the watchdog.
        let (tell, told) = std::sync::mpsc::channel();
        let caller = std::thread::spawn(move || {
            let d = domain();
            tell.send(d.clone()).unwrap();
            fault(&d, "announced", &[])
        });
        let d = told.recv().unwrap();
        wait_until_begun(&d);
        let refused = std::thread::spawn(move || {
            refuse::calls(&[libc::SYS_clone, libc::SYS_clone3]);
            d.interrupt();
        });
        refused.join().unwrap();
        let fault = caller.join().unwrap();
        assert!(matches!(fault.kind, FaultKind::Interrupted), "{fault}");
    });
}
