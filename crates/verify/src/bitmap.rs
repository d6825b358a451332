//! Sets of offsets into the text, a bit for each byte of it.

use crate::notes::{NoMemory, filled, reserved};
use alloc::vec::Vec;

/// A set of offsets. What is not below its length is never a member.
#[derive(Default)]
pub(crate) struct Bitmap(pub Vec<u64>);

impl Bitmap {
    pub fn new(len: usize) -> Result<Bitmap, NoMemory> {
        Ok(Bitmap(filled(len.div_ceil(64), 0)?))
    }

    #[inline(always)]
    pub fn insert(&mut self, at: usize) {
        if let Some(word) = self.0.get_mut(at / 64) {
            *word |= 1 << (at % 64);
        }
    }

    /// Inserts all from `first` to `last`.
    pub fn insert_range(&mut self, first: usize, last: usize) {
        for n in first / 64..=last / 64 {
            let from = u64::MAX << if n == first / 64 { first % 64 } else { 0 };
            let to = u64::MAX >> if n == last / 64 { 63 - last % 64 } else { 0 };
            if let Some(word) = self.0.get_mut(n) {
                *word |= from & to;
            }
        }
    }

    #[inline(always)]
    pub fn contains(&self, at: usize) -> bool {
        self.0.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    pub fn clear(&mut self) {
        self.0.fill(0);
    }

    pub fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The first member that is not below `at`.
    pub fn next(&self, at: usize) -> Option<usize> {
        // Mostly it is one of the next 64, whatever words they lie in: a branch that processors guess.
        let (word, after) = (*self.0.get(at / 64)?, self.0.get(at / 64 + 1));
        let near = word >> (at % 64) | after.map_or(0, |word| word << 1 << (63 - at % 64));
        if near != 0 {
            return Some(at + near.trailing_zeros() as usize);
        }
        let mut words = self.0.iter().zip(0..).skip(at / 64 + 1);
        let (word, n) = words.find(|(word, _)| **word != 0)?;
        Some(n * 64 + word.trailing_zeros() as usize)
    }

    /// All members, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        let mut at = 0;
        core::iter::from_fn(move || {
            let member = self.next(at)?;
            at = member + 1;
            Some(member)
        })
    }
}

/// How many members of a set come before each word of it.
pub(crate) struct Ranks(Vec<u32>);

impl Ranks {
    pub fn new(set: &Bitmap) -> Result<Ranks, NoMemory> {
        let mut ranks = filled(set.0.len(), 0)?;
        let mut before = 0;
        for (rank, word) in ranks.iter_mut().zip(&set.0) {
            *rank = before;
            before += word.count_ones();
        }
        Ok(Ranks(ranks))
    }

    /// How many members of the set are below `at`.
    #[inline(always)]
    pub fn rank(&self, set: &Bitmap, at: usize) -> usize {
        let (Some(&before), Some(word)) = (self.0.get(at / 64), set.0.get(at / 64)) else {
            return usize::MAX;
        };
        (before + (word & !(u64::MAX << (at % 64))).count_ones()) as usize
    }
}

/// A set that gives one of its members in a constant time, to which nothing is added twice.
pub(crate) struct Pending {
    /// The latest members, as many as [`Pending::RECENT`].
    recent: Vec<u32>,
    /// The others: each level has a bit for every word of the one below that is not 0.
    levels: Vec<Vec<u64>>,
}

impl Pending {
    const RECENT: usize = 256;

    pub fn new(len: usize) -> Result<Pending, NoMemory> {
        let mut levels = reserved(6)?;
        let mut words = len.div_ceil(64);
        while words > 1 {
            levels.push(filled(words, 0)?);
            words = words.div_ceil(64);
        }
        levels.push(filled(1, 0)?);
        let recent = reserved(Pending::RECENT)?;
        Ok(Pending { recent, levels })
    }

    pub fn insert(&mut self, mut at: usize) {
        if self.recent.len() < Pending::RECENT {
            return self.recent.push(at as u32);
        }
        for level in &mut self.levels {
            let word = &mut level[at / 64];
            let before = *word;
            *word |= 1 << (at % 64);
            if before != 0 {
                return;
            }
            at /= 64;
        }
    }

    pub fn take(&mut self) -> Option<usize> {
        if let Some(at) = self.recent.pop() {
            return Some(at as usize);
        }
        let mut at = 0;
        for level in self.levels.iter().rev() {
            let word = level[at];
            if word == 0 {
                return None;
            }
            at = at * 64 + word.trailing_zeros() as usize;
        }
        let mut place = at;
        for level in &mut self.levels {
            let word = &mut level[place / 64];
            *word &= !(1 << (place % 64));
            if *word != 0 {
                break;
            }
            place /= 64;
        }
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_member_is_the_first_that_is_not_below() {
        for step in [1, 3, 64, 65, 127, 128, 300] {
            let mut set = Bitmap::new(1000).expect("memory");
            let members = || (step / 2..1000).step_by(step);
            members().for_each(|at| set.insert(at));
            for at in 0..1100 {
                assert_eq!(set.next(at), members().find(|&m| m >= at), "{at}, step {step}");
            }
            assert_eq!(set.iter().count(), members().count());
        }
        assert_eq!(Bitmap::new(1000).expect("memory").next(0), None);
        assert_eq!(Bitmap::default().next(0), None);
    }
}
