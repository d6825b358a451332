//! Which channel a thread of the host has in which domain.

use crate::ask::Ask;
use crate::channel::{CHANNELS, kind};
use crate::domain::Shared;
use crate::link::Place;
use ringfence_core::CallError;
use std::cell::{Cell, RefCell};
use std::sync::{PoisonError, Weak};

/// A thread's channels: the domain's number, the domain, the channel.
#[derive(Default)]
struct Mine(Vec<(u64, Weak<Shared>, usize)>);

impl Drop for Mine {
    /// The thread ends: its channels are free again, and the worker's threads behind them end.
    fn drop(&mut self) {
        for (id, shared, number) in self.0.drain(..) {
            if let Some(shared) = shared.upgrade()
                && number != 0
            {
                give_back(&shared, id, number);
            }
        }
    }
}

thread_local! {
    static MINE: RefCell<Mine> = RefCell::default();
    /// The one that was used last.
    static LAST: Cell<(u64, usize)> = const { Cell::new((0, 0)) };
}

fn give_back(shared: &Shared, id: u64, number: usize) {
    let link = &shared.link;
    // Another worker has other threads.
    if link.id() != id || !link.maker.is_me() {
        return;
    }
    let _ = link.exchange(Place { number, id }, None, 0, |_| kind::END);
    let mut taken = shared.taken.lock().unwrap_or_else(PoisonError::into_inner);
    *taken &= !(1 << number);
}

/// The calling thread's channel in the domain; it gets one if it has none.
#[inline]
pub(crate) fn channel(shared: &Shared) -> Result<Place, CallError> {
    let id = shared.link.id();
    let (known, number) = LAST.get();
    if known == id {
        return Ok(Place { number, id });
    }
    find(shared, id)
}

#[cold]
fn find(shared: &Shared, id: u64) -> Result<Place, CallError> {
    shared.link.usable()?;
    let known = MINE.try_with(|mine| {
        let mine = mine.try_borrow().ok()?;
        mine.0.iter().find(|m| m.0 == id).map(|m| m.2)
    });
    // A thread that is ending has no place to note a channel.
    let number = match known.map_err(|_| CallError::Ending)? {
        Some(number) => number,
        None => {
            let number = begin(shared)?;
            note(shared, id, number);
            number
        }
    };
    LAST.set((id, number));
    Ok(Place { number, id })
}

fn note(shared: &Shared, id: u64, number: usize) {
    let _ = MINE.try_with(|mine| {
        let Ok(mut mine) = mine.try_borrow_mut() else {
            return;
        };
        mine.0.retain(|m| m.1.strong_count() > 0 && m.0 != id);
        mine.0.push((id, shared.me.clone(), number));
    });
}

/// Whether the calling thread makes the domain.
pub(crate) fn makes(shared: &Shared) -> bool {
    let id = shared.link.id();
    MINE.try_with(|mine| {
        mine.try_borrow()
            .is_ok_and(|mine| mine.0.iter().any(|m| m.0 == id && m.2 == 0))
    })
    .unwrap_or(false)
}

/// The calling thread makes the domain, through the channel for that, until what is returned is called.
pub(crate) fn while_making<T>(shared: &Shared, f: impl FnOnce() -> T) -> T {
    let id = shared.link.id();
    note(shared, id, 0);
    let result = f();
    let _ = MINE.try_with(|mine| mine.try_borrow_mut().map(|mut m| m.0.retain(|m| m.0 != id)));
    if LAST.get().0 == id {
        LAST.set((0, 0));
    }
    result
}

fn begin(shared: &Shared) -> Result<usize, CallError> {
    let number = {
        let mut taken = shared.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let free = (!(*taken | 1)).trailing_zeros() as usize;
        if free >= CHANNELS {
            return Err(CallError::NoLane {
                limit: CHANNELS as u32 - 1,
            });
        }
        *taken |= 1 << free;
        free
    };
    shared.link.clear(number);
    let failed = |why: String| {
        let mut taken = shared.taken.lock().unwrap_or_else(PoisonError::into_inner);
        *taken &= !(1 << number);
        CallError::Lane(why)
    };
    let answer = shared.whole(&Ask::Thread(number as u64));
    match answer {
        Ok(bytes) => {
            let mut r = crate::wire::Reader(&bytes);
            match bytes.is_empty() || r.number() != 0 {
                false => Ok(number),
                true => Err(failed(r.text())),
            }
        }
        Err(e) => {
            failed(String::new());
            Err(e)
        }
    }
}
