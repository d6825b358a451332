//! Checks machine code against Ringfence's rules before it is mapped executable.
//!
//! What [`verify`] accepts is confined to its window, whoever made it; `docs/verifier.md` lists the
//! rules as implemented and `docs/security/` argues that they suffice. The crate is the
//! trusted part of the product: no `unsafe`, no I/O, no dependency beyond the shared constants, no panics on any
//! input, time linear in the size of the text.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod decode;
mod flow;
mod holes;
mod identifiers;
mod op;
mod quick;
mod reason;
mod report;
mod scan;
mod sequences;
mod table;

use flow::FlowCheck;
use ringfence_isa::{Isolation, window};
use scan::{Rejections, Scanner};

pub use decode::{Access, Flow, Instruction, Memory, decode};
#[cfg(feature = "holes")]
pub use holes::{HOLES, plant};
pub use identifiers::{identifiers, may_hold_labels};
pub use reason::{Reason, Rule};
pub use report::{
    CodeBytes, Function, IdKind, IdPlace, Image, Pad, RegSet, Rejected, Rejection, Report, Rules, Segment,
    SegmentKind,
};

/// Checks `image.text` against the rules.
///
/// `entries` are the addresses at which the host may enter (exports, initialisers); function markers and the
/// targets of direct calls are entries too. Control may also arrive at each landing pad that the text marks
/// ([`ringfence_isa::pad`]), with the depth that the mark says; [`Report::pad_depth`] is what makes resuming a frame safe.
///
/// # Errors
///
/// [`Rejected`] with at least one and at most [`Rejected::LIMIT`] violations.
pub fn verify(image: &Image, entries: &[u32], rules: &Rules) -> Result<Report, Rejected> {
    check_place(image)?;
    let (mut scan, mut rejections) = Scanner::new(image, rules).run();
    for &entry in entries {
        match entry.checked_sub(image.text_address) {
            Some(at) if (at as usize) < image.text.len() => scan.entries.insert(at as usize),
            _ => rejections.add(image, 0, 0, Reason::EntryTarget),
        }
    }
    // Without knowing where instructions start, what follows would only add noise.
    if !rejections.is_empty() {
        return Err(rejections.into_rejected());
    }
    let functions = FlowCheck::new(image, &scan, &mut rejections).functions();
    if !rejections.is_empty() {
        return Err(rejections.into_rejected());
    }
    let mut report = Report {
        features: scan.features,
        mentions: scan.mentions,
        instructions: scan.instructions,
        ..Report::default()
    };
    for f in &functions {
        report.writes = report.writes.or(f.writes);
        report.uses_vector |= f.uses_vector;
        report.uses_x87 |= f.uses_x87;
        report.max_depth = report.max_depth.max(f.max_depth);
    }
    report.labels = scan.labels.numbers();
    report.functions = functions;
    report.pads = scan.pads;
    Ok(report)
}

/// The text must start on a page and fit the part of a window where images are.
fn check_place(image: &Image) -> Result<(), Rejected> {
    let area = u64::from(window::IMAGES_END - window::IMAGES);
    let mut rejections = Rejections::default();
    if u64::from(image.text_address) % ringfence_isa::PAGE != 0 {
        rejections.add(image, 0, 0, Reason::TextMisplaced);
    }
    if u64::from(image.text_address) + image.text.len() as u64 > area {
        rejections.add(image, 0, 0, Reason::TextTooLarge);
    }
    if rejections.is_empty() {
        Ok(())
    } else {
        Err(rejections.into_rejected())
    }
}

/// The exact depth (bytes on the control stack, the return address not counted) at the instruction at `offset` of
/// `function`, one of the functions of a [`Report`] for the same text. `None` if no reachable instruction starts there.
///
/// Takes time linear in the size of the function.
#[must_use]
pub fn depth_at(image: &Image, function: &Function, offset: u32) -> Option<u32> {
    let start = function.entry.checked_sub(image.text_address)? as usize;
    let end = function.end.checked_sub(image.text_address)? as usize;
    let text = image.text.get(start..end)?;
    let part = Image {
        text,
        text_address: function.entry,
        ..*image
    };
    // The text was accepted once, so the rules do not matter, only where instructions are.
    let rules = Rules {
        isolation: Isolation::Integrity,
        allow_tsc: true,
        ..Rules::default()
    };
    let (scan, _) = Scanner::new(&part, &rules).run();
    let at = offset.checked_sub(function.entry)? as usize;
    let mut rejections = Rejections::default();
    FlowCheck::new(&part, &scan, &mut rejections).depth_at(text.len(), at)
}
