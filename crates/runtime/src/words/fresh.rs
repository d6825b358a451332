//! Words of a checked heap that were never written. The domain owns them; its table has no rights to them until it writes them.
//!
//! So what the table allows is never more than the supervisor has decided: a fresh word has less, and can be read and written, as its
//! owner may, when it is written. Whoever frees an object forgets which of its words are fresh *first*, so no later write gives a right to it.

use super::table::{Table, WORD};
use crate::lanes::touch::Fresh;
use crate::os::sys;
use ringfence_core::Rights;
use ringfence_core::error::HostError;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// How often a signal handler looks whether the table is free: some hundredths of a second.
const PATIENCE: u32 = 1 << 20;

/// A bit for each word of the arena, in memory that is there as far as it is used.
pub(crate) struct Unwritten {
    at: *const AtomicU64,
    bytes: u64,
    /// Somebody changes the table: a lock without an owner, for signal handlers.
    busy: AtomicBool,
}

// SAFETY: the address of a mapping, of which only atomics are used.
unsafe impl Send for Unwritten {}
// SAFETY: as above.
unsafe impl Sync for Unwritten {}

impl Unwritten {
    pub(super) fn new(words: u32) -> Result<Unwritten, HostError> {
        let bytes = u64::from(words).div_ceil(64) * 8;
        let rw = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: at an address that the kernel chooses.
        let at = unsafe { sys::map_anonymous(0, bytes, rw, false)? };
        Ok(Unwritten {
            at: at as *const _,
            bytes,
            busy: AtomicBool::new(false),
        })
    }

    /// In a forked child: whoever changed the table is not there.
    pub(super) fn free(&self) {
        self.busy.store(false, Ordering::Release);
    }

    /// Nobody else changes the table while it lives.
    pub(super) fn hold(&self) -> Changing<'_> {
        loop {
            match self.try_hold() {
                Some(changing) => return changing,
                None => std::thread::yield_now(),
            }
        }
    }

    fn try_hold(&self) -> Option<Changing<'_>> {
        (0..PATIENCE).find_map(|_| {
            let taken = !self.busy.swap(true, Ordering::Acquire);
            std::hint::spin_loop();
            taken.then_some(Changing(self))
        })
    }
}

impl Drop for Unwritten {
    fn drop(&mut self) {
        // SAFETY: our own mapping.
        unsafe { libc::munmap(self.at.cast_mut().cast(), self.bytes as usize) };
    }
}

/// The right to change the table.
pub(super) struct Changing<'a>(&'a Unwritten);

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        self.0.busy.store(false, Ordering::Release);
    }
}

impl Changing<'_> {
    fn bits(&self, word: u32) -> (&AtomicU64, u64) {
        assert!(u64::from(word) < self.0.bytes * 8);
        // SAFETY: in the mapping, which has a bit for each word.
        let bits = unsafe { &*self.0.at.add(word as usize / 64) };
        (bits, 1 << (word % 64))
    }

    fn is(&self, word: u32) -> bool {
        let (bits, bit) = self.bits(word);
        bits.load(Ordering::Relaxed) & bit != 0
    }

    fn set(&self, word: u32, fresh: bool) {
        let (bits, bit) = self.bits(word);
        let now = bits.load(Ordering::Relaxed);
        bits.store(if fresh { now | bit } else { now & !bit }, Ordering::Relaxed);
    }

    /// The words in runs that are alike.
    pub(super) fn runs(&self, words: Range<u32>, mut each: impl FnMut(Range<u32>, bool)) {
        let mut from = words.start;
        while from < words.end {
            let fresh = self.is(from);
            let end = (from..words.end).find(|&w| self.is(w) != fresh);
            let end = end.unwrap_or(words.end);
            each(from..end, fresh);
            from = end;
        }
    }
}

impl Table {
    /// The words are fresh. Their object is not there yet.
    pub(super) fn begin(&self, words: Range<u32>) {
        if let Some(held) = self.fresh().map(Unwritten::hold) {
            words.for_each(|word| held.set(word, true));
        }
    }

    /// The words are fresh no more, and nobody gets a right to them for it.
    pub(super) fn forget(&self, words: Range<u32>) {
        if let Some(held) = self.fresh().map(Unwritten::hold) {
            words.for_each(|word| held.set(word, false));
        }
    }

    /// The words are about to be written, all of them in an object that the domain owns.
    pub(super) fn wrote(&self, words: Range<u32>) {
        if let Some(held) = self.fresh().map(Unwritten::hold) {
            self.give(&held, words);
        }
    }

    fn give(&self, held: &Changing<'_>, words: Range<u32>) {
        let mut given = Vec::new();
        held.runs(words, |run, fresh| {
            if fresh {
                given.push(run);
            }
        });
        for run in given {
            run.clone().for_each(|word| held.set(word, false));
            self.put_rights(run, Rights::Write);
        }
    }

    /// Words from `to` on are written, as far as these here were.
    pub(super) fn write_alike(&self, from: Range<u32>, to: u32) {
        let mut written = Vec::new();
        if let Some(held) = self.fresh().map(Unwritten::hold) {
            held.runs(from.clone(), |run, fresh| {
                if !fresh {
                    written.push(run);
                }
            });
            for run in written {
                self.give(&held, run.start - from.start + to..run.end - from.start + to);
            }
        }
    }

    /// Where of these words the domain's rights end: what it may write, or read. Fresh ones it may write, and read among others that were
    /// written.
    pub(super) fn reach(&self, words: Range<u32>, write: bool) -> u32 {
        let wanted = if write { Rights::Write } else { Rights::Read };
        let held = self.fresh().map(Unwritten::hold);
        let fresh = |word: u32| held.as_ref().is_some_and(|held| held.is(word));
        let lacks = |word: &u32| self.rights(*word) < wanted && !fresh(*word);
        let end = words.clone().find(lacks).unwrap_or(words.end);
        match write || (words.start..end).any(|word| !fresh(word)) {
            true => end,
            false => words.start,
        }
    }

    /// How many of the words are fresh.
    pub(super) fn unwritten(&self, words: Range<u32>) -> u32 {
        let mut count = 0;
        if let Some(held) = self.fresh().map(Unwritten::hold) {
            held.runs(words, |run, fresh| {
                count += if fresh { run.end - run.start } else { 0 }
            });
        }
        count
    }
}

impl Fresh for Table {
    fn touch(&self, at: u32, len: u8, write: bool) -> bool {
        let words = at / WORD..(at + u32::from(len)).div_ceil(WORD);
        let Some(fresh) = self.fresh() else { return false };
        if words.end > self.words() {
            return false;
        }
        let Some(held) = fresh.try_hold() else {
            return false;
        };
        let wanted = if write { Rights::Write } else { Rights::Read };
        let lacks = |word: u32| !held.is(word) && self.rights(word) < wanted;
        let unwritten = words.clone().filter(|&word| held.is(word)).count();
        if words.clone().any(lacks) || !write && unwritten == words.len() {
            return false;
        }
        // Word by word: an access has nine at most.
        for word in words.filter(|&word| held.is(word)) {
            held.set(word, false);
            self.put_rights(word..word + 1, Rights::Write);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_given_when_they_are_written() {
        let (table, _) = Table::with_fresh(4096).expect("a table");
        table.begin(4..12);
        table.set(4..12, Rights::Write);
        assert!((0..1024).all(|w| table.rights(w) == Rights::None));
        // A read of what was never written; a write; a read of two words of which one was.
        assert!(!table.touch(16, 4, false) && !table.touch(16, 16, false));
        assert!(table.touch(17, 1, true) && table.rights(4) == Rights::Write);
        assert!(table.touch(16, 8, false) && table.rights(5) == Rights::Write);
        assert_eq!(table.unwritten(4..12), 6);
        // More at once: up to the end of what may be written; and read, but not if none of it was written.
        assert_eq!((table.reach(4..20, true), table.reach(4..20, false)), (12, 12));
        assert_eq!((table.reach(6..20, true), table.reach(6..20, false)), (12, 6));
        assert_eq!((table.reach(3..12, true), table.reach(12..12, false)), (3, 12));
        // Over the end, in front of the beginning, behind the arena.
        assert!(!table.touch(44, 8, true) && !table.touch(12, 8, true) && !table.touch(4092, 32, true));
        assert_eq!(table.rights(11), Rights::None);
        // What the supervisor takes or lowers goes; what was not written stays fresh.
        table.set(4..8, Rights::Read);
        assert_eq!((table.rights(4), table.rights(6)), (Rights::Read, Rights::None));
        table.forget(4..12);
        table.set(4..12, Rights::None);
        assert!(!table.touch(40, 4, true) && !table.touch(16, 4, true));
    }
}
