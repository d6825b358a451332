//! Opens each mistake in turn and demands that the corpus notices: that at least one case that has to be rejected is accepted, or
//! that the report of an accepted one, which the runtime relies on, says what is not so.

#[path = "../../../crates/verify/tests/common/mod.rs"]
mod common;

extern crate ringfence_mistakes as ringfence_verify;

use ringfence_verify::{MISTAKES, plant};

#[test]
fn the_corpus_notices_every_mistake() {
    let cases: Vec<_> = common::all()
        .into_iter()
        .map(|(name, source)| {
            let case = common::parse(&source).unwrap_or_else(|e| panic!("{name}: {e}"));
            (name, case)
        })
        .collect();
    let slipping = |cases: &[(String, common::Case)]| -> Vec<String> {
        cases
            .iter()
            .filter(|(_, case)| common::slips(case))
            .map(|(name, _)| name.clone())
            .collect()
    };
    plant(0);
    assert_eq!(
        slipping(&cases),
        Vec::<String>::new(),
        "without a mistake nothing slips through"
    );
    let mut missed = Vec::new();
    for (n, mistake) in (1..).zip(MISTAKES) {
        plant(n);
        let through = slipping(&cases);
        println!(
            "{n:2} {mistake}: {} cases, first {}",
            through.len(),
            through.first().map_or("none", String::as_str)
        );
        if through.is_empty() {
            missed.push(*mistake);
        }
    }
    plant(0);
    assert!(missed.is_empty(), "the corpus does not notice: {missed:?}");
    assert_eq!(MISTAKES.len(), 77);
}
