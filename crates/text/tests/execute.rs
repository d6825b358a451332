//! Programs of `tests/programs`: each compiled here and by gcc, and run; their results are the same.
//!
//! A program defines `long test(long a, long b)`, which is called with several pairs of arguments.

mod support;

use std::fmt::Write as _;
use std::path::Path;
use support::{Machine, Outcome};

const ARGUMENTS: [[i64; 2]; 6] = [
    [0, 0],
    [1, 2],
    [-1, 3],
    [100, -7],
    [0x1234_5678_9ABC, 5],
    [i64::MIN, i64::MAX],
];

#[test]
fn programs_do_what_gcc_makes_them_do() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let mut files: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    files.sort();
    assert!(files.len() >= 12, "the programs are there");
    let machine = Machine::new();
    let mut wrong = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let mut main = String::from("\n#include <stdio.h>\nint main(void) {\n");
        for [a, b] in ARGUMENTS {
            // The least number has no constant of its own.
            writeln!(
                main,
                "printf(\"%ld\\n\", test({}L - 1, {b}L));",
                a.wrapping_add(1)
            )
            .unwrap();
        }
        main.push_str("return 0; }\n");
        let expected = support::gcc(&format!("{text}{main}"), &[]).expect("it ends");
        let expected: Vec<&str> = expected.lines().collect();
        let compiled = ringfence_text::compile(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let outcomes = machine.calls(&compiled, "test", &ARGUMENTS);
        for ((arguments, expected), outcome) in ARGUMENTS.into_iter().zip(expected).zip(outcomes) {
            if outcome != Outcome::Value(expected.parse().unwrap()) {
                wrong.push(format!(
                    "{}: {arguments:?}: {outcome:?}, not {expected}",
                    file.display()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
