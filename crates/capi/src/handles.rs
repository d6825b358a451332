//! Handles that survive being wrong.
//!
//! What C code holds is not an address but a number: kind, place and the place's generation. A NULL, a
//! closed and a made-up handle all fail the look-up instead of being followed. Places are never freed,
//! only used again under the next generation, so a stale handle fails as well (after 2^24 uses of one
//! place a generation comes round again).

use std::cell::UnsafeCell;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Places come in chunks that are allocated when first needed and stay.
const CHUNK: usize = 1024;
const CHUNKS: usize = 256;

/// One word tells all of a place: how many use it at this moment, whether its value is there or going, and the generation. So a
/// look-up is one addition, and its end another: those are what a call by handle costs most, for which no processor waits for less
/// than some nanoseconds.
mod state {
    /// Users are counted from bit 0 on.
    pub const USERS: u64 = (1 << 32) - 1;
    pub const LIVE: u64 = 1 << 32;
    /// The handle is closed; the last user takes the value away.
    pub const GOING: u64 = 1 << 33;
    pub const GENERATION_SHIFT: u32 = 34;
}

struct Place<T> {
    state: AtomicU64,
    /// Written by whoever has the place from the list of free ones, and by the one who ends [`state::GOING`]; read by those who have
    /// counted themselves while it was [`state::LIVE`].
    value: UnsafeCell<Option<T>>,
}

// SAFETY: see `value`: nobody reads while anybody writes.
unsafe impl<T: Send + Sync> Sync for Place<T> {}

type Chunk<T> = Box<[Place<T>]>;

/// The number of a domain's handle, for its imports: known once the domain is made.
pub(crate) type LateHandle = Arc<AtomicU64>;

/// All handles of one kind.
pub(crate) struct Table<T: 'static> {
    /// Keeps handles of different kinds apart; 12 bits.
    kind: u64,
    chunks: [OnceLock<Chunk<T>>; CHUNKS],
    free: Mutex<Free>,
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

/// What a handle stands for, while somebody uses it: it stays, even if the handle is closed meanwhile.
pub(crate) struct Used<T: Clone + 'static> {
    table: &'static Table<T>,
    place: &'static Place<T>,
    index: usize,
}

impl<T: Clone> Deref for Used<T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: counted while it was live, so nobody writes until this goes.
        let value = unsafe { &*self.place.value.get() };
        value.as_ref().expect("a live place has a value")
    }
}

impl<T: Clone> Drop for Used<T> {
    fn drop(&mut self) {
        self.table.leave(self.place, self.index);
    }
}

impl<T: Clone> Table<T> {
    pub(crate) const fn new(kind: u16) -> Self {
        assert!(kind > 0 && kind < 1 << 12 && CHUNK * CHUNKS == 1 << PLACE_BITS);
        Self {
            kind: kind as u64,
            chunks: [const { OnceLock::new() }; CHUNKS],
            free: Mutex::new(Free {
                reusable: Vec::new(),
                fresh: 0,
            }),
        }
    }

    /// The lowest bits are odd, so that no aligned address is a handle.
    fn encode(&self, place: usize, generation: u64) -> u64 {
        1 | (place as u64) << 3
            | generation << (3 + PLACE_BITS)
            | self.kind << (3 + PLACE_BITS + GENERATION_BITS)
    }

    /// The place of a number that has a handle's shape, its index, and what the place's state is without users while the handle lives.
    fn place(&self, handle: u64) -> Result<(&Place<T>, usize, u64), BadHandle> {
        let index = (handle >> 3) as usize & ((1 << PLACE_BITS) - 1);
        let generation = handle >> (3 + PLACE_BITS) & ((1 << GENERATION_BITS) - 1);
        if self.encode(index, generation) != handle {
            return Err(BadHandle);
        }
        let chunk = self.chunks[index / CHUNK].get().ok_or(BadHandle)?;
        let live = generation << state::GENERATION_SHIFT | state::LIVE;
        Ok((&chunk[index % CHUNK], index, live))
    }

    /// Makes a handle for `value`; never 0.
    pub(crate) fn insert(&self, value: T) -> Result<u64, Full> {
        let index = {
            let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
            match free.reusable.pop() {
                Some(index) => index,
                None if free.fresh < CHUNK * CHUNKS => {
                    free.fresh += 1;
                    free.fresh - 1
                }
                None => return Err(Full),
            }
        };
        let chunk = self.chunks[index / CHUNK].get_or_init(|| {
            let place = |_| Place {
                state: AtomicU64::new(0),
                value: UnsafeCell::new(None),
            };
            (0..CHUNK).map(place).collect()
        });
        let place = &chunk[index % CHUNK];
        // SAFETY: the place was free, and is ours until it is live.
        unsafe { *place.value.get() = Some(value) };
        // Whoever tries a stale handle at this moment is counted, so nothing but the bit may change.
        let before = place.state.fetch_or(state::LIVE, Ordering::Release);
        Ok(self.encode(index, before >> state::GENERATION_SHIFT))
    }

    /// What the handle stands for, for as long as the answer is kept.
    pub(crate) fn used(&'static self, handle: u64) -> Result<Used<T>, BadHandle> {
        let (place, index, live) = self.place(handle)?;
        let before = place.state.fetch_add(1, Ordering::Acquire);
        if before & !state::USERS != live {
            self.leave(place, index);
            return Err(BadHandle);
        }
        let table = self;
        Ok(Used { table, place, index })
    }

    /// A copy of what the handle stands for.
    pub(crate) fn get(&'static self, handle: u64) -> Result<T, BadHandle> {
        Ok(self.used(handle)?.clone())
    }

    /// Ends the handle and returns what it stood for.
    pub(crate) fn remove(&'static self, handle: u64) -> Result<T, BadHandle> {
        let used = self.used(handle)?;
        let (place, _, live) = self.place(handle)?;
        let close = |now: u64| {
            let here = now & !state::USERS == live;
            here.then_some(now ^ state::LIVE ^ state::GOING)
        };
        match place
            .state
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, close)
        {
            Ok(_) => Ok(used.clone()),
            Err(_) => Err(BadHandle),
        }
    }

    /// One user fewer.
    fn leave(&self, place: &Place<T>, index: usize) {
        let before = place.state.fetch_sub(1, Ordering::AcqRel);
        if before & (state::GOING | state::USERS) == state::GOING + 1 {
            self.empty(place, index, before - 1);
        }
    }

    /// Nobody uses a place whose handle is closed, if its state is still that: it is free again.
    #[cold]
    fn empty(&self, place: &Place<T>, index: usize, alone: u64) {
        let generation = ((alone >> state::GENERATION_SHIFT) + 1) & ((1 << GENERATION_BITS) - 1);
        let free = generation << state::GENERATION_SHIFT;
        let (done, raced) = (Ordering::AcqRel, Ordering::Relaxed);
        if place.state.compare_exchange(alone, free, done, raced).is_err() {
            // Somebody tried the closed handle meanwhile, and does this when they leave.
            return;
        }
        // SAFETY: one thread ends the state; whoever comes now finds a closed handle, and the place is in no list.
        let value = unsafe { (*place.value.get()).take() };
        drop(value);
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.reusable.push(index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_handles_are_refused() {
        static NUMBERS: Table<u32> = Table::new(1);
        static OTHERS: Table<u32> = Table::new(2);
        let (numbers, others) = (&NUMBERS, &OTHERS);
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
        static T: Table<()> = Table::new(3);
        let t = &T;
        let all: Vec<u64> = (0..CHUNK * CHUNKS).map(|_| t.insert(()).unwrap()).collect();
        assert_eq!(t.insert(()), Err(Full));
        t.remove(all[17]).unwrap();
        assert!(t.insert(()).is_ok());
    }

    #[test]
    fn what_is_used_stays_until_it_is_not() {
        static T: Table<Arc<u32>> = Table::new(4);
        let value = Arc::new(5);
        let h = T.insert(value.clone()).unwrap();
        let (first, second) = (T.used(h).unwrap(), T.used(h).unwrap());
        assert_eq!(T.remove(h).map(|v| *v), Ok(5));
        assert_eq!(T.get(h), Err(BadHandle));
        assert_eq!(T.remove(h), Err(BadHandle));
        drop(first);
        assert_eq!((**second, Arc::strong_count(&value)), (5, 2));
        let other = T.insert(Arc::new(6)).unwrap();
        assert_eq!(T.get(other).map(|v| *v), Ok(6), "not in its place");
        drop(second);
        assert_eq!(Arc::strong_count(&value), 1);
        let again = T.insert(Arc::new(7)).unwrap();
        assert_eq!(again >> 3 & 0xFF, h >> 3 & 0xFF, "its place, later");
        assert_eq!(T.get(h), Err(BadHandle));
    }

    /// Threads that look up, close and make handles of few places: each finds its own value or none, and none is left.
    #[test]
    fn threads_find_what_is_theirs_or_nothing() {
        static T: Table<Arc<u64>> = Table::new(5);
        static HANDLES: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];
        let all: Vec<Arc<u64>> = (0..4).map(Arc::new).collect();
        std::thread::scope(|scope| {
            for thread in 0..4u64 {
                let all = &all;
                scope.spawn(move || {
                    for turn in 0..20_000u64 {
                        let n = (thread + turn) as usize % 4;
                        let h = HANDLES[n].load(Ordering::SeqCst);
                        if turn % 3 == thread % 3 {
                            let new = T.insert(all[n].clone()).unwrap();
                            let old = HANDLES[n].swap(new, Ordering::SeqCst);
                            assert!(old == 0 || T.remove(old).is_ok());
                        } else if let Ok(used) = T.used(h) {
                            assert_eq!(**used, n as u64);
                        }
                    }
                });
            }
        });
        for h in &HANDLES {
            assert!(T.remove(h.load(Ordering::SeqCst)).is_ok());
        }
        assert!(all.iter().all(|value| Arc::strong_count(value) == 1));
    }
}
