//! Checks machine code against Ringfence's rules before it is mapped executable.
//!
//! What [`verify`] accepts is confined to its window, whoever made it; `docs/verifier.md` lists the
//! rules as implemented and `docs/security/` argues that they suffice. The crate is the
//! trusted part of the product: no `unsafe`, no standard library, no I/O, no dependency beyond the shared constants, no panics on any
//! input, time and memory linear in the size of the text, and an error where there is no memory.
//!
//! Read in this order: [`verify`], `scan` (the first pass), `rules/` (one file for each), `decode` with `table`, and `quick`.
//! `identifiers`, `messages`, `reason` and `report` decide nothing.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;
#[cfg(test)]
extern crate std;

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
mod table;

use alloc::vec::Vec;
use check::{Chains, Check};
use core::ops::Range;
use notes::{Facts, NoMemory};
use pass::Pass;
use rejections::Rejections;
use rules::rule_3_depth::Walker;
use rules::{rule_0_text, rule_4_direct, rule_5_tables, rule_6_identifiers};

pub use decode::{Access, Flow, Instruction, Memory, decode};
pub use identifiers::{IdKind, IdPlace, identifiers, may_hold_labels};
pub use image::{Image, Rules, Segment, SegmentKind};
pub use reason::{Reason, Rule};
pub use report::{CodeBytes, Function, Pad, RegSet, Rejected, Rejection, Report};

/// Checks `image.text` against the rules.
///
/// `entries` are the addresses at which the host may enter (exports, initialisers); function markers and the
/// targets of direct calls are entries too. Control may also arrive at each landing pad that the text marks
/// ([`ringfence_isa::pad`]), with the depth that the mark says; [`Report::pad_depth`] is what makes resuming a frame safe.
///
/// It allocates at most 24 bytes for a byte of text, 5 or fewer for usual code.
///
/// # Errors
///
/// [`Rejected`] with at least one and at most [`Rejected::LIMIT`] violations; [`Reason::NoMemory`] if an allocation failed.
pub fn verify(image: &Image, entries: &[u32], rules: &Rules) -> Result<Report, Rejected> {
    let mut rejections = Rejections::default();
    match check(image, entries, rules, &mut rejections) {
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
    image: &Image,
    given: &[u32],
    rules: &Rules,
    rejections: &mut Rejections,
) -> Result<Result<Report, Rejected>, NoMemory> {
    // Rule 0: where the text lies, and what lies around it.
    rule_0_text::place(image, rejections);
    if let Err(rejected) = rejections.verdict() {
        return Ok(Err(rejected));
    }
    let segments = rule_0_text::layout(image, rejections)?;

    // Each instruction by itself: rules 1 and 2, 4 for calls, and 5 to 9.
    let mut facts = Facts::new(image.text.len())?;
    let mut pass = Pass {
        image,
        rules,
        segments: &segments,
        facts: &mut facts,
        rejections,
        lost: false,
    };
    scan::scan(&mut pass)?;
    if !pass.lost {
        rule_6_identifiers::hidden(&mut pass);
    }
    rule_4_direct::given_entries(&mut pass, given);
    // Without knowing where instructions start, what follows would only add noise.
    if let Err(rejected) = rejections.verdict() {
        return Ok(Err(rejected));
    }

    // Functions: rules 4, 5 and 6.
    let chains = Chains::new(&facts.labels, rules)?;
    let mut check = Check {
        image,
        facts: &facts,
        chains: &chains,
        rejections,
    };
    rule_4_direct::pad_claims(&mut check);
    rule_4_direct::entries(&mut check);
    rule_4_direct::pads(&mut check);
    let (mut jumps, mut table, mut label) = (facts.jumps.iter().peekable(), 0, 0);
    for function in with_head(&facts, image.text.len()) {
        while let Some(jump) = jumps.next_if(|&at| at < function.end) {
            rule_4_direct::jump(&mut check, jump, &function);
        }
        table = rule_5_tables::tables(&mut check, table, &function);
        label = rule_6_identifiers::labels(&mut check, label, &function);
    }
    // To follow control relies on all this.
    if let Err(rejected) = check.rejections.verdict() {
        return Ok(Err(rejected));
    }

    // Rule 3: what is reached, and how deep.
    let mut walker = Walker::new(chains.slots())?;
    let mut functions = Vec::new();
    functions
        .try_reserve_exact(facts.entries.count())
        .map_err(|_| NoMemory)?;
    for function in with_head(&facts, image.text.len()).skip(1) {
        functions.push(walker.function(&mut check, function)?);
    }
    if let Err(rejected) = check.rejections.verdict() {
        return Ok(Err(rejected));
    }
    // Rule 10, that text stays text, is the loader's.
    let known = Report {
        features: facts.features,
        mentions: facts.mentions,
        instructions: facts.instructions,
        labels: chains.numbers()?,
        pads: facts.pads,
        text_address: image.text_address,
        depths: walker.found,
        ..Report::default()
    };
    Ok(Ok(Report::new(functions, known)))
}

/// What precedes the first function, then all functions. The first may be empty; nothing reaches it, but its jumps are checked too.
fn with_head(facts: &Facts, end: usize) -> impl Iterator<Item = Range<usize>> + '_ {
    let starts = core::iter::once(0).chain(facts.entries.iter());
    let ends = facts.entries.iter().chain(core::iter::once(end));
    starts.zip(ends).map(|(start, end)| start..end)
}
