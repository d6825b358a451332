//! Rule 8: state that outlives a call. What is refused always is not in the tables; here is what depends on the module.

use crate::decode::Instruction;
use crate::pass::Pass;
use crate::reason::Reason;

#[inline(always)]
pub(crate) fn allowed(pass: &mut Pass, at: usize, i: &Instruction) {
    if i.x87 && !pass.rules.allow_x87 {
        pass.reject(at, i, Reason::X87Refused);
    }
    if i.time_stamp && !pass.rules.allow_tsc {
        pass.reject(at, i, Reason::TimeStamp);
    }
}
