//! A checked heap: what a domain's libc allocates are objects of its arena, which it owns.
//!
//! The allocator asks by system calls of its own (`ringfence_isa::words::heap`), which the runtime answers. Nothing here decides rights: objects
//! are made and freed by the supervisor, as all are. What is kept beside it is for reports: who has allocated what, who has freed it; and
//! places of freed objects stay empty for a while, so that a use after free is one.

use super::table::WORD;
use super::{Attached, BLOCK, place};
use crate::os::lock::{Lock, Rank};
use ringfence_core::{Party, WordsError};
use ringfence_isa::words::heap;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// How many return addresses of an allocation are kept: the libc's own are among them.
pub(crate) const SITE: usize = 8;

/// The call's own place, then who called whom. 0 behind the last.
pub(crate) type Site = [u64; SITE];

/// What is kept of a block takes less than so many bytes.
const RECORD: u64 = 256;

/// So many blocks at most, freed ones whose places are empty among them: a reset ends them all while the world waits.
const BLOCKS: usize = 1 << 16;

/// Longer blocks are the libc's own: all work on one block is bounded.
const LONGEST: u64 = 1 << 20;

/// A part of the arena whose freed objects' places stay empty.
const EMPTY_PART: u32 = 4;

#[derive(Clone, Debug)]
struct Block {
    len: u64,
    made: Site,
    freed: Option<Site>,
}

/// What is known of a domain's heap.
pub(crate) struct Heap(Lock<State>);

#[derive(Default)]
struct State {
    /// By the word that they begin with; freed ones as long as their places are empty.
    blocks: BTreeMap<u32, Block>,
    /// Places of freed ones, the oldest first, and their bytes.
    empty: VecDeque<Range<u32>>,
    bytes: u32,
    /// The last call of the allocator that ended the domain's, until its reset.
    misused: Option<Misused>,
}

impl Default for Heap {
    fn default() -> Heap {
        Heap(Lock::new(Rank::Heap, State::default()))
    }
}

/// Why an allocator's call ends the call of the domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Misused {
    /// No block begins there, or one that was freed, of so many bytes, with who made it and who freed it.
    NoBlock(u64, Option<Box<Story>>),
}

/// What is known of the block that an address is in, or behind the end of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Story {
    /// Bytes of the block, and where it begins.
    pub len: u64,
    pub address: u64,
    pub made: Site,
    pub freed: Option<Site>,
    /// Whether the first word that was accessed is within the block, and was never written.
    pub unwritten: bool,
    /// How far behind the block's last byte, if it is.
    pub beyond: Option<u64>,
}

impl Heap {
    /// Places that stay empty no more: the domain has gone.
    pub(super) fn end(&self) -> Vec<Range<u32>> {
        let mut state = self.0.lock();
        state.blocks.clear();
        state.bytes = 0;
        std::mem::take(&mut state.empty).into()
    }
}

const NO_MEMORY: i64 = -(libc::ENOMEM as i64);

impl Attached {
    /// One of the allocator's system calls, made at `site`. `None`: it is another, or the heap is none of these.
    pub(crate) fn heap_call(
        &self,
        number: u64,
        args: [u64; 3],
        site: impl Fn() -> Site,
    ) -> Option<Result<i64, Misused>> {
        if self.heap.is_none() || !(heap::ALLOCATE..heap::END).contains(&number) {
            return None;
        }
        let [a, b, c] = args;
        let Some(heap) = self.heap() else {
            return Some(match number {
                heap::ALLOCATE => Ok(NO_MEMORY),
                heap::RESIZE | heap::LENGTH => Err(Misused::NoBlock(a, None)),
                _ => Ok(0),
            });
        };
        let mut state = heap.0.lock();
        let answer = match number {
            heap::ALLOCATE => Ok(self.make(&mut state, a, b == 0, site())),
            heap::FREE => self.block(&state, a).map(|at| self.end(&mut state, at, site())),
            heap::RESIZE => self
                .block(&state, a)
                .map(|at| self.resize(&mut state, at, b, site())),
            heap::LENGTH => self.block(&state, a).map(|at| state.blocks[&at].len as i64),
            heap::WRITTEN => {
                self.written(self.own(&state, a, b));
                Ok(0)
            }
            _ => {
                let from = self.own(&state, b, c);
                let unwritten = self.table.unwritten(from.clone());
                if u64::from(unwritten) < (from.end - from.start).into() {
                    self.written(from);
                }
                self.written(self.own(&state, a, c));
                Ok(0)
            }
        };
        if let Err(misused) = &answer {
            state.misused = Some(misused.clone());
        }
        Some(answer)
    }

    /// Why the last call of the allocator that did so ended the domain's.
    pub(crate) fn misused(&self) -> Option<Misused> {
        self.heap()?.0.lock().misused.clone()
    }

    /// The domain is reset, and its libc knows of no block any more.
    pub(crate) fn reset_heap(&self) {
        let Some(heap) = self.heap() else { return };
        let mut state = heap.0.lock();
        let alive = state.blocks.iter().filter(|(_, b)| b.freed.is_none());
        let alive: Vec<u32> = alive.map(|(&at, _)| at).collect();
        for at in alive {
            self.end(&mut state, at, [0; SITE]);
        }
        for place in std::mem::take(&mut state.empty) {
            self.arena.reuse(place);
        }
        state.blocks.clear();
        state.bytes = 0;
        state.misused = None;
    }

    /// Whether any block is there.
    pub(crate) fn has_blocks(&self) -> bool {
        self.heap()
            .is_some_and(|heap| heap.0.lock().blocks.values().any(|b| b.freed.is_none()))
    }

    /// The words of the bytes, as far as they are in the live block that the first is in.
    fn own(&self, state: &State, address: u64, len: u64) -> Range<u32> {
        let Some(at) = self.arena.offset(self.meant(address)) else {
            return 0..0;
        };
        let Some((&start, block)) = state.blocks.range(..=at / WORD).next_back() else {
            return 0..0;
        };
        let end = start + (block.len.max(1) as u32).div_ceil(WORD);
        let to = (u64::from(at).saturating_add(len))
            .div_ceil(WORD.into())
            .min(end.into()) as u32;
        match block.freed {
            None if len > 0 && at / WORD < end => at / WORD..to,
            _ => 0..0,
        }
    }

    /// The host's address of what the domain means: of its pointers the lower half counts.
    fn meant(&self, pointer: u64) -> u64 {
        let low = (pointer as u32).wrapping_sub(self.arena.0.host as u32);
        self.arena.0.host + u64::from(low)
    }

    fn written(&self, words: Range<u32>) {
        if !words.is_empty() {
            self.table.wrote(words);
        }
    }

    /// The live block that begins at an address.
    fn block(&self, state: &State, address: u64) -> Result<u32, Misused> {
        let meant = self.meant(address);
        let at = self.arena.offset(meant).filter(|at| at.is_multiple_of(WORD));
        let at = at.map(|at| at / WORD);
        let live = |at: &u32| state.blocks.get(at).is_some_and(|b| b.freed.is_none());
        at.filter(live)
            .ok_or_else(|| Misused::NoBlock(address, self.story_of(state, meant).map(Box::new)))
    }

    fn make(&self, state: &mut State, len: u64, fresh: bool, made: Site) -> i64 {
        if state.blocks.len() >= BLOCKS {
            self.empty(state, 0);
        }
        if len > LONGEST
            || state.blocks.len() >= BLOCKS
            || (state.blocks.len() as u64).saturating_mul(RECORD) > self.arena.0.limit
        {
            return NO_MEMORY;
        }
        let alloc = || {
            self.arena
                .alloc_with(Party::Domain(self.id), len, BLOCK, fresh.then_some(self))
        };
        let address = match alloc() {
            Ok(address) => address,
            Err(WordsError::Full { .. }) => {
                // What was freed need not stay empty.
                self.empty(state, 0);
                match alloc() {
                    Ok(address) => address,
                    Err(_) => return NO_MEMORY,
                }
            }
            Err(_) => return NO_MEMORY,
        };
        let at = (address - self.arena.0.host) as u32 / WORD;
        let freed = None;
        state.blocks.insert(at, Block { len, made, freed });
        address as i64
    }

    fn end(&self, state: &mut State, at: u32, site: Site) -> i64 {
        let Some(block) = state.blocks.get_mut(&at) else {
            return 0;
        };
        let words = at..at + (block.len.max(1) as u32).div_ceil(WORD);
        // First, so that no write gives a right to what is gone.
        self.table.forget(words.clone());
        let address = self.arena.0.host + u64::from(at * WORD);
        let retired = match self.arena.retire(Party::Domain(self.id), address, true) {
            // A call by a policy, of another domain, has rights to it: they go, too.
            Err(WordsError::InUse { .. }) => {
                let len = u64::from((words.end - words.start) * WORD);
                let _ = self.arena.revoke(Party::Domain(self.id), address, len);
                self.arena.retire(Party::Domain(self.id), address, true)
            }
            other => other,
        };
        match retired {
            Ok(retired) => {
                block.freed = Some(site);
                state.bytes += retired.end - retired.start;
                state.empty.push_back(retired);
                self.empty(state, self.arena.0.len / EMPTY_PART);
            }
            // Gone all the same: the arena keeps the place until a thread has answered.
            Err(_) => {
                state.blocks.remove(&at);
            }
        }
        0
    }

    /// Gives the oldest empty places back, until they are so many bytes at most.
    fn empty(&self, state: &mut State, most: u32) {
        while state.bytes > most
            && let Some(place) = state.empty.pop_front()
        {
            state.bytes -= place.end - place.start;
            state.blocks.remove(&(place.start / WORD));
            self.arena.reuse(place);
        }
    }

    fn resize(&self, state: &mut State, at: u32, len: u64, site: Site) -> i64 {
        let old = state.blocks[&at].len.max(1).min(len);
        let made = self.make(state, len, true, site);
        let Some(new) = u64::try_from(made).ok().and_then(|a| self.arena.offset(a)) else {
            return made;
        };
        let (from, to) = (self.arena.0.host + u64::from(at * WORD), made as u64);
        // SAFETY: two objects of the arena, which do not overlap; domains may write them meanwhile, and get what they have written.
        unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, old as usize) };
        self.table
            .write_alike(at..at + (old as u32).div_ceil(WORD), new / WORD);
        self.end(state, at, site);
        made
    }

    /// What the heap knows of an address.
    pub(crate) fn story(&self, address: u64) -> Option<Story> {
        self.story_of(&self.heap()?.0.lock(), address)
    }

    fn story_of(&self, state: &State, address: u64) -> Option<Story> {
        let at = self.arena.offset(address)?;
        let (&start, block) = state.blocks.range(..=at / WORD).next_back()?;
        let behind = u64::from(at - start * WORD);
        let words = start..start + (block.len.max(1) as u32).div_ceil(WORD);
        // Further behind it is nobody's.
        if at >= place(&words).end {
            return None;
        }
        Some(Story {
            len: block.len,
            address: self.arena.0.host + u64::from(start * WORD),
            made: block.made,
            freed: block.freed,
            unwritten: words.contains(&(at / WORD)) && self.table.unwritten(at / WORD..at / WORD + 1) == 1,
            beyond: (behind >= block.len).then(|| behind - block.len),
        })
    }
}
