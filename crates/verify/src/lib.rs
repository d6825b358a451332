//! Checks machine code against Ringfence's rules before it is mapped executable.
//!
//! What [`verify`] accepts is confined to its window, whoever made it; `docs/verifier.md` lists the
//! rules as implemented and `docs/security.md` argues that they suffice. The crate is the
//! trusted part of the product: no `unsafe`, no I/O, no dependency beyond the shared constants, no panics on any
//! input, time linear in the size of the text.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod reason;
mod report;

pub use reason::{Reason, Rule};
pub use report::{
    CodeBytes, Function, IdKind, IdPlace, Image, RegSet, Rejected, Rejection, Report, Rules, Segment,
    SegmentKind,
};

/// Checks `image.text` against the rules.
///
/// `entries` are the addresses at which the host may enter (exports, initialisers); function markers and the
/// targets of direct calls are entries too.
///
/// # Errors
///
/// [`Rejected`] with at least one and at most [`Rejected::LIMIT`] violations.
pub fn verify(image: &Image, entries: &[u32], rules: &Rules) -> Result<Report, Rejected> {
    let _ = (entries, rules);
    let rejection = Rejection::new(image.text_address, Reason::NotAccepted, image.text);
    Err(Rejected {
        rejections: vec![rejection],
        truncated: false,
    })
}

/// Finds the places of label identifiers in text, finalized or not: the last link step and the loader renumber
/// them. Function identifiers and no-op fillers (value 0) are left out.
///
/// # Errors
///
/// The first instruction that is not decodable.
pub fn identifiers(text: &[u8], text_address: u32) -> Result<Vec<IdPlace>, Rejection> {
    Err(Rejection::new(text_address, Reason::NotAccepted, text))
}

/// The exact depth (bytes on the control stack, the return address not counted) at the instruction at `offset` of
/// `function`, one of a [`Report`]'s for the same text. `None` if no reachable instruction starts there.
#[must_use]
pub fn depth_at(image: &Image, function: &Function, offset: u32) -> Option<u32> {
    let _ = (image, function, offset);
    None
}
