//! Handles that survive being wrong.
//!
//! What C code holds is not an address but a number: kind, place and the place's generation. A NULL, a
//! closed and a made-up handle all fail the look-up instead of being followed. Places are never freed,
//! only used again under the next generation, so a stale handle fails as well (after 2^24 uses of one
//! place a generation comes round again).

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock, RwLock};

/// Places come in chunks that are allocated when first needed and stay.
const CHUNK: usize = 1024;
const CHUNKS: usize = 256;

struct Entry<T> {
    generation: u32,
    value: Option<T>,
}

type Chunk<T> = Box<[RwLock<Entry<T>>]>;

/// The number of a domain's handle, for its imports: known once the domain is made.
pub(crate) type LateHandle = Arc<AtomicU64>;

/// All handles of one kind.
pub(crate) struct Table<T> {
    /// Keeps handles of different kinds apart; 12 bits.
    kind: u64,
    chunks: [OnceLock<Chunk<T>>; CHUNKS],
    free: RwLock<Free>,
}

struct Free {
    reusable: Vec<usize>,
    fresh: usize,
}

/// The number is no live handle of this kind.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadHandle;

/// No place is left.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;

const PLACE_BITS: u32 = 18;
const GENERATION_BITS: u32 = 24;

impl<T: Clone> Table<T> {
    pub(crate) const fn new(kind: u16) -> Self {
        assert!(kind > 0 && kind < 1 << 12 && CHUNK * CHUNKS == 1 << PLACE_BITS);
        Self {
            kind: kind as u64,
            chunks: [const { OnceLock::new() }; CHUNKS],
            free: RwLock::new(Free {
                reusable: Vec::new(),
                fresh: 0,
            }),
        }
    }

    /// The lowest bits are odd, so that no aligned address is a handle.
    fn encode(&self, place: usize, generation: u32) -> u64 {
        1 | (place as u64) << 3
            | u64::from(generation) << (3 + PLACE_BITS)
            | self.kind << (3 + PLACE_BITS + GENERATION_BITS)
    }

    fn place(&self, handle: u64) -> Result<(&RwLock<Entry<T>>, usize, u32), BadHandle> {
        let place = (handle >> 3) as usize & ((1 << PLACE_BITS) - 1);
        let generation = (handle >> (3 + PLACE_BITS)) as u32 & ((1 << GENERATION_BITS) - 1);
        if self.encode(place, generation) != handle {
            return Err(BadHandle);
        }
        let chunk = self.chunks[place / CHUNK].get().ok_or(BadHandle)?;
        Ok((&chunk[place % CHUNK], place, generation))
    }

    /// Makes a handle for `value`; never 0.
    pub(crate) fn insert(&self, value: T) -> Result<u64, Full> {
        let place = {
            let mut free = self.free.write().unwrap_or_else(|e| e.into_inner());
            match free.reusable.pop() {
                Some(place) => place,
                None if free.fresh < CHUNK * CHUNKS => {
                    free.fresh += 1;
                    free.fresh - 1
                }
                None => return Err(Full),
            }
        };
        let chunk = self.chunks[place / CHUNK].get_or_init(|| {
            (0..CHUNK)
                .map(|_| {
                    RwLock::new(Entry {
                        generation: 0,
                        value: None,
                    })
                })
                .collect()
        });
        let mut s = chunk[place % CHUNK].write().unwrap_or_else(|e| e.into_inner());
        s.value = Some(value);
        Ok(self.encode(place, s.generation))
    }

    /// A copy of what the handle stands for.
    pub(crate) fn get(&self, handle: u64) -> Result<T, BadHandle> {
        let (place, _, generation) = self.place(handle)?;
        let s = place.read().unwrap_or_else(|e| e.into_inner());
        match &s.value {
            Some(value) if s.generation == generation => Ok(value.clone()),
            _ => Err(BadHandle),
        }
    }

    /// Ends the handle and returns what it stood for.
    pub(crate) fn remove(&self, handle: u64) -> Result<T, BadHandle> {
        let (place, index, generation) = self.place(handle)?;
        let value = {
            let mut s = place.write().unwrap_or_else(|e| e.into_inner());
            if s.generation != generation || s.value.is_none() {
                return Err(BadHandle);
            }
            s.generation = (generation + 1) & ((1 << GENERATION_BITS) - 1);
            s.value.take().ok_or(BadHandle)?
        };
        self.free
            .write()
            .unwrap_or_else(|e| e.into_inner())
            .reusable
            .push(index);
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_handles_are_refused() {
        let numbers = Table::<u32>::new(1);
        let others = Table::<u32>::new(2);
        let h = numbers.insert(5).unwrap();
        assert_eq!(numbers.get(h), Ok(5));
        for wrong in [
            0,
            1,
            h + 1,
            h ^ 2,
            h | 1 << 63,
            h + 8,
            !0,
            0xDEAD_BEEF,
            h + (1 << 21),
        ] {
            assert_eq!(numbers.get(wrong), Err(BadHandle), "{wrong:#x}");
        }
        assert_eq!(others.get(h), Err(BadHandle));
        assert_eq!(numbers.remove(h), Ok(5));
        assert_eq!(numbers.get(h), Err(BadHandle));
        assert_eq!(numbers.remove(h), Err(BadHandle));
        let again = numbers.insert(6).unwrap();
        assert_ne!(again, h, "the place comes back under another generation");
        assert_eq!(numbers.get(h), Err(BadHandle));
        assert_eq!(numbers.get(again), Ok(6));
    }

    #[test]
    fn a_full_table_says_so_and_recovers() {
        let t = Table::<()>::new(3);
        let all: Vec<u64> = (0..CHUNK * CHUNKS).map(|_| t.insert(()).unwrap()).collect();
        assert_eq!(t.insert(()), Err(Full));
        t.remove(all[17]).unwrap();
        assert!(t.insert(()).is_ok());
    }
}
