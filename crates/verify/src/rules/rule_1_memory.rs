//! Rule 1: memory operands. The decoder has seen to prefixes and forms; here is what depends on the place.

use crate::decode::{Access, Instruction, Memory};
use crate::image::SegmentKind;
use crate::pass::{Part, Pass};
use crate::reason::Reason;
use crate::rules::rule_11_words;
use ringfence_isa::Isolation;

/// Whether the operand may be anywhere: in integrity mode, if it is only read.
pub(crate) fn may_be_free(pass: &Pass, i: &Instruction) -> bool {
    pass.rules.isolation == Isolation::Integrity && i.access == Access::Read
}

#[inline(always)]
pub(crate) fn operand(pass: &mut Pass, part: &Part, i: &Instruction, free: bool) {
    match i.memory {
        Memory::None | Memory::Confined => {}
        Memory::Rip => rip_relative(pass, part.at, i),
        _ if free => {}
        Memory::View if pass.rules.isolation == Isolation::Words => rule_11_words::access(pass, part.at, i),
        Memory::Free | Memory::View => pass.reject(part.at, i, Reason::Unconfined),
        Memory::Held => {
            if !part.line.holds() {
                pass.reject(part.at, i, Reason::NotHeld);
            }
        }
    }
}

/// The whole access in one segment, stores in data only.
fn rip_relative(pass: &mut Pass, at: usize, i: &Instruction) {
    let next = i64::from(pass.image.text_address) + (at + usize::from(i.len)) as i64;
    let start = next + i64::from(i.displacement);
    let end = start + i64::from(i.size);
    let after = pass.segments.partition_point(|s| i64::from(s.start) <= start);
    let before = pass.segments.get(..after).unwrap_or_default();
    match before
        .last()
        .filter(|s| end <= i64::from(s.start) + i64::from(s.len))
    {
        None => pass.reject(at, i, Reason::OutsideImage),
        Some(s) if i.access == Access::Write && s.kind != SegmentKind::Data => {
            pass.reject(at, i, Reason::StoreToConstants);
        }
        Some(_) => {}
    }
}
