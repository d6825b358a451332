//! First writes to objects of a checked heap: a domain that may write a word has no right to it in its table until it has written it, so
//! each such write faults once, and a read before it is denied.
//!
//! The handler gives the right, and lets the thread begin again with the *test* in front of the access: whatever has happened to the object
//! meanwhile, the access is tested by the table as it is then.

use crate::lanes::lane::Lane;
use crate::lanes::tested;
use ringfence_isa::words::{self, TABLE};

/// Where a thread begins again, and with which `r11`.
pub(crate) struct Again {
    pub rip: u64,
    pub r11: u32,
}

/// In the handler of a fault at `rip` in the lane's window: whether it was an access to one's own object that is tried again.
pub(crate) fn again(lane: &Lane, registers: &[u64; 16], rip: u64, address: u64) -> Option<Again> {
    let fresh = lane.shared().fresh.as_ref()?;
    if registers[11] != 0 {
        return None;
    }
    // By the kernel: the handler blocks faults.
    let code = tested::Code::around(rip, tested::read)?;
    let (before, here) = code.parts();
    let found = tested::access(before, here)?;
    // At the access itself; or at a second test, which finds nothing where the first one has sent it.
    let denied = address == lane.base + u64::from(words::DENIED)
        || found.at_test && found.tests > 1 && address < lane.base + u64::from(words::ARENA + TABLE);
    let r11 = tested::effective(&before[..found.from], registers)?;
    let at = r11.checked_sub(words::ARENA).filter(|_| denied)?;
    let tests = (before.len() - found.from) as u64;
    fresh.touch(at, found.len, found.write).then(|| Again {
        rip: rip - tests,
        r11,
    })
}
