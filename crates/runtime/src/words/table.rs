//! A table of rights: for each byte of an arena, what accesses may begin there.

use super::fresh::Unwritten;
use crate::os::sys;
use ringfence_core::Rights;
use ringfence_core::error::HostError;
use ringfence_isa::words::{READ, WRITE};
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes of a word.
pub(crate) const WORD: u32 = 4;

/// An access of 16 bytes touches so many words at most, so rights further behind do not matter to a word.
const REACH: usize = 5;

/// What may begin at each of a word's four bytes, by how many words from it on have the right: for reading. Four bits to the left: for
/// writing.
const MAY: [u32; REACH + 1] = {
    let mut may = [0; REACH + 1];
    let mut words = 0;
    while words <= REACH {
        let mut byte = 0;
        while byte < 4 {
            let mut class = 0;
            while class < 4 {
                let size = [1, 4, 8, 16][class];
                if byte + size <= 4 * words {
                    may[words] |= (READ as u32) << class << (8 * byte);
                }
                class += 1;
            }
            byte += 1;
        }
        words += 1;
    }
    may
};

/// The table of one domain: shared memory, which the domain reads and the host writes.
pub(crate) struct Table {
    at: *const AtomicU32,
    /// Number of words of the arena.
    words: u32,
    fresh: Option<Unwritten>,
}

// SAFETY: the address of a mapping, of which only atomics are used.
unsafe impl Send for Table {}
// SAFETY: as above.
unsafe impl Sync for Table {}

impl Table {
    /// A table without any rights, for an arena of `len` bytes; and its file, to map it into a window.
    pub(crate) fn new(len: u32) -> Result<(Table, OwnedFd), HostError> {
        let file = sys::memory_file(c"ringfence-rights", len.into())?;
        let table = Table {
            at: sys::map_anywhere(file.as_fd(), len.into())? as *const _,
            words: len / WORD,
            fresh: None,
        };
        Ok((table, file))
    }

    /// The same for a domain with a checked heap: words may be fresh.
    pub(crate) fn with_fresh(len: u32) -> Result<(Table, OwnedFd), HostError> {
        let (mut table, file) = Table::new(len)?;
        table.fresh = Some(Unwritten::new(table.words)?);
        Ok((table, file))
    }

    pub(super) fn fresh(&self) -> Option<&Unwritten> {
        self.fresh.as_ref()
    }

    fn word(&self, word: u32) -> &AtomicU32 {
        assert!(word < self.words);
        // SAFETY: a byte of the table for each of the arena, four for a word, mapped while `self` lives.
        unsafe { &*self.at.add(word as usize) }
    }

    /// What the table says of a word.
    pub(crate) fn rights(&self, word: u32) -> Rights {
        if word >= self.words {
            return Rights::None;
        }
        let bits = self.word(word).load(Ordering::Relaxed);
        match (bits & u32::from(READ) != 0, bits & u32::from(WRITE) != 0) {
            (_, true) => Rights::Write,
            (true, false) => Rights::Read,
            (false, false) => Rights::None,
        }
    }

    /// The words' rights become these, but for fresh ones: to them there are none before they are written. One thread at a time, and
    /// threads that write fresh words, change a table.
    pub(crate) fn set(&self, words: Range<u32>, rights: Rights) {
        match &self.fresh {
            None => self.put_rights(words, rights),
            Some(fresh) => {
                let held = fresh.hold();
                held.runs(words, |run, fresh| {
                    self.put_rights(run, if fresh { Rights::None } else { rights });
                });
            }
        }
    }

    /// Accesses that begin in words before them may reach into them: those words change, too.
    pub(super) fn put_rights(&self, words: Range<u32>, rights: Rights) {
        assert!(words.start <= words.end && words.end <= self.words);
        let readable = |r: Rights| r != Rights::None;
        let writable = |r: Rights| r == Rights::Write;
        let (mut read, mut write) = (0, 0);
        for word in (words.end..self.behind(words.end)).rev() {
            let rights = self.rights(word);
            read = if readable(rights) { read + 1 } else { 0 };
            write = if writable(rights) { write + 1 } else { 0 };
        }
        let mut step = |word: u32, rights: Rights| {
            let more = |has, count: usize| if has { (count + 1).min(REACH) } else { 0 };
            (read, write) = (more(readable(rights), read), more(writable(rights), write));
            self.put(word, MAY[read] | MAY[write] << 4);
        };
        // So many in front of the end may reach behind it; all before those are alike.
        let alike = words.end.saturating_sub(REACH as u32).max(words.start);
        for word in (alike..words.end).rev() {
            step(word, rights);
        }
        let full = |has| if has { REACH } else { 0 };
        let inner = MAY[full(readable(rights))] | MAY[full(writable(rights))] << 4;
        for word in words.start..alike {
            self.put(word, inner);
        }
        if alike > words.start {
            // As after all of them.
            (read, write) = (full(readable(rights)), full(writable(rights)));
        }
        for word in (self.before(words.start)..words.start).rev() {
            let more = |has, count: usize| if has { (count + 1).min(REACH) } else { 0 };
            let rights = self.rights(word);
            (read, write) = (more(readable(rights), read), more(writable(rights), write));
            let bits = MAY[read] | MAY[write] << 4;
            // What has no rights has none still, and its page need not be there.
            if bits != 0 {
                self.put(word, bits);
            }
        }
    }

    fn put(&self, word: u32, bits: u32) {
        self.word(word).store(bits, Ordering::Relaxed);
    }

    /// The first word whose bits depend on this one's rights.
    pub(crate) fn before(&self, word: u32) -> u32 {
        word.saturating_sub(REACH as u32 - 1)
    }

    /// The end of the words that the bits of those before this one depend on.
    pub(crate) fn behind(&self, word: u32) -> u32 {
        self.words.min(word.saturating_add(REACH as u32))
    }

    /// Has memory for the page of the table that this word's bits are in.
    pub(crate) fn populate(&self, word: u32) -> bool {
        const POPULATE_WRITE: i32 = 23;
        let page = ringfence_isa::PAGE as usize;
        let at = self.at as usize + (word * WORD) as usize / page * page;
        // SAFETY: a page of our own mapping, which gets memory and keeps what it has.
        let done = unsafe { libc::madvise(at as *mut _, page, POPULATE_WRITE) == 0 };
        // Kernels before 5.14 do not know it.
        done || std::io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL)
    }

    /// In a forked child: its own from now on, without any rights. Nothing that is decided there reaches the parent's.
    pub(super) fn part(&self) -> Result<(), HostError> {
        let rw = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: our own mapping, of which only atomics are used; there is no other thread.
        unsafe { sys::map_anonymous(self.at as u64, self.len(), rw, true)? };
        self.fresh.iter().for_each(Unwritten::free);
        Ok(())
    }

    pub(super) fn words(&self) -> u32 {
        self.words
    }

    /// Its length in bytes, which is the arena's.
    pub(crate) fn len(&self) -> u64 {
        u64::from(self.words * WORD)
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // SAFETY: our own mapping.
        unsafe { libc::munmap(self.at.cast_mut().cast(), self.len() as usize) };
    }
}

#[cfg(test)]
impl Table {
    /// All of its bytes.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let word = |w| self.word(w).load(Ordering::Relaxed).to_le_bytes();
        (0..self.words).flat_map(word).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringfence_isa::words;

    /// What the sequence of tests in front of an access says, by the bytes of the table.
    fn granted(table: &Table, at: u32, size: u8, write: bool) -> bool {
        let (bit, second) = words::tests(size, write).expect("a size");
        let byte = |at: u32| table.word(at / 4).load(Ordering::Relaxed).to_le_bytes()[at as usize % 4];
        byte(at) & bit != 0 && byte(at + second) & bit != 0
    }

    /// The model: rights by word, each byte of an access looked at.
    fn allowed(model: &[Rights], at: u32, size: u8, write: bool) -> bool {
        (at..at + u32::from(size)).all(|byte| match model.get(byte as usize / 4) {
            Some(Rights::Write) => true,
            Some(Rights::Read) => !write,
            _ => false,
        })
    }

    #[test]
    fn every_access_is_granted_as_the_model_says() {
        const WORDS: u32 = 1024;
        let (table, _) = Table::new(WORDS * WORD).expect("table");
        let mut model = vec![Rights::None; WORDS as usize];
        let mut seed = 17_u64;
        let mut random = |below: u32| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as u32 % below
        };
        for round in 0..3000 {
            // Near the ends, too.
            let start = [random(40), random(WORDS), WORDS - random(40)][random(3) as usize];
            let end = (start + random(12)).min(WORDS);
            let start = start.min(end);
            let rights = [Rights::None, Rights::Read, Rights::Write][random(3) as usize];
            table.set(start..end, rights);
            model[start as usize..end as usize].fill(rights);
            if round % 10 != 0 {
                continue;
            }
            for at in start.saturating_sub(12) * 4..((end + 12) * 4).min(WORDS * 4 - 32) {
                for size in [1, 2, 4, 8, 10, 16, 32] {
                    for write in [false, true] {
                        assert_eq!(
                            granted(&table, at, size, write),
                            allowed(&model, at, size, write),
                            "{size} bytes at {at}, write {write}, in round {round}"
                        );
                    }
                }
            }
        }
        assert!((0..WORDS).all(|w| table.rights(w) == model[w as usize]));
    }
}
