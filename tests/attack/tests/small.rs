//! Small slices of the attacks, so that every change of the tree meets them; the long runs are in `make soak`.

use ringfence_attack::gates::{self, Event, Kind};
use ringfence_attack::{calls, corpus, files, fuzz, races, step};
use std::time::Duration;

/// Runs `f` in a child: it takes over signal handlers. Panics and crashes fail the test.
fn in_child(f: impl FnOnce()) {
    assert_eq!(ringfence_attack::child::in_child(f), 0, "the child failed");
}

#[test]
fn accepted_encodings_do_what_the_decoder_says() {
    in_child(|| {
        let outcome = step::run(step::Options {
            seed: 7,
            stride: 997,
            limit: Duration::from_secs(20),
        });
        assert_eq!(outcome.violations, Vec::<String>::new());
        assert!(outcome.completed > 50 && outcome.through_r14 > 20, "{outcome:?}");
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
            words: false,
        });
        assert_eq!(outcome.violations, Vec::<String>::new());
        assert!(outcome.returned > 100, "{outcome:?}");
        assert!(outcome.through_r14 > 500, "{outcome:?}");
    });
}

#[test]
fn programs_of_the_words_mode_reach_what_they_were_given() {
    in_child(|| {
        let outcome = fuzz::run(fuzz::Options {
            seed: 11,
            limit: Duration::from_secs(20),
            programs: 1000,
            draws: 300_000,
            trace: false,
            words: true,
        });
        assert_eq!(outcome.violations, Vec::<String>::new());
        assert!(outcome.views.0 > 1000 && outcome.views.1 > 100, "{outcome:?}");
        assert!(
            outcome.ends.get("denied").is_some_and(|&n| n > 100),
            "{outcome:?}"
        );
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
        for (kind, on_stack, stride) in [
            (Kind::Bare, true, 7),
            (Kind::X87, false, 7),
            (Kind::Closure, false, 7),
            (Kind::Jumps, false, 11),
        ] {
            in_child(|| {
                let outcome = gates::run(event, kind, on_stack, stride, event as u64);
                assert_eq!(outcome.violations, Vec::<String>::new());
                assert!(outcome.instructions > 100, "{outcome:?}");
            });
        }
    }
}

/// The newer gates: exceptions, failing callees, added code; and what other threads may do meanwhile.
#[test]
fn nothing_that_happens_in_a_newer_gate_matters() {
    for (event, kind, stride) in [
        (Event::EnterOther, Kind::Callee, 5),
        (Event::EnterSame, Kind::Frames, 61),
        (Event::CrashSame, Kind::Frames, 61),
        (Event::CrashCallee, Kind::Callee, 31),
        (Event::Interrupt, Kind::Frames, 97),
        (Event::Interrupt, Kind::Callee, 97),
        (Event::Deadline, Kind::Added, 29),
        (Event::Reset, Kind::Frames, 61),
        (Event::Reset, Kind::Failing, 97),
        (Event::Recycle, Kind::Added, 5),
        (Event::Replace, Kind::Added, 7),
    ] {
        in_child(|| {
            let outcome = gates::run(event, kind, false, stride, event as u64);
            assert_eq!(outcome.violations, Vec::<String>::new());
            assert!(outcome.instructions > 100, "{outcome:?}");
        });
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

#[test]
fn system_calls_leave_the_host_alone() {
    in_child(|| {
        let outcome = calls::run(7, Duration::from_secs(3));
        assert_eq!(outcome.violations, Vec::<String>::new());
        assert!(outcome.kinds > 20 && outcome.comparisons > 1, "{outcome:?}");
    });
}

#[test]
fn what_the_host_checked_is_what_it_uses() {
    in_child(|| {
        for race in races::run(Duration::from_millis(500)) {
            assert_eq!(race.violations, Vec::<String>::new(), "{}", race.name);
            assert!(race.saw.0 > 0 && race.saw.1 > 0, "no race: {race:?}");
        }
    });
}

/// What a coverage-guided fuzzer kept, as it is and a little changed.
#[test]
fn the_corpus_of_files_is_refused_or_harmless() {
    in_child(|| {
        let kept = corpus::kept().expect("tests/cover/corpus.txt");
        for (n, bytes) in kept.iter().enumerate() {
            assert_eq!(
                corpus::decode(&corpus::encode(bytes)).as_ref(),
                Some(bytes),
                "{n}"
            );
        }
        let whole = files::replay(&kept);
        assert_eq!(whole.violations, Vec::<String>::new());
        assert!(whole.files > 100 && whole.loaded > 5, "{whole:?}");
        let bent = files::run(&kept, 7, Duration::from_secs(20), 2000);
        assert_eq!(bent.violations, Vec::<String>::new());
    });
}
