//! Locks, and the one order in which a thread may take them.

#[cfg(debug_assertions)]
use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// The locks of the runtime, outermost first: a thread that has one takes only such as stand below it. Debug builds assert it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub(crate) enum Rank {
    /// Handlers of fork are being registered.
    Fork,
    /// Those of the supervisor are.
    SupervisorFork,
    /// Regions, and who has rights to them.
    Supervisor,
    /// What stands in an import that takes functions of other domains.
    Slot,
    /// Domains' indices, all lanes, who has which.
    World,
    /// What a domain's last reset found.
    Looks,
    /// Modules that were added to a domain.
    Family,
    /// Pieces of code that were added to a domain.
    Code,
    /// A domain's lanes.
    Lanes,
    /// What a domain's reset returns to.
    Checkpoint,
    /// A domain's pages.
    Memory,
    /// A domain's function pointers for the host.
    Thunks,
    /// What holds addresses of code that may go.
    Handles,
    /// A domain's functions that others may call.
    Granted,
    /// Threads that have lanes.
    Threads,
    /// The watchdog is being started.
    Watchdog,
    /// Signal handlers are being installed.
    Signals,
    /// Which arenas there are.
    Arenas,
    /// What a domain's libc has allocated in an arena.
    Heap,
    /// Objects of an arena, and who has rights to them.
    Words,
    /// Windows of domains that have gone.
    Windows,
    /// Numbers of labels.
    Labels,
    /// Memory of thunks.
    ThunkPools,
    /// Which windows show arenas.
    Views,
}

/// A mutex with its place in the order. A thread that panicked with it has left its data usable: nothing panics between two
/// writes that belong together.
pub(crate) struct Lock<T> {
    rank: Rank,
    mutex: Mutex<T>,
}

/// What [`Lock::lock`] gives.
pub(crate) struct Locked<'a, T> {
    guard: MutexGuard<'a, T>,
    _held: Held,
}

impl<T> Lock<T> {
    /// A lock that nobody has.
    pub(crate) const fn new(rank: Rank, value: T) -> Self {
        let mutex = Mutex::new(value);
        Self { rank, mutex }
    }

    /// Waits for it.
    pub(crate) fn lock(&self) -> Locked<'_, T> {
        let _held = Held::take(self.rank);
        let guard = self.mutex.lock().unwrap_or_else(PoisonError::into_inner);
        Locked { guard, _held }
    }

    /// Waits for it although the thread may have others of the same rank: those of all domains while it forks, in the order of
    /// the domains' addresses.
    pub(crate) fn lock_with_peers(&self) -> Locked<'_, T> {
        let _held = Held::take_with(self.rank, 1);
        let guard = self.mutex.lock().unwrap_or_else(PoisonError::into_inner);
        Locked { guard, _held }
    }

    /// Does not wait; `None` if somebody has it.
    pub(crate) fn try_lock(&self) -> Option<Locked<'_, T>> {
        let guard = match self.mutex.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        let _held = Held::take(self.rank);
        Some(Locked { guard, _held })
    }

    /// What is in it, for the only one who has it.
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.mutex.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Deref for Locked<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for Locked<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

#[cfg(debug_assertions)]
thread_local! {
    /// A bit for each rank of which the thread has a lock.
    static HELD: Cell<u32> = const { Cell::new(0) };
}

/// A lock that this thread has, for the check of the order.
struct Held {
    #[cfg(debug_assertions)]
    rank: Rank,
}

impl Held {
    fn take(rank: Rank) -> Self {
        Self::take_with(rank, 0)
    }

    /// `peers`: 1 if the thread may have the same rank already.
    fn take_with(rank: Rank, peers: u32) -> Self {
        #[cfg(debug_assertions)]
        HELD.with(|held| {
            let above = held.get() >> rank as u32;
            assert!(
                above & !peers == 0,
                "{rank:?} is taken out of order: bits {above:#b} from it on are held"
            );
            held.set(held.get() | 1 << rank as u32);
        });
        #[cfg(not(debug_assertions))]
        let _ = (rank, peers);
        Self {
            #[cfg(debug_assertions)]
            rank,
        }
    }
}

#[cfg(debug_assertions)]
impl Drop for Held {
    fn drop(&mut self) {
        HELD.with(|held| held.set(held.get() & !(1 << self.rank as u32)));
    }
}

#[cfg(test)]
mod tests {
    use super::{Lock, Rank};

    #[test]
    fn locks_are_taken_from_the_top_down() {
        let (above, below) = (Lock::new(Rank::World, 1), Lock::new(Rank::Memory, 2));
        let (first, second) = (above.lock(), below.lock());
        assert_eq!(*first + *second, 3);
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "World is taken out of order")]
    fn the_other_way_round_is_noticed() {
        let (above, below) = (Lock::new(Rank::World, ()), Lock::new(Rank::Memory, ()));
        let _below = below.lock();
        let _above = above.lock();
    }
}
