//! Rule 11, in the words mode only: an operand behind the window follows the tests of its rights.

use crate::decode::{Access, Flow, Instruction};
use crate::pass::Pass;
use crate::reason::Reason;
use ringfence_isa::words::{self, CMOV, TABLE, TEST_LEN};

/// A test and its move.
const STEP: usize = TEST_LEN + CMOV.len();
/// Where they start, and their lengths.
const PARTS: [(usize, usize); 2] = [(0, TEST_LEN), (TEST_LEN, CMOV.len())];

/// The operand of the instruction at `at` is behind the window: the tests for as many bytes as it accesses stand in front of it, one
/// or two, and nothing jumps between them or to it.
pub(crate) fn access(pass: &mut Pass, at: usize, i: &Instruction) {
    let Some((bit, second)) =
        words::tests(i.size, i.access == Access::Write).filter(|_| i.flow == Flow::Next)
    else {
        return pass.reject(at, i, Reason::ViewOperation);
    };
    let displacements = [TABLE, TABLE + second];
    let displacements = &displacements[..1 + usize::from(second != 0)];
    let text = pass.image.text;
    let tested = |at: usize, displacement: u32| {
        pass.facts.decoded_as(at, &PARTS)
            && text[at..].starts_with(&words::test(displacement, bit))
            && text[at + TEST_LEN..].starts_with(&CMOV)
    };
    let start = at.checked_sub(STEP * displacements.len()).filter(|start| {
        let mut steps = (*start..).step_by(STEP).zip(displacements);
        steps.all(|(at, &displacement)| tested(at, displacement))
    });
    let Some(start) = start else {
        return pass.reject(at, i, Reason::BareView);
    };
    for step in (start..at).step_by(STEP) {
        // The beginning of the first test may be jumped to.
        if step != start {
            pass.facts.set_sequence(step);
        }
        pass.facts.set_sequence(step + TEST_LEN);
    }
}
