//! Rule 7: a string instruction must follow the instructions that rebuild its pointers.

use crate::decode::Instruction;
use crate::pass::Pass;
use crate::reason::Reason;

/// `movl %edi, %edi; leaq (%r14,%rdi), %rdi`: rebuilds `rdi` inside the window.
const REBUILD_RDI: [u8; 6] = [0x89, 0xFF, 0x49, 0x8D, 0x3C, 0x3E];
/// The same for `rsi`.
const REBUILD_RSI: [u8; 6] = [0x89, 0xF6, 0x49, 0x8D, 0x34, 0x36];
/// Where the instructions of either start, and their lengths.
const REBUILD_PARTS: [(usize, usize); 2] = [(0, 2), (2, 4)];

pub(crate) fn string(pass: &mut Pass, at: usize, i: &Instruction) {
    let text = pass.image.text;
    // The opcode is the last byte of a string instruction.
    let pairs: &[&[u8; 6]] = match text[at + usize::from(i.len) - 1] {
        0xA4..=0xA7 => &[&REBUILD_RDI, &REBUILD_RSI],
        0xAC | 0xAD => &[&REBUILD_RSI],
        _ => &[&REBUILD_RDI],
    };
    let start = at.checked_sub(6 * pairs.len()).filter(|start| {
        (*start..)
            .step_by(6)
            .zip(pairs)
            .all(|(at, pair)| text[at..].starts_with(*pair) && pass.facts.decoded_as(at, &REBUILD_PARTS))
    });
    let Some(start) = start else {
        pass.reject(at, i, Reason::BareString);
        return;
    };
    for at in (start..at).step_by(6) {
        for (part, _) in REBUILD_PARTS {
            // The sequence's beginning may be jumped to.
            if at + part != start {
                pass.facts.set_sequence(at + part);
            }
        }
    }
}
