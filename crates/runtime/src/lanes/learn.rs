//! Learning what a domain touches of its arena: accesses that would be denied are noted, and made.
//!
//! A denied access faults with `r11` at 0 ([`words::DENIED`]). The handler computes the address once more from the instructions in front of
//! it, puts it where the test has taken it from, and lets the access go on. Whatever stands there: `r11` gets a number below 2³², and the
//! verifier has relied on no more than that.

use crate::lanes::lane::Lane;
use crate::lanes::tested;
use ringfence_isa::words;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};

/// How many different accesses a call may make.
const PLACES: usize = 1 << 16;
/// How far one is looked for.
const PROBES: usize = 64;
/// Most bytes that are noted as one access, where many are copied.
const COPIED: u32 = 64;

/// What was noted: the window whose accesses are, and a set of them.
struct Notes {
    base: AtomicU64,
    len: AtomicU64,
    seen: Box<[AtomicU64]>,
    lost: AtomicU64,
}

impl Notes {
    fn note(&self, access: Access) {
        let packed = access.packed();
        let first = (packed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as usize;
        let noted = (0..PROBES).any(|n| {
            let place = &self.seen[(first + n) % PLACES];
            let found = place.compare_exchange(0, packed, Ordering::AcqRel, Ordering::Acquire);
            found.is_ok() || found == Err(packed)
        });
        if !noted {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

static NOTES: OnceLock<Notes> = OnceLock::new();
/// One domain learns at a time: whether there is one.
static TAKEN: Mutex<bool> = Mutex::new(false);
static FREE: Condvar = Condvar::new();

/// An access, by its offset in the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    pub at: u32,
    pub len: u8,
    pub write: bool,
}

impl Access {
    /// Never 0.
    fn packed(self) -> u64 {
        u64::from(self.at) << 16 | u64::from(self.len) << 1 | u64::from(self.write)
    }

    fn unpacked(bits: u64) -> Access {
        Access {
            at: (bits >> 16) as u32,
            len: (bits >> 1 & 0x7F) as u8,
            write: bits & 1 != 0,
        }
    }
}

/// While it lives, the domain of the window at a base is denied nothing of its arena.
pub(crate) struct Learning(());

impl Learning {
    /// Begins, for an arena of `len` bytes. While another domain learns it waits, or is `None`.
    pub(crate) fn new(base: u64, len: u64, wait: bool) -> Option<Learning> {
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        while *taken {
            if !wait {
                return None;
            }
            taken = FREE.wait(taken).unwrap_or_else(PoisonError::into_inner);
        }
        *taken = true;
        drop(taken);
        let notes = NOTES.get_or_init(|| Notes {
            base: AtomicU64::new(0),
            len: AtomicU64::new(0),
            seen: (0..PLACES).map(|_| AtomicU64::new(0)).collect(),
            lost: AtomicU64::new(0),
        });
        let learning = Learning(());
        learning.take();
        notes.len.store(len, Ordering::Relaxed);
        notes.base.store(base, Ordering::Release);
        Some(learning)
    }

    /// What was noted since the last time, and how many more accesses there was no room for.
    pub(crate) fn take(&self) -> (Vec<Access>, u64) {
        let Some(notes) = NOTES.get() else {
            return (Vec::new(), 0);
        };
        let taken = notes.seen.iter().map(|n| n.swap(0, Ordering::AcqRel));
        let mut all: Vec<Access> = taken.filter(|&n| n != 0).map(Access::unpacked).collect();
        all.sort_by_key(|a| (a.at, a.write, a.len));
        (all, notes.lost.swap(0, Ordering::AcqRel))
    }
}

impl Drop for Learning {
    fn drop(&mut self) {
        if let Some(notes) = NOTES.get() {
            notes.base.store(0, Ordering::Release);
        }
        *TAKEN.lock().unwrap_or_else(PoisonError::into_inner) = false;
        FREE.notify_one();
    }
}

/// In the handler of a fault at `rip` in the lane's window: whether it was a denied access that goes on now, with this in `r11`.
pub(crate) fn goes_on(lane: &Lane, registers: &[u64; 16], rip: u64, address: u64) -> Option<u32> {
    let notes = NOTES.get()?;
    if notes.base.load(Ordering::Acquire) != lane.base || registers[11] != 0 {
        return None;
    }
    // By the kernel: the handler blocks faults.
    let code = tested::Code::around(rip, tested::read)?;
    let (before, here) = code.parts();
    let found = tested::access(before, here)?;
    // At the access itself; or at a second test, which finds nothing where the first one has sent it.
    let denied = address == lane.base + u64::from(words::DENIED);
    if !(denied || found.at_test && found.tests > 1) {
        return None;
    }
    let offset = tested::effective(&before[..found.from], registers)?;
    let at = offset.checked_sub(words::ARENA)?;
    if u64::from(at) + u64::from(found.len) > notes.len.load(Ordering::Relaxed) {
        return None;
    }
    notes.note(Access {
        at,
        len: found.len,
        write: found.write,
    });
    Some(offset)
}

/// Whether the domain of the window at `base` learns.
pub(crate) fn learns(base: u64) -> bool {
    let notes = NOTES.get();
    notes.is_some_and(|notes| notes.base.load(Ordering::Acquire) == base)
}

/// What the runtime copies for the domain of the window at `base`, if that learns: `len` bytes at an offset in the arena.
pub(crate) fn copied(base: u64, at: u32, len: u32, write: bool) {
    let Some(notes) = NOTES.get().filter(|_| learns(base)) else {
        return;
    };
    for from in (at..at + len).step_by(COPIED as usize) {
        let len = COPIED.min(at + len - from) as u8;
        let at = from;
        notes.note(Access { at, len, write });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_are_packed() {
        for (at, len, write) in [(0, 1, false), (490 << 20, 32, true), (17, 16, true)] {
            let access = Access { at, len, write };
            assert_ne!(access.packed(), 0);
            assert_eq!(Access::unpacked(access.packed()), access);
        }
    }
}
