//! What one source gives, a domain's exports or a group's: two bits for each word, in a tree like a page table.
//!
//! A leaf holds the words of 4 KiB, in 256 bytes. A range is found in three steps, however many exports there are.

use crate::bits::{CHUNK, chunks, filled, mask, of_word};
use crate::error::Error;
use ringfence_core::Rights;
use std::ops::Range;

/// Chunks of a leaf.
const LEAF: u32 = 32;
/// Leaves below one entry of the root.
const BRANCH: usize = 1024;

/// Words of a leaf.
pub(crate) const LEAF_WORDS: u32 = LEAF * CHUNK;

type Leaf = [u64; LEAF as usize];
type Branch = Vec<Option<Box<Leaf>>>;

/// Memory that the tables may take.
#[derive(Debug)]
pub(crate) struct Room {
    used: usize,
    limit: usize,
}

impl Room {
    pub fn new(limit: usize) -> Room {
        Room { used: 0, limit }
    }

    pub fn used(&self) -> usize {
        self.used
    }

    /// Takes some.
    pub fn take(&mut self, bytes: usize) -> Result<(), Error> {
        let needed = self.used.saturating_add(bytes);
        if needed > self.limit {
            return Err(Error::Memory {
                needed,
                limit: self.limit,
            });
        }
        self.used = needed;
        Ok(())
    }

    /// Makes room for `more` elements, exactly, if the system has it; `bytes` of what was taken are given back if not.
    pub fn grow<T>(&mut self, list: &mut Vec<T>, more: usize, bytes: usize) -> Result<(), Error> {
        list.try_reserve_exact(more).map_err(|_| {
            self.give_back(bytes);
            Error::NoMemory {
                needed: more * size_of::<T>(),
            }
        })
    }

    pub fn give_back(&mut self, bytes: usize) {
        self.used = self.used.saturating_sub(bytes);
    }
}

/// Rights to words.
#[derive(Debug, Default)]
pub(crate) struct Layer {
    root: Vec<Option<Branch>>,
}

#[inline]
fn place(leaf: u32) -> (usize, usize) {
    (leaf as usize / BRANCH, leaf as usize % BRANCH)
}

impl Layer {
    #[inline]
    fn leaf(&self, leaf: u32) -> Option<&Leaf> {
        let (at, inner) = place(leaf);
        self.root.get(at)?.as_ref()?.get(inner)?.as_deref()
    }

    #[inline]
    fn leaf_mut(&mut self, leaf: u32) -> Option<&mut Leaf> {
        let (at, inner) = place(leaf);
        self.root.get_mut(at)?.as_mut()?.get_mut(inner)?.as_deref_mut()
    }

    /// The rights of a chunk's words.
    #[inline]
    pub fn get(&self, chunk: u32) -> u64 {
        self.leaf(chunk / LEAF)
            .map_or(0, |leaf| leaf[(chunk % LEAF) as usize])
    }

    /// The rights of one word.
    pub fn rights(&self, word: u32) -> Rights {
        of_word(self.get(word / CHUNK), word)
    }

    /// Sets the rights of words that had the same so far, all in one leaf that is there; what they had. Else nothing is changed.
    #[inline]
    pub fn exchange(&mut self, words: &Range<u32>, rights: Rights) -> Option<Rights> {
        let number = words.start / LEAF_WORDS;
        if words.end > (number + 1) * LEAF_WORDS {
            return None;
        }
        let leaf = self.leaf_mut(number)?;
        let before = of_word(leaf[(words.start / CHUNK % LEAF) as usize], words.start);
        let same = |chunk| (leaf[(chunk % LEAF) as usize] ^ filled(before)) & mask(chunk, words) == 0;
        if !chunks(words).all(same) {
            return None;
        }
        for chunk in chunks(words) {
            let mask = mask(chunk, words);
            let bits = &mut leaf[(chunk % LEAF) as usize];
            *bits = *bits & !mask | filled(rights) & mask;
        }
        Some(before)
    }

    /// Makes room for rights to these words, so that `set` finds it.
    #[inline]
    pub fn reserve(&mut self, words: &Range<u32>, room: &mut Room) -> Result<(), Error> {
        for leaf in words.start / LEAF_WORDS..words.end.div_ceil(LEAF_WORDS) {
            if self.leaf(leaf).is_none() {
                self.grow(leaf, room)?;
            }
        }
        Ok(())
    }

    #[cold]
    fn grow(&mut self, leaf: u32, room: &mut Room) -> Result<(), Error> {
        let (at, inner) = place(leaf);
        if self.root.len() <= at {
            room.take((at + 1 - self.root.len()) * size_of::<Option<Branch>>())?;
            self.root.resize_with(at + 1, || None);
        }
        if self.root[at].is_none() {
            room.take(BRANCH * size_of::<Option<Box<Leaf>>>())?;
            self.root[at] = Some((0..BRANCH).map(|_| None).collect());
        }
        if let Some(place) = self.root[at].as_mut().and_then(|b| b.get_mut(inner)) {
            room.take(size_of::<Leaf>())?;
            *place = Some(Box::new([0; LEAF as usize]));
        }
        Ok(())
    }

    /// Sets the rights of these words. Where no room was made there are none.
    #[inline]
    pub fn set(&mut self, words: &Range<u32>, filled: u64) {
        for chunk in chunks(words) {
            let mask = mask(chunk, words);
            if let Some(leaf) = self.leaf_mut(chunk / LEAF) {
                let bits = &mut leaf[(chunk % LEAF) as usize];
                *bits = *bits & !mask | filled & mask;
            }
        }
    }

    /// The chunks of leaves with any rights, ascending: what to look at where all of the layer comes or goes.
    pub fn used(&self) -> impl Iterator<Item = Range<u32>> {
        let branches = self.root.iter().enumerate();
        let leaves = branches.flat_map(|(at, branch)| {
            let leaves = branch.iter().flatten().enumerate();
            leaves.filter_map(move |(inner, leaf)| leaf.as_ref().map(|l| (at * BRANCH + inner, l)))
        });
        leaves
            .filter(|(_, leaf)| ***leaf != [0; LEAF as usize])
            .map(|(n, _)| {
                let first = n as u32 * LEAF;
                first..first + LEAF
            })
    }

    /// Drops leaves without rights.
    pub fn trim(&mut self, room: &mut Room) {
        for branch in &mut self.root {
            for leaf in branch.iter_mut().flatten() {
                if leaf.as_deref() == Some(&[0; LEAF as usize]) {
                    *leaf = None;
                    room.give_back(size_of::<Leaf>());
                }
            }
            if branch.as_ref().is_some_and(|b| b.iter().all(Option::is_none)) {
                *branch = None;
                room.give_back(BRANCH * size_of::<Option<Box<Leaf>>>());
            }
        }
    }

    /// Drops all.
    pub fn clear(&mut self, room: &mut Room) {
        for branch in self.root.drain(..) {
            room.give_back(size_of::<Option<Branch>>());
            if let Some(branch) = branch {
                let leaves = branch.iter().flatten().count();
                room.give_back(leaves * size_of::<Leaf>() + BRANCH * size_of::<Option<Box<Leaf>>>());
            }
        }
    }
}
