//! Rule 1, operands through `r14`: what is known of `r11` in a straight line of code.

use crate::bitmap::Bitmap;
use crate::decode::{self, Flow, Instruction, Memory};
use crate::pass::Pass;
use crate::reason::Reason;
use core::hint::select_unpredictable;
use ringfence_isa::Addressing;

/// What is known of `r11` in the straight line of code that is being scanned: from where on it holds a lower half and no operand has
/// relied on it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line(usize);

impl Line {
    /// Nothing.
    pub const LOST: Line = Line(usize::MAX);

    #[inline(always)]
    pub fn holds(self) -> bool {
        self != Line::LOST
    }

    /// The instruction at `at` has an operand that relies on `r11`: nothing may be sent to what stands between it and the move to
    /// `r11d`, nor to itself. Each byte is looked at once, however many operands there are.
    #[inline(always)]
    pub fn rely(self, held: &mut Bitmap, at: usize) -> Line {
        if !self.holds() {
            return self;
        }
        held.insert_range(self.0, at);
        Line(at + 1)
    }

    /// What is known behind an instruction that ends at `next`.
    #[inline(always)]
    pub fn behind(self, r11: R11, next: usize) -> Line {
        let new = select_unpredictable(r11.holds, Line(next), Line::LOST);
        select_unpredictable(r11.lost, new, self)
    }
}

/// Once all instructions are noted: no operand relies on `r11` where only `gs` is accepted.
pub(crate) fn allowed(pass: &mut Pass) {
    if pass.rules.addressing == Addressing::Segment
        && let Some(at) = pass.facts.held.next(0)
    {
        pass.rejections.add(pass.image, at, 0, Reason::HeldRefused);
    }
}

/// What an instruction has to do with `r11`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct R11 {
    /// Its operand is inside the window only if `r11` is below 2³².
    pub relies: bool,
    /// Behind it nothing is known of `r11`: it writes it, in whole or in part, or control does not just go on.
    pub lost: bool,
    /// Except, if it writes it, that `r11` is a number below 2³².
    pub holds: bool,
}

impl R11 {
    /// `free`: its operand may be anywhere.
    pub fn of(i: &Instruction, free: bool) -> R11 {
        R11 {
            relies: i.memory == Memory::Held && !free,
            lost: i.written.contains(decode::R11) || ends(i.flow),
            holds: i.holds,
        }
    }
}

/// Whether nothing is known of `r11` behind an instruction after which control goes on like this.
pub(crate) const fn ends(flow: Flow) -> bool {
    match flow {
        Flow::Next | Flow::String | Flow::Branch | Flow::Push | Flow::Pop => false,
        Flow::Call | Flow::IndirectCall => true,
        Flow::Jump | Flow::IndirectJump | Flow::Return | Flow::Trap => true,
    }
}
