//! The worker as a program.

use std::process::Command;

#[test]
fn nobody_else_starts_it() {
    let output = Command::new(env!("CARGO_BIN_EXE_ringfence-worker"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("starts it by itself"), "{text}");
    // Not the child of the process that it is told to serve: it goes at once.
    let output = Command::new(env!("CARGO_BIN_EXE_ringfence-worker"))
        .arg("1")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
}

/// Asked for it, it locks itself in, tells what took hold, and ends.
#[test]
fn it_tells_what_holds_it() {
    let output = Command::new(env!("CARGO_BIN_EXE_ringfence-worker"))
        .arg("--confinement")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    // The filter is never missing.
    assert!(
        matches!(output.stdout.as_slice(), [b'y', b'y' | b'n', b'y' | b'n']),
        "{output:?}"
    );
}
