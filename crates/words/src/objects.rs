//! Objects: words with one owner, from an allocation until it is freed.
//!
//! A bucket for each 4 KiB holds the objects that begin there, sorted, and where the object begins that reaches into it from before.
//! So any word's object is found by one search among few, however many there are and however large they are.

use crate::error::Error;
use crate::layer::{LEAF_WORDS, Room};
use crate::object::TypeId;
use std::ops::Range;

/// Buckets below one entry of the root.
const BRANCH: usize = 1024;
/// No object reaches in from before.
const NONE: u32 = u32::MAX;

/// The host, in the place of a domain's slot.
pub(crate) const HOST: u32 = u32::MAX;

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub start: u32,
    pub end: u32,
    /// A domain's slot, or `HOST`.
    pub owner: u32,
    pub kind: TypeId,
    /// To whom any of it may be exported: a bit for each number of a grantee modulo 64.
    pub given: u64,
}

/// Words of a block: a bucket knows how many of its objects begin before the end of each.
const BLOCK: u32 = 16;
const BLOCKS: usize = (LEAF_WORDS / BLOCK) as usize;

#[derive(Clone, Debug)]
struct Bucket {
    /// Where the object begins that its first word belongs to, if that is in another bucket; or `NONE`.
    before: u32,
    ends: [u16; BLOCKS],
    own: Vec<Entry>,
}

fn block(word: u32) -> usize {
    (word % LEAF_WORDS / BLOCK) as usize
}

impl Bucket {
    /// How many of its objects begin with this word or before.
    #[inline]
    fn up_to(&self, word: u32) -> usize {
        let block = block(word);
        let mut count = usize::from(self.ends[block]);
        let least = block.checked_sub(1).map_or(0, |b| usize::from(self.ends[b]));
        while count > least && self.own[count - 1].start > word {
            count -= 1;
        }
        count
    }

    /// Whether one begins with this very word.
    fn starts_with(&self, word: u32) -> bool {
        let last = self.up_to(word).checked_sub(1);
        last.is_some_and(|n| self.own[n].start == word)
    }

    fn insert(&mut self, entry: Entry) {
        let at = self.up_to(entry.start);
        self.ends[block(entry.start)..].iter_mut().for_each(|n| *n += 1);
        self.own.insert(at, entry);
    }

    fn remove(&mut self, at: usize) -> Entry {
        let entry = self.own.remove(at);
        self.ends[block(entry.start)..].iter_mut().for_each(|n| *n -= 1);
        entry
    }
}

/// Where an object's entry is, until one comes or goes.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    bucket: usize,
    at: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Objects {
    root: Vec<Option<Vec<Bucket>>>,
    count: usize,
}

#[inline]
fn bucket(word: u32) -> usize {
    (word / LEAF_WORDS) as usize
}

impl Objects {
    pub fn count(&self) -> usize {
        self.count
    }

    #[inline]
    fn bucket(&self, n: usize) -> Option<&Bucket> {
        self.root.get(n / BRANCH)?.as_ref()?.get(n % BRANCH)
    }

    #[inline]
    fn bucket_mut(&mut self, n: usize) -> Option<&mut Bucket> {
        self.root.get_mut(n / BRANCH)?.as_mut()?.get_mut(n % BRANCH)
    }

    /// Where the object is that a word belongs to.
    #[inline]
    pub fn find(&self, word: u32) -> Option<Place> {
        let n = bucket(word);
        let here = self.bucket(n)?;
        let place = match here.up_to(word).checked_sub(1) {
            Some(at) => Place { bucket: n, at },
            None if here.before == NONE => return None,
            None => self.starting(here.before)?,
        };
        (word < self.get(place)?.end).then_some(place)
    }

    #[inline]
    pub fn get(&self, place: Place) -> Option<&Entry> {
        self.bucket(place.bucket)?.own.get(place.at)
    }

    #[inline]
    pub fn get_mut(&mut self, place: Place) -> Option<&mut Entry> {
        self.bucket_mut(place.bucket)?.own.get_mut(place.at)
    }

    /// The object that a word belongs to.
    pub fn at(&self, word: u32) -> Option<&Entry> {
        self.get(self.find(word)?)
    }

    #[cold]
    fn starting(&self, start: u32) -> Option<Place> {
        let at = self.bucket(bucket(start))?.up_to(start).checked_sub(1)?;
        Some(Place {
            bucket: bucket(start),
            at,
        })
    }

    /// The first object that has any of these words.
    pub fn first_in(&self, words: &Range<u32>) -> Option<&Entry> {
        if let Some(found) = self.at(words.start) {
            return Some(found);
        }
        (bucket(words.start)..=bucket(words.end - 1)).find_map(|n| {
            let here = self.bucket(n)?;
            let first = words.start.max(n as u32 * LEAF_WORDS);
            // None of them has the first word itself.
            let next = here
                .own
                .get(here.up_to(first) - usize::from(here.starts_with(first)))?;
            (next.start < words.end).then_some(next)
        })
    }

    /// Adds one in a place where there is none.
    pub fn add(&mut self, entry: Entry, room: &mut Room) -> Result<(), Error> {
        let (first, last) = (bucket(entry.start), bucket(entry.end - 1));
        let branches = first / BRANCH..=last / BRANCH;
        let missing = |n: &usize| self.root.get(*n).is_none_or(Option::is_none);
        let mut bytes = branches.clone().filter(missing).count() * BRANCH * size_of::<Bucket>();
        room.take(bytes)?;
        if self.root.len() <= *branches.end() {
            let more = branches.end() + 1 - self.root.len();
            room.grow(&mut self.root, more, bytes)?;
            self.root.resize_with(branches.end() + 1, || None);
        }
        for branch in self.root[branches].iter_mut().filter(|b| b.is_none()) {
            let mut buckets = Vec::new();
            room.grow(&mut buckets, BRANCH, bytes)?;
            bytes -= BRANCH * size_of::<Bucket>();
            let empty = Bucket {
                before: NONE,
                ends: [0; BLOCKS],
                own: Vec::new(),
            };
            buckets.resize(BRANCH, empty);
            *branch = Some(buckets);
        }
        let start = entry.start;
        let Some(here) = self.bucket_mut(first) else {
            return Ok(());
        };
        if here.own.len() == here.own.capacity() {
            let more = here.own.len().clamp(4, 64);
            room.take(more * size_of::<Entry>())?;
            room.grow(&mut here.own, more, more * size_of::<Entry>())?;
        }
        here.insert(entry);
        self.count += 1;
        for n in first + 1..=last {
            if let Some(b) = self.bucket_mut(n) {
                b.before = start;
            }
        }
        Ok(())
    }

    /// Removes the one that begins there.
    pub fn remove(&mut self, start: u32, room: &mut Room) -> Option<Entry> {
        let here = self.bucket_mut(bucket(start))?;
        let at = here.up_to(start).checked_sub(1)?;
        let entry = here.remove(at);
        if here.own.is_empty() {
            room.give_back(here.own.capacity() * size_of::<Entry>());
            here.own = Vec::new();
        }
        self.count -= 1;
        for n in bucket(start) + 1..=bucket(entry.end - 1) {
            if let Some(b) = self.bucket_mut(n) {
                b.before = NONE;
            }
        }
        Some(entry)
    }
}
