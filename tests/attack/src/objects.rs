//! The host's objects in the words mode, and a model of who may do what with their words.

use crate::program::Known;
use crate::rng::Rng;
use ringfence_runtime::{Access, Arena, Domain, FaultKind, Rights};
use std::ops::Range;

/// Words of the one object that there is.
const WORDS: usize = 4096;
/// What stands in words that nobody may read.
const SECRET: u32 = 0x51EC_12E7;

/// An object whose words a domain has all kinds of rights to.
pub struct Objects {
    arena: Arena,
    at: u64,
    /// Two more, on both sides if nothing else was there, that are never given.
    others: [u64; 2],
    rights: Vec<Rights>,
    /// What stood there when the host last looked.
    copy: Vec<u32>,
}

impl Objects {
    /// An arena with an object that nobody has rights to.
    ///
    /// # Panics
    /// If the system has no memory.
    #[must_use]
    pub fn new() -> Objects {
        let arena = Arena::new(1 << 20).expect("an arena");
        let beside = arena.alloc(4096).expect("an object");
        let at = arena.alloc(4 * WORDS as u64).expect("an object");
        let behind = arena.alloc(4096).expect("an object");
        for words in [beside, behind] {
            for n in 0..1024 {
                // SAFETY: an object of ours that no domain has rights to.
                unsafe { (words as *mut u32).add(n).write_volatile(SECRET) };
            }
        }
        Objects {
            arena,
            at,
            others: [beside, behind],
            rights: vec![Rights::None; WORDS],
            copy: vec![0; WORDS],
        }
    }

    /// The arena, for a domain's imports.
    #[must_use]
    pub fn arena(&self) -> &Arena {
        &self.arena
    }

    /// The host's address of a byte of it, chosen at random.
    #[must_use]
    pub fn somewhere(&self, rng: &mut Rng) -> u64 {
        self.at + rng.below(4 * WORDS as u64)
    }

    /// Where the host has it.
    #[must_use]
    pub fn addresses(&self) -> Range<u64> {
        self.at..self.at + 4 * WORDS as u64
    }

    /// Its offsets in windows.
    #[must_use]
    pub fn range(&self) -> Range<u32> {
        self.at as u32..self.at as u32 + 4 * WORDS as u32
    }

    fn word(&self, n: usize) -> *mut u32 {
        (self.at as *mut u32).wrapping_add(n)
    }

    /// A new domain begins without rights.
    pub fn fresh(&mut self, rng: &mut Rng) {
        for n in 0..WORDS {
            self.set(n, Rights::None, rng);
        }
    }

    fn set(&mut self, n: usize, rights: Rights, rng: &mut Rng) {
        let value = if rights == Rights::None {
            SECRET
        } else {
            rng.bits() as u32 & !1
        };
        self.rights[n] = rights;
        self.copy[n] = value;
        // SAFETY: a word of our object; what a domain writes meanwhile is only a number.
        unsafe { self.word(n).write_volatile(value) };
    }

    /// Gives and takes rights to words, at random.
    ///
    /// # Panics
    /// If the runtime refuses it.
    pub fn change(&mut self, domain: &Domain, rng: &mut Rng) {
        for _ in 0..=rng.below(6) {
            let from = rng.below(WORDS as u64) as usize;
            let longest = rng.pick(&[1, 4, 16, 300]);
            let len = (1 + rng.below(longest) as usize).min(WORDS - from);
            let rights = rng.pick(&[Rights::None, Rights::Read, Rights::Write]);
            domain
                .give_words(self.at + 4 * from as u64, 4 * len as u64, rights)
                .expect("words of the object");
            for n in from..from + len {
                self.set(n, rights, rng);
            }
        }
    }

    /// Words that changed and must not have.
    pub fn wrong(&mut self) -> Vec<String> {
        let mut wrong = Vec::new();
        for n in 0..WORDS {
            // SAFETY: a word of our object.
            let now = unsafe { self.word(n).read_volatile() };
            if now != self.copy[n] && self.rights[n] != Rights::Write {
                wrong.push(format!("word {n} was written, with {:?}", self.rights[n]));
            }
            self.copy[n] = now;
        }
        for at in self.others {
            // SAFETY: objects of ours.
            let changed = (0..1024).any(|n| unsafe { (at as *const u32).add(n).read_volatile() } != SECRET);
            if changed {
                wrong.push("an object was written that was never given".into());
            }
        }
        wrong
    }

    /// Whether a number has what nobody may read.
    #[must_use]
    pub fn secret(number: u64) -> bool {
        (0..=32).step_by(8).any(|by| (number >> by) as u32 == SECRET)
    }

    fn allowed(&self, known: &Known) -> bool {
        let needed = if known.write { Rights::Write } else { Rights::Read };
        let Some(from) = known.at.checked_sub(self.at as u32) else {
            return false;
        };
        let last = (from as usize + usize::from(known.size) - 1) / 4;
        self.rights
            .get(from as usize / 4..=last)
            .is_some_and(|r| r.iter().all(|&r| r >= needed))
    }

    /// What is wrong about the end of a program that makes these accesses, one behind the other, and nothing else; `None` as a kind if it
    /// returned.
    #[must_use]
    pub fn judge(&self, accesses: &[Known], end: Option<&FaultKind>) -> Option<String> {
        let first = accesses.iter().find(|a| !self.allowed(a));
        match (end, first) {
            (None, Some(denied)) => Some(format!("{denied:?} was allowed")),
            (
                Some(FaultKind::Denied {
                    address, access, len, ..
                }),
                denied,
            ) => {
                let right = denied.is_some_and(|d| {
                    let write = *access == Access::Write;
                    *address as u32 == d.at && *len == d.size && write == d.write
                });
                // A vector at an odd place faults by itself, in front of what would be denied.
                let vector = |a: &&Known| a.size >= 16 && !a.at.is_multiple_of(16) && *address as u32 == a.at;
                let right = right || accesses.iter().any(|a| vector(&a));
                (!right).then(|| {
                    format!(
                        "{access:?} of {len} at {:#x} was denied, not {denied:?}",
                        *address as u32
                    )
                })
            }
            // A fault of another kind may come before.
            _ => None,
        }
    }
}

impl Default for Objects {
    fn default() -> Self {
        Objects::new()
    }
}
