//! Rule 4: where direct jumps and calls, the host and landing pads lead.

use crate::check::Check;
use crate::decode::Instruction;
use crate::image::Image;
use crate::notes::{Class, Facts, NoMemory, Note, dword, reserved};
use crate::pass::Pass;
use crate::reason::Reason;
use crate::report::Pad;
use crate::why::refusal;
use alloc::vec::Vec;
use core::hint::select_unpredictable;
use core::ops::Range;
use ringfence_isa::{pad, window};

/// Most bytes that a function may have on the control stack: one page, so that no guard is ever stepped over
/// and a gate can tell how much room a call needs.
pub(crate) const MAX_DEPTH: u32 = 4096;

/// Whether an instruction starts here that control may be sent to.
pub(crate) fn is_target(facts: &Facts, at: usize) -> bool {
    let note = facts.note(at);
    note.len() != 0 && !facts.held.contains(at) && note.class() != Class::Sequence
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

/// Landing pads are in functions, none before the first, and the depths that they claim are such as functions can have. In order of
/// address; nothing else leads anywhere yet.
pub(crate) fn pads(check: &mut Check) -> Result<Vec<Pad>, NoMemory> {
    let facts = &*check.facts;
    let first = facts.entries.next(0).unwrap_or(usize::MAX);
    let mut pads = reserved(facts.leaders.count())?;
    for at in facts.leaders.iter() {
        let claim = check.image.text.get(at..).and_then(pad::claim);
        let depth = u32::from(claim.unwrap_or(u16::MAX));
        if depth > MAX_DEPTH || !depth.is_multiple_of(8) || at < first {
            check.rejections.add(check.image, at, pad::LEN, Reason::PadClaim);
        }
        let offset = check.image.text_address.wrapping_add(at as u32);
        pads.push(Pad { offset, depth });
    }
    for pad in &pads {
        check
            .facts
            .lead(pad.offset.wrapping_sub(check.image.text_address) as usize);
    }
    Ok(pads)
}

/// Every function begins with an instruction that may be jumped to.
pub(crate) fn entries(check: &mut Check) {
    let mut next = 0;
    while let Some(at) = check.facts.entries.next(next) {
        if !is_target(check.facts, at) {
            check.reject(at, refusal(check.facts, at, Reason::EntryTarget));
        }
        check.facts.lead(at);
        next = at + 1;
    }
}

/// The jump at `from` in `function` leads to one of its instructions, or to where another function begins.
pub(crate) fn jump(check: &mut Check, from: usize, function: &Range<usize>) {
    let to = target(check.image, from, check.facts.note(from))
        .filter(|to| function.contains(to) || check.facts.entries.contains(*to))
        .unwrap_or(usize::MAX);
    if !is_target(check.facts, to) {
        check.reject(from, refusal(check.facts, to, Reason::JumpTarget));
    }
    check.facts.lead(to);
}

/// Where the direct jump at `from` leads, if it is in the text.
pub(crate) fn target(image: &Image, from: usize, note: Note) -> Option<usize> {
    let next = from + note.len();
    // One byte behind the opcode, or four at the end.
    let near = image.text.get(from + 1).map_or(0, |&byte| byte as i8 as usize);
    let far = dword(image.text, next.wrapping_sub(4)) as i32 as usize;
    let to = next.wrapping_add(select_unpredictable(note.len() == 2, near, far));
    (to < image.text.len()).then_some(to)
}
