//! Small slices of the attacks, so that every change of the tree meets them; the long runs are in `make soak`.

use ringfence_attack::gates::{self, Event, Kind};
use ringfence_attack::{files, fuzz, step};
use std::time::Duration;

/// Runs `f` in a child: it takes over signal handlers. Panics and crashes fail the test.
fn in_child(f: impl FnOnce()) {
    // SAFETY: the child does not go back into the test harness.
    unsafe {
        let child = libc::fork();
        assert!(child >= 0);
        if child == 0 {
            let fine = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).is_ok();
            libc::_exit(i32::from(!fine));
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
        assert_eq!(status, 0, "the child failed");
    }
}

#[test]
fn accepted_encodings_do_what_the_decoder_says() {
    in_child(|| {
        let outcome = step::run(step::Options {
            seed: 7,
            stride: 60_013,
            limit: Duration::from_secs(20),
        });
        assert_eq!(outcome.violations, Vec::<String>::new());
        assert!(outcome.completed > 50, "{outcome:?}");
    });
}

#[test]
fn accepted_programs_leave_the_host_alone() {
    in_child(|| {
        let outcome = fuzz::run(fuzz::Options {
            seed: 7,
            limit: Duration::from_secs(20),
            programs: 1000,
            draws: 300_000,
            trace: false,
        });
        assert_eq!(outcome.violations, Vec::<String>::new());
        assert!(outcome.returned > 100, "{outcome:?}");
    });
}

#[test]
fn nothing_that_happens_in_a_gate_matters() {
    for event in [
        Event::EnterSame,
        Event::EnterOther,
        Event::CrashSame,
        Event::Interrupt,
        Event::Withdraw,
    ] {
        for (kind, on_stack) in [(Kind::Bare, true), (Kind::X87, false), (Kind::Closure, false)] {
            in_child(|| {
                let outcome = gates::run(event, kind, on_stack, 7, event as u64);
                assert_eq!(outcome.violations, Vec::<String>::new());
                assert!(outcome.instructions > 100, "{outcome:?}");
            });
        }
    }
}

#[test]
fn bent_files_are_refused_or_harmless() {
    in_child(|| {
        let outcome = files::run(&[gates::seed()], 7, Duration::from_secs(20), 1000);
        assert_eq!(outcome.violations, Vec::<String>::new());
        assert!(outcome.calls > 100 && outcome.changed_code > 20, "{outcome:?}");
    });
}
