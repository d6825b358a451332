//! Programs under a policy, through the public interface.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use ringfence::policy::{Captured, Decision, Policy, Stream};
use ringfence::{Imports, Module};
use support::Start as _;

/// Reads standard input, writes it to standard output twice, asks for a process number, exits with it.
const PROGRAM: &str = r#"
int __rf_main(int argc, char **argv)
{
	char b[64];
	long n = call(0, 0, (long)b, sizeof b);
	call(1, 1, (long)b, n);
	call(1, 1, (long)argv[argc - 1], 2);
	return call(39, 0, 0, 0);
}
"#;

fn program() -> Module {
    support::from_text(PROGRAM, &[])
}

#[test]
fn streams_are_the_hosts_to_give_and_calls_its_to_answer() {
    needs!(Policy);
    let output = Captured::default();
    let seen = Arc::new(AtomicU32::new(0));
    let count = seen.clone();
    let monitor = Policy::new()
        .args(["p", "ab"])
        .stdin(Stream::Bytes(b"in ".to_vec()))
        .stdout(Stream::Capture(output.clone()))
        .callback(move |request| {
            count.fetch_add(1, Ordering::Relaxed);
            if request.name == Some("getpid") {
                Decision::Return(42)
            } else {
                Decision::Policy
            }
        })
        .start()
        .unwrap();
    let domain = program().start(Imports::new().policy(monitor.clone())).unwrap();
    assert_eq!(domain.run_program(&monitor).unwrap(), 42);
    assert_eq!(output.take(), b"in ab");
    assert_eq!(seen.load(Ordering::Relaxed), 4);
    // A reset gives the streams back as they were.
    domain.reset().unwrap();
    assert_eq!(domain.run_program(&monitor).unwrap(), 42);
    assert_eq!(output.take(), b"in ab");
}

#[test]
fn a_policy_that_panics_ends_the_call() {
    needs!(Policy);
    let monitor = Policy::new()
        .callback(|_| panic!("out of paper"))
        .start()
        .unwrap();
    let domain = program().start(Imports::new().policy(monitor.clone())).unwrap();
    let error = domain.run_program(&monitor).unwrap_err();
    assert!(
        error.to_string().contains("the policy panicked: out of paper"),
        "{error}"
    );
}

#[test]
fn a_module_without_main_is_no_program() {
    let monitor = Policy::new().start().unwrap();
    let error = support::basic().run_program(&monitor).unwrap_err();
    assert!(error.to_string().contains("not a program"), "{error}");
}
