//! Whether a thread stands between a test of the words mode and its access: what it answers to who takes rights away (`settle.rs`).

use crate::lanes::lane::Lane;
use crate::lanes::tested;
use ringfence_isa::words::{CMOV, TEST, TEST_LEN};
use std::sync::atomic::Ordering;

/// In the handler of a tick, which found the thread in the lane's window at `rip`.
pub(crate) fn answer(lane: &Lane, rip: u64) {
    let asked = lane.asked.load(Ordering::Acquire);
    if lane.answered.load(Ordering::Relaxed) < asked && !behind_test(rip) {
        lane.answered.store(asked, Ordering::Release);
    }
}

/// Whether a test stands in front of an instruction, or what looks like one, or that cannot be read. Any other instruction than these
/// begins with a test of its own before it reaches the view.
fn behind_test(rip: u64) -> bool {
    let mut code = [0_u8; TEST_LEN + CMOV.len()];
    // By the kernel: the handler blocks faults.
    if !tested::read(rip.wrapping_sub(code.len() as u64), &mut code) {
        return true;
    }
    let (whole, last) = (code, &code[CMOV.len()..]);
    last.starts_with(&TEST) || whole.starts_with(&TEST) && whole[TEST_LEN..] == CMOV
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::lane::tests::marked;
    use ringfence_isa::words::{READ, TABLE, test};

    #[test]
    fn nobody_answers_behind_a_test() {
        let mut code = vec![0x90; 32];
        code.extend(test(TABLE, READ));
        code.extend(CMOV);
        code.extend([0x90; 16]);
        let at = |n: usize| &raw const code[n] as u64;
        // In front of the test, inside (which is no place to be, and harmless), behind the test, behind the move, one further.
        for (n, held) in [(32, false), (42, true), (46, true), (47, false), (60, false)] {
            assert_eq!(behind_test(at(n)), held, "{n}");
            let lane = marked(1, 0, 0);
            lane.asked.store(7, Ordering::Relaxed);
            answer(&lane, at(n));
            assert_eq!(lane.answered.load(Ordering::Relaxed), if held { 0 } else { 7 });
        }
        assert!(behind_test(5), "what cannot be read");
    }
}
