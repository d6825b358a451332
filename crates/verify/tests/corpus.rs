//! Runs the cases in `tests/verifier`, described in the README there.

mod common;

#[test]
fn every_case_gets_its_verdict() {
    let cases = common::all();
    let mut wrong = 0;
    for (name, source) in &cases {
        if let Err(what) = common::check(source) {
            wrong += 1;
            println!("{name}: {what}");
        }
    }
    println!("{} cases, {wrong} wrong", cases.len());
    assert!(
        wrong == 0,
        "{wrong} of {} cases get the wrong verdict",
        cases.len()
    );
}
