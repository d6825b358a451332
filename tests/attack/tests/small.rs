//! Small slices of the attacks, so that every change of the tree meets them; the long runs are in `make soak`.

use ringfence_attack::{fuzz, step};
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
