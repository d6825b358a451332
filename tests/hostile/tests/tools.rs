//! What reads hostile files besides the loader: the tools.

use ringfence_core::work::{Bound, Budget};
use ringfence_debug::prototype;
use ringfence_driver::check::{Rules, check};
use ringfence_driver::image::ImageError;
use ringfence_driver::inspect::inspect;
use ringfence_hostile::case::Case;
use ringfence_hostile::files::{self, tools};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Memory is the process's: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn file(text: &str) -> Vec<u8> {
    files::spec(&Case::parse(text, files::SHAPES).unwrap()).bytes()
}

/// One string of 1 MB for 10,000 symbols, and 600 KB of symbols for each of the two tables: 10 GB, if each had its copy.
#[test]
fn names_that_are_shared_are_not_copied_without_end() {
    let _alone = alone();
    let plain = inspect(&file("data 100")).unwrap();
    assert!(plain.accepted && plain.exports.len() == 3);
    // No name is so long; what is there for messages only is not told.
    let long = file("symbols 10000 1000000 1");
    assert!(matches!(inspect(&long), Err(ImageError::Name)));
    assert!(matches!(check(&long, &Rules::default()), Err(ImageError::Name)));
    assert!(inspect(&file("symtab 10000 1000000 0")).unwrap().accepted);
    // As long as names may be, and too many of them.
    for text in ["symbols 20000 16000 1", "symtab 60000 16000 0"] {
        let file = file(text);
        let over = |e: &ImageError| matches!(e, ImageError::Exceeded(_));
        assert!(inspect(&file).is_err_and(|e| over(&e)), "{text}");
        tools::hold(&file).unwrap();
    }
}

/// A megabyte of needed libraries that share a name, notes that each of many program headers covers, lists of functions of any
/// size: what was 6 GB from files of one or two.
#[test]
fn tables_that_are_shared_are_not_copied_without_end() {
    let _alone = alone();
    for text in [
        "symbols 1 16000 1; dynamic 1 4 60000",
        "symbols 1 1000000 1; dynamic 1 4 60000",
        "notes 2000 0; segments 400 0",
        "notes 2000 1; segment 4 4 0 0 2000000 0 0",
        "relocations 300000 5; constructors 65000 0",
        "relocations 300000 4",
        "sections 65000 0",
        "code 1000000 3; units 20000 400 4000",
        "code 1000000 3; ranges 10000 10000 4",
        "code 1000000 3; rows 2000000 40 5",
    ] {
        tools::hold(&file(text)).unwrap_or_else(|e| panic!("{text}: {e}"));
    }
}

/// The types of functions are found in one pass, however entries and shapes refer to each other.
#[test]
fn prototypes_cost_what_the_file_has() {
    let _alone = alone();
    for text in [
        "units 20000 400 4000",
        "inlined 500000 1 4",
        "siblings 1000000 1",
        "strings 10000 4000",
    ] {
        let file = file(text);
        tools::hold(&file).unwrap_or_else(|e| panic!("{text}: {e}"));
    }
    // Units that share a megabyte of shapes are paid each time.
    let file = file("units 20000 400 4000");
    let mut budget = Budget::for_file(file.len() as u64);
    let over = prototype::of(&file, "no such function", &mut budget).unwrap_err();
    assert_eq!(over.bound, Bound::Steps);
}

/// The tools read any file that the hunt has kept, and say something of it.
#[test]
fn the_corpus_of_files_ends_no_tool() {
    let _alone = alone();
    for case in ringfence_hostile::kind("files").unwrap().corpus().unwrap() {
        let file = files::spec(&case).bytes();
        tools::hold(&file).unwrap_or_else(|e| panic!("{case}: {e}"));
    }
}
