//! Rule 4: where direct jumps and calls, the host and landing pads lead.

use crate::check::Check;
use crate::decode::Instruction;
use crate::image::Image;
use crate::notes::{Class, Note, dword};
use crate::pass::Pass;
use crate::reason::Reason;
use core::ops::Range;
use ringfence_isa::{pad, window};

/// Most bytes that a function may have on the control stack: one page, so that no guard is ever stepped over
/// and a gate can tell how much room a call needs.
pub(crate) const MAX_DEPTH: u32 = 4096;

/// Whether an instruction starts here that control may be sent to.
pub(crate) fn is_target(note: Note) -> bool {
    let inside = matches!(
        note.class(),
        Class::Interior | Class::IndirectJump | Class::IndirectCall
    );
    note.len() != 0 && !note.is_held() && !inside
}

/// Why control may not be sent to a place that is no target; `otherwise` if no instruction starts there.
pub(crate) fn refusal(note: Note, otherwise: Reason) -> Reason {
    if note.len() == 0 {
        otherwise
    } else if note.is_held() {
        Reason::IntoHeld
    } else {
        Reason::IntoSequence
    }
}

/// A call leads into this text, where a function begins then, or to the first byte of a gate stub.
pub(crate) fn call(pass: &mut Pass, at: usize, i: &Instruction) {
    let to = (at + usize::from(i.len)) as i64 + i64::from(i.displacement);
    if let Some(to) = usize::try_from(to).ok().filter(|&to| to < pass.image.text.len()) {
        pass.facts.entries.insert(to);
        return;
    }
    let stub = pass.image.image_offset.is_some_and(|image| {
        let target = i64::from(image) + i64::from(pass.image.text_address) + to;
        let stubs = i64::from(window::STUBS)..i64::from(window::STUBS_END);
        stubs.contains(&target) && (target - stubs.start) % i64::from(window::STUB_SIZE) == 0
    });
    if !stub {
        pass.reject(at, i, Reason::CallTarget);
    }
}

/// Where the host may enter a function begins.
pub(crate) fn given_entries(pass: &mut Pass, given: &[u32]) {
    for &entry in given {
        match entry.checked_sub(pass.image.text_address) {
            Some(at) if (at as usize) < pass.image.text.len() => pass.facts.entries.insert(at as usize),
            _ => pass.rejections.add(pass.image, 0, 0, Reason::EntryTarget),
        }
    }
}

/// The depths that landing pads claim are such as functions can have.
pub(crate) fn pad_claims(check: &mut Check) {
    for pad in &check.facts.pads {
        if pad.depth > MAX_DEPTH || !pad.depth.is_multiple_of(8) {
            let at = pad.offset.wrapping_sub(check.image.text_address) as usize;
            check.rejections.add(check.image, at, pad::LEN, Reason::PadClaim);
        }
    }
}

/// Every function begins with an instruction that may be jumped to.
pub(crate) fn entries(check: &mut Check) {
    for entry in check.facts.entries.iter() {
        let note = check.facts.notes[entry];
        if !is_target(note) {
            check.reject(entry, refusal(note, Reason::EntryTarget));
        }
    }
}

/// Landing pads are in functions: none is before the first.
pub(crate) fn pads(check: &mut Check) {
    let first = check.facts.entries.iter().next().unwrap_or(usize::MAX);
    for pad in &check.facts.pads {
        let at = pad.offset.wrapping_sub(check.image.text_address) as usize;
        // One whose claim is bad has been refused for that.
        if at < first && pad.depth <= MAX_DEPTH && pad.depth.is_multiple_of(8) {
            check.reject(at, Reason::PadClaim);
        }
    }
}

/// The jump at `from` in `function` leads to one of its instructions, or to where another function begins.
pub(crate) fn jump(check: &mut Check, from: usize, function: &Range<usize>) {
    let facts = check.facts;
    let lands = target(check.image, from, facts.notes[from])
        .filter(|to| function.contains(to) || facts.entries.contains(*to));
    let note = lands.map_or(Note::default(), |to| facts.notes[to]);
    if !is_target(note) {
        check.reject(from, refusal(note, Reason::JumpTarget));
    }
}

/// Where the direct jump at `from` leads, if it is in the text.
pub(crate) fn target(image: &Image, from: usize, note: Note) -> Option<usize> {
    let next = from + note.len();
    // One byte behind the opcode, or four at the end.
    let distance = match image.text.get(from..next)? {
        [_, distance] => i64::from(*distance as i8),
        _ => i64::from(dword(image.text, next.checked_sub(4)?) as i32),
    };
    let to = usize::try_from(next as i64 + distance).ok()?;
    (to < image.text.len()).then_some(to)
}
