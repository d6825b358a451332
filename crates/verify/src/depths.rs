//! How deep the control stack is at each instruction, in a form that is found again fast.
//!
//! Depths change seldom, so only changes are kept: two bytes for each, and four for each block of text. That is at most
//! 2.1 bytes for a byte of text, and about a tenth of one in what compilers make.

use crate::notes::{NoMemory, reserved};
use alloc::vec::Vec;
use core::fmt;

/// Bytes of text that one entry of the index stands for.
const BLOCK: usize = 64;
/// The bits of a change that hold the depth, in slots of 8 bytes.
const DEPTH: u16 = (1 << 10) - 1;

/// Depths by offset from the start of a text.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Depths {
    /// For each block of text how many changes come before it.
    blocks: Vec<u32>,
    /// From where on in its block, in the upper six bits; which depth.
    changes: Vec<u16>,
}

impl Depths {
    /// Room for so many changes in a text of this length.
    pub fn new(len: usize, changes: usize) -> Result<Depths, NoMemory> {
        Ok(Depths {
            blocks: reserved(len / BLOCK + 1)?,
            changes: reserved(changes)?,
        })
    }

    /// From `at` on the depth is `slots`. Called in order of address.
    pub fn add(&mut self, at: usize, slots: u16) {
        let slots = slots & DEPTH;
        if self.changes.last().is_some_and(|c| c & DEPTH == slots) {
            return;
        }
        while self.blocks.len() <= at / BLOCK {
            self.blocks.push(self.changes.len() as u32);
        }
        self.changes.push(((at % BLOCK) as u16) << 10 | slots);
    }

    /// The depth in slots at `at`; `None` before the first change. Takes a constant time.
    pub fn get(&self, at: usize) -> Option<u16> {
        let block = at / BLOCK;
        let all = self.changes.len();
        let count = |block: usize| self.blocks.get(block).map_or(all, |&n| n as usize);
        let (first, end) = (count(block), count(block + 1));
        let inside = self.changes.get(first..end)?;
        let before = inside.partition_point(|c| usize::from(c >> 10) <= at % BLOCK);
        let change = self.changes.get((first + before).checked_sub(1)?)?;
        Some(change & DEPTH)
    }
}

impl fmt::Debug for Depths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} changes of depth", self.changes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    #[test]
    fn every_place_has_the_depth_of_the_last_change() {
        for (len, step, seed) in [(1, 1, 1), (5000, 1, 2), (5000, 7, 3), (100_000, 900, 4)] {
            let mut random: u64 = seed;
            let mut next = |n: u64| {
                random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
                (random >> 33) % n
            };
            let (mut depths, mut dense, mut at) =
                (Depths::new(len, len).expect("memory"), vec![None; len], 0);
            while at < len {
                let depth = next(513) as u16;
                depths.add(at, depth);
                dense[at..].fill(Some(depth));
                at += 1 + next(step) as usize;
            }
            for (at, depth) in dense.into_iter().enumerate() {
                assert_eq!(depths.get(at), depth, "at {at} of {len}");
            }
            assert!(2 * depths.changes.len() + 4 * depths.blocks.len() <= 2 * len + len / 16 + 4);
        }
        assert_eq!(Depths::default().get(0), None);
        assert_eq!(Depths::default().get(usize::MAX), None);
    }
}
