//! Opens each deliberate hole in turn and demands that the corpus notices: that at least one case that has to be rejected is
//! accepted. `cargo test -p ringfence-verify --features holes --test holes`.

mod common;

use ringfence_verify::{HOLES, plant};

#[test]
fn the_corpus_notices_every_hole() {
    let cases: Vec<_> = common::all()
        .into_iter()
        .map(|(name, source)| {
            let case = common::parse(&source).unwrap_or_else(|e| panic!("{name}: {e}"));
            (name, case)
        })
        .filter(|(_, case)| case.rejection.is_some())
        .collect();
    let slipping = |cases: &[(String, common::Case)]| -> Vec<String> {
        cases
            .iter()
            .filter(|(_, case)| common::run(case).is_ok())
            .map(|(name, _)| name.clone())
            .collect()
    };
    plant(0);
    assert_eq!(
        slipping(&cases),
        Vec::<String>::new(),
        "without a hole nothing slips through"
    );
    let mut missed = Vec::new();
    for (n, hole) in (1..).zip(HOLES) {
        plant(n);
        let through = slipping(&cases);
        println!(
            "{n:2} {hole}: {} cases, first {}",
            through.len(),
            through.first().map_or("none", String::as_str)
        );
        if through.is_empty() {
            missed.push(*hole);
        }
    }
    plant(0);
    assert!(missed.is_empty(), "the corpus does not notice: {missed:?}");
    assert!(HOLES.len() >= 15);
}
