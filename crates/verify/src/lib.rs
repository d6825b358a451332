//! Checks machine code against Ringfence's rules before it is mapped executable.
//!
//! What [`verify`] accepts is confined to its window, whoever made it; `docs/verifier.md` lists the
//! rules as implemented and `docs/security/` argues that they suffice. The crate is the
//! trusted part of the product: no `unsafe`, no standard library, no I/O, no dependency beyond the shared constants, no panics on any
//! input, time and memory linear in the size of the text, and an error where there is no memory.
//!
//! Read in this order: [`verify`], `scan` (the first pass), `rules/` (one file for each), `decode` with `table`, and `quick`.
//! `depths`, `identifiers`, `messages`, `reason`, `report`, `summary` and `why` decide nothing.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod bitmap;
mod check;
mod decode;
mod depths;
mod identifiers;
mod image;
mod messages;
mod notes;
mod op;
mod pass;
mod quick;
mod reason;
mod rejections;
mod report;
mod rules;
mod scan;
mod summary;
mod table;
mod why;

use bitmap::Bitmap;
use check::Check;
use notes::{Facts, NoMemory, filled, reserved};
use pass::Pass;
use rejections::Rejections;
use rules::rule_3_depth::Walker;
use rules::rule_6_identifiers::Labels;
use rules::{rule_0_text, rule_1_held, rule_4_direct, rule_5_tables, rule_6_identifiers};

pub use decode::{Access, Flow, Instruction, Memory, decode};
pub use identifiers::{IdKind, IdPlace, identifiers};
pub use image::{Image, Rules, Segment, SegmentKind};
pub use notes::MARGIN;
pub use reason::{Reason, Rule};
pub use report::{CodeBytes, Function, Pad, Place, RegSet, Rejected, Rejection, Report};

/// What is said of a text.
pub type Verdict = Result<Report, Rejected>;

/// Checks `image.text` against the rules.
///
/// `entries` are the addresses at which the host may enter (exports, initialisers); function markers and the
/// targets of direct calls are entries too. Control may also arrive at each landing pad that the text marks
/// ([`ringfence_isa::pad`]), with the depth that the mark says; [`Report::place_at`] is what makes resuming a frame safe.
///
/// It allocates less than 4 bytes for a byte of text, and half a megabyte.
///
/// # Errors
///
/// [`Rejected`] with at least one and at most [`Rejected::LIMIT`] violations; [`Reason::NoMemory`] if an allocation failed.
pub fn verify(image: &Image, entries: &[u32], rules: &Rules) -> Verdict {
    let mut notes = filled(image.text.len() + MARGIN, 0).unwrap_or_default();
    verify_in(&mut notes, image, entries, rules)
}

/// The same, with the larger half of its memory from the caller: a byte for each of the text's and [`MARGIN`] more, whatever is in them.
///
/// # Errors
///
/// As [`verify`].
pub fn verify_in(notes: &mut [u8], image: &Image, entries: &[u32], rules: &Rules) -> Verdict {
    let mut rejections = Rejections::default();
    match check(notes, image, entries, rules, &mut rejections) {
        Ok(verdict) => verdict,
        Err(NoMemory) => {
            rejections.clear();
            rejections.add(image, 0, 0, Reason::NoMemory);
            rejections.verdict().map(|()| Report::default())
        }
    }
}

/// The rules in their order, but that all about single instructions are looked at in one pass.
fn check(
    notes: &mut [u8],
    image: &Image,
    given: &[u32],
    rules: &Rules,
    rejections: &mut Rejections,
) -> Result<Verdict, NoMemory> {
    // Rule 0: where the text lies, and what lies around it.
    rule_0_text::place(image, rejections);
    if let Err(rejected) = rejections.verdict() {
        return Ok(Err(rejected));
    }
    let segments = rule_0_text::layout(image, rejections)?;

    // Each instruction by itself: rules 1 and 2, 4 for calls, and 5 to 9.
    let len = image.text.len();
    let mut facts = Facts::new(len, notes)?;
    let mut pass = Pass {
        image,
        rules,
        segments: &segments,
        facts: &mut facts,
        rejections,
        lost: false,
    };
    scan::scan(&mut pass);
    if !pass.lost {
        rule_6_identifiers::markers(&mut pass);
    }
    rule_1_held::allowed(&mut pass);
    rule_4_direct::given_entries(&mut pass, given);
    // Without knowing where instructions start, what follows would only add noise.
    if let Err(rejected) = rejections.verdict() {
        return Ok(Err(rejected));
    }

    // Functions, and what precedes the first (nothing reaches it, but its jumps are checked too): rules 4, 5 and 6.
    let jumps = facts.collect()?;
    let tables = core::mem::take(&mut facts.tables);
    let labels = Labels::new(image, &facts, rules)?;
    let mut check = Check {
        image,
        facts: &mut facts,
        labels: &labels,
        rejections,
    };
    let pads = rule_4_direct::pads(&mut check)?;
    rule_4_direct::entries(&mut check);
    let places = core::mem::take(&mut check.facts.labels);
    rules_of_functions(&mut check, &jumps, &tables, &places);
    // To follow control relies on all this.
    if let Err(rejected) = check.rejections.verdict() {
        return Ok(Err(rejected));
    }

    // Rule 3: what is reached, and how deep.
    drop((jumps, places));
    let through_r14 = core::mem::take(&mut check.facts.held).next(0).is_some();
    let mut walker = Walker::new(&check, tables)?;
    let mut report = Report {
        text: image.text_address..image.text_address.wrapping_add(len as u32),
        functions: reserved(check.facts.entries.count())?,
        through_r14,
        ..Report::default()
    };
    let first = check.facts.entries.next(0).unwrap_or(len);
    let mut function = check.facts.function_from(first);
    while let Some(f) = function {
        function = check.facts.function_from(f.end);
        let f = walker.function(&mut check, f, &pads);
        report.max_depth = report.max_depth.max(f.max_depth);
        report.functions.push(f.into());
    }
    if let Err(rejected) = check.rejections.verdict() {
        return Ok(Err(rejected));
    }
    // Rule 10, that text stays text, is the loader's.
    summary::complete(report, facts, &labels, walker, pads).map(Ok)
}

/// The rules about functions in order of address, and about what precedes the first: nothing reaches it, but its jumps are checked too.
fn rules_of_functions(check: &mut Check, jumps: &Bitmap, tables: &Bitmap, labels: &Bitmap) {
    let (mut jumps, mut tables) = (jumps.iter().peekable(), tables.iter().peekable());
    let mut labels = labels.iter().peekable();
    let mut function = check.facts.function_from(0);
    while let Some(f) = function {
        while let Some(at) = jumps.next_if(|&at| at < f.end) {
            rule_4_direct::jump(check, at, &f);
        }
        while let Some(at) = tables.next_if(|&at| at < f.end) {
            rule_5_tables::table(check, at, &f);
        }
        while let Some(at) = labels.next_if(|&at| at < f.end) {
            rule_6_identifiers::label(check, at, &f);
        }
        function = check.facts.function_from(f.end);
    }
}
