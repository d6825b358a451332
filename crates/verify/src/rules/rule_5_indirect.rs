//! Rule 5: indirect jumps and calls end the checked sequence, and nothing writes `r14`, on which it relies.

use crate::decode::{Flow, Instruction};
use crate::pass::Pass;
use crate::reason::Reason;
use crate::rules::{rule_5_tables, rule_6_identifiers};
use ringfence_isa::{identifier, sequence};

/// Where the instructions before the jump in the checked sequence start, and their lengths.
const CHECK_PARTS: [(usize, usize); 4] = [(0, 4), (4, 10), (14, 4), (18, 3)];

/// Whether the registers that an instruction writes, as a set, have `r14` among them. The quick decoder's table has the same.
#[inline(always)]
pub(crate) fn writes_r14(written: u32) -> bool {
    written & 1 << 14 != 0
}

#[inline(always)]
pub(crate) fn window_base(pass: &mut Pass, at: usize, i: &Instruction) {
    if writes_r14(i.written.0.into()) {
        pass.reject(at, i, Reason::WindowBase);
    }
}

/// An indirect call must end the checked sequence, a jump that or the one through a table.
pub(crate) fn checked(pass: &mut Pass, at: usize, i: &Instruction) {
    let last = match i.flow {
        Flow::IndirectJump => sequence::JMP,
        _ => sequence::CALL,
    };
    let start = at.checked_sub(sequence::LEN - last.len()).filter(|&start| {
        let s = &pass.image.text[start..];
        s.starts_with(&sequence::AND)
            && s[4..].starts_with(&sequence::CMP)
            && s[14..].starts_with(&sequence::CMOV)
            && s[18..].starts_with(&sequence::ADD)
            && s[21..].starts_with(&last)
            && pass.facts.decoded_as(start, &CHECK_PARTS)
    });
    let Some(start) = start else {
        if i.flow == Flow::IndirectCall || !rule_5_tables::table_jump(pass, at) {
            pass.reject(at, i, Reason::BareIndirect);
        }
        return;
    };
    for (part, _) in &CHECK_PARTS[1..] {
        pass.facts.set_sequence(start + part);
    }
    let id = pass.dword(start + sequence::ID_OFFSET);
    if id != identifier::FUNCTION {
        if !identifier::is_reserved(id) || !rule_6_identifiers::may_use(pass, id as u16) {
            pass.reject(at, i, Reason::SequenceIdentifier);
        } else if i.flow == Flow::IndirectCall {
            pass.reject(at, i, Reason::CallIdentifier);
        }
    }
}
