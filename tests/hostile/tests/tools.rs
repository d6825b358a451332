//! What reads hostile files besides the loader: the tools.

use ringfence_driver::check::{Rules, check};
use ringfence_driver::image::ImageError;
use ringfence_driver::inspect::inspect;
use ringfence_hostile::case::Case;
use ringfence_hostile::files;
use ringfence_hostile::meter;

fn file(text: &str) -> Vec<u8> {
    files::spec(&Case::parse(text, files::SHAPES).unwrap()).bytes()
}

/// One string of 1 MB for 10,000 symbols, and 600 KB of symbols for each of the two tables: 10 GB, if each had its copy.
#[test]
fn names_that_are_shared_are_not_copied_without_end() {
    let plain = inspect(&file("data 100")).unwrap();
    assert!(plain.accepted && plain.exports.len() == 3);
    for text in ["symbols 10000 1000000 1", "symtab 10000 1000000 0"] {
        let file = file(text);
        meter::begin();
        let before = meter::live();
        assert!(matches!(inspect(&file), Err(ImageError::Names)), "{text}");
        assert!(
            matches!(check(&file, &Rules::default()), Err(ImageError::Names)),
            "{text}"
        );
        let most = (meter::peak() - before) as usize;
        assert!(most < (160 << 20) + 16 * file.len(), "{text}: {most}");
    }
}

/// The tools read any file that the hunt has kept, and say something of it.
#[test]
fn the_corpus_of_files_ends_no_tool() {
    for case in ringfence_hostile::kind("files").unwrap().corpus().unwrap() {
        let file = files::spec(&case).bytes();
        let _ = check(&file, &Rules::default());
        let _ = inspect(&file);
    }
}
