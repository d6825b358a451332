//! Rule 1, operands through `r14`: what is known of `r11` in a straight line of code.

use crate::decode::{self, Instruction, Memory};
use crate::notes::{Class, Note};
use core::hint::select_unpredictable;

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
    /// `r11d`, nor to itself. Each note is looked at once, however many operands there are.
    #[inline(always)]
    pub fn rely(self, notes: &mut [Note], at: usize) -> Line {
        let last = at + 1;
        let Some(between) = notes.get_mut(self.0..last) else {
            return self;
        };
        between.iter_mut().for_each(Note::set_held);
        Line(last)
    }

    /// What is known behind an instruction that ends at `next`.
    #[inline(always)]
    pub fn behind(self, r11: R11, next: usize) -> Line {
        let lost = 0_usize.wrapping_sub(usize::from(r11.lost));
        select_unpredictable(r11.holds, Line(next), Line(self.0 | lost))
    }
}

/// What an instruction has to do with `r11`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct R11 {
    /// Its operand is inside the window only if `r11` is below 2³².
    pub relies: bool,
    /// Behind it nothing is known of `r11`: it writes it, in whole or in part, or control does not just go on.
    pub lost: bool,
    /// Except that it makes `r11` a number below 2³².
    pub holds: bool,
}

impl R11 {
    /// `free`: its operand may be anywhere.
    pub fn of(i: &Instruction, class: Class, free: bool) -> R11 {
        R11 {
            relies: i.memory == Memory::Held && !free,
            lost: i.written.contains(decode::R11) || ends(class),
            holds: i.holds,
        }
    }
}

/// Whether nothing is known of `r11` behind an instruction of this class.
pub(crate) const fn ends(class: Class) -> bool {
    match class {
        Class::Plain | Class::Interior | Class::Branch | Class::Push | Class::Pop => false,
        Class::FunctionMarker | Class::LabelMarker => true,
        Class::Call | Class::IndirectCall => true,
        Class::Jump | Class::IndirectJump | Class::Return | Class::Trap => true,
    }
}
