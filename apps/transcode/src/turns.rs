//! Who may compute: as many at a time as there are processors. Of those that wait, the first of the client that computes least is
//! next, so that one client's long functions do not keep the others away.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Turns to compute.
pub(crate) struct Turns {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    free: usize,
    /// Who waits, the first one first: their numbers, and whose they are.
    waiting: Vec<(u64, u64)>,
    /// Whose turns are taken.
    taken: Vec<u64>,
    next: u64,
}

impl State {
    /// The one that is next.
    fn first(&self) -> Option<u64> {
        let has = |client: u64| self.taken.iter().filter(|&&t| t == client).count();
        // `min_by_key` gives the first of several.
        self.waiting
            .iter()
            .min_by_key(|(_, client)| has(*client))
            .map(|&(number, _)| number)
    }
}

impl Turns {
    pub fn new(count: usize) -> Arc<Self> {
        Arc::new(Turns {
            state: Mutex::new(State {
                free: count,
                waiting: Vec::new(),
                taken: Vec::new(),
                next: 0,
            }),
            changed: Condvar::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, client: u64) {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        state.waiting.push((number, client));
        while state.free == 0 || state.first() != Some(number) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.free -= 1;
        state.waiting.retain(|&(n, _)| n != number);
        state.taken.push(client);
        if state.free > 0 {
            self.changed.notify_all();
        }
    }

    fn give(&self, client: u64) {
        let mut state = self.lock();
        state.free += 1;
        if let Some(at) = state.taken.iter().position(|&t| t == client) {
            state.taken.swap_remove(at);
        }
        self.changed.notify_all();
    }
}

/// A turn of the calling thread's, which is given up while it waits for a slow client.
pub(crate) struct Turn {
    turns: Arc<Turns>,
    client: u64,
}

impl Turn {
    /// Waits for a turn.
    pub fn take(turns: &Arc<Turns>, client: u64) -> Self {
        turns.take(client);
        Turn {
            turns: turns.clone(),
            client,
        }
    }

    /// Runs `f`, which waits, without the turn.
    pub fn without<T>(&self, f: impl FnOnce() -> T) -> T {
        struct Again<'a>(&'a Turn);
        impl Drop for Again<'_> {
            fn drop(&mut self) {
                self.0.turns.take(self.0.client);
            }
        }
        self.turns.give(self.client);
        let _again = Again(self);
        f()
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.turns.give(self.client);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// How many wait.
    fn waiting(turns: &Turns) -> usize {
        turns.lock().waiting.len()
    }

    #[test]
    fn a_client_that_computes_already_is_behind_one_that_does_not() {
        let turns = Turns::new(2);
        let (first, second) = (Turn::take(&turns, 1), Turn::take(&turns, 1));
        let (told, order) = mpsc::channel();
        let mut threads = Vec::new();
        for (place, client) in [1, 1, 2].into_iter().enumerate() {
            let (turns, told) = (turns.clone(), told.clone());
            let waits = turns.clone();
            threads.push(std::thread::spawn(move || {
                let turn = Turn::take(&turns, client);
                told.send(client).unwrap();
                drop(turn);
            }));
            while waiting(&waits) <= place {
                std::thread::yield_now();
            }
        }
        drop(first);
        assert_eq!(order.recv().unwrap(), 2);
        drop(second);
        threads.into_iter().for_each(|t| t.join().unwrap());
        assert_eq!(turns.lock().free, 2);
        assert!(turns.lock().taken.is_empty());
    }

    #[test]
    fn who_waits_for_something_else_lets_others_compute() {
        let turns = Turns::new(1);
        let turn = Turn::take(&turns, 1);
        turn.without(|| drop(Turn::take(&turns, 2)));
        assert_eq!(turns.lock().free, 0, "and has the turn again");
        drop(turn);
        assert_eq!(turns.lock().free, 1);
    }
}
