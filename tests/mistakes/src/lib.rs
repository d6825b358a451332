//! The verifier with mistakes in it, which tests open one by one with [`plant`]: for test builds only.
//!
//! The code is that of `crates/verify`, taken when this is built, with the mistakes that `README.md` describes.

// What the build makes of the verifier's text.
#![allow(unused_braces, unused_parens, clippy::all)]

use std::cell::Cell;

thread_local!(static OPEN: Cell<u32> = const { Cell::new(0) });

fn open(number: u32) -> bool {
    OPEN.get() == number
}

/// Opens mistake `number` of [`MISTAKES`] for this thread, and closes any other; 0 closes all.
pub fn plant(number: u32) {
    OPEN.set(number);
}

include!(concat!(env!("OUT_DIR"), "/verifier/names.rs"));
include!(concat!(env!("OUT_DIR"), "/verifier/lib.rs"));
