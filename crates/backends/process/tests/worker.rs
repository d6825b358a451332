//! The worker as a program.

use std::process::Command;

#[test]
fn nobody_else_starts_it() {
    let output = Command::new(env!("CARGO_BIN_EXE_ringfence-worker"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("starts it by itself"), "{text}");
    // Not the child of the process that it is told to serve: it goes at once.
    let output = Command::new(env!("CARGO_BIN_EXE_ringfence-worker"))
        .arg("1")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
}
