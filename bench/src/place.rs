//! On which processor a thread runs. Where the scheduler puts two processes that talk to each other decides what
//! their talk costs, by a factor of twenty; so both places are measured, and neither is left to chance.

use std::mem::{size_of, zeroed};

/// A processor, seen from the one that measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The same: each waits while the other works.
    Here,
    /// Another one.
    There,
}

/// The set of processors that the calling thread may use.
fn allowed() -> libc::cpu_set_t {
    // SAFETY: all-zero is a valid set, which the call fills in
    unsafe {
        let mut set = zeroed();
        libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set);
        set
    }
}

fn numbers(set: &libc::cpu_set_t) -> Vec<usize> {
    // SAFETY: the numbers are within the set
    (0..libc::CPU_SETSIZE as usize)
        .filter(|&n| unsafe { libc::CPU_ISSET(n, set) })
        .collect()
}

fn confine(set: &libc::cpu_set_t) {
    // SAFETY: the set is a valid one; a thread that could not be confined is measured where it is
    unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), set) };
}

/// The processors that [`Place`] means: of those that this thread may use, the first and the last. One that is alone
/// is both.
#[derive(Clone, Copy, Debug)]
pub struct Processors(usize, usize);

impl Processors {
    /// Of the calling thread, before it is pinned.
    pub fn of_this_thread() -> Self {
        let all = numbers(&allowed());
        Processors(
            all.first().copied().unwrap_or_default(),
            all.last().copied().unwrap_or_default(),
        )
    }

    /// Whether there is another one.
    pub fn two(self) -> bool {
        self.0 != self.1
    }

    /// Moves the calling thread for good.
    pub fn stay(self, place: Place) {
        // SAFETY: all-zero is a valid set, and the number comes out of one
        let set = unsafe {
            let mut set = zeroed();
            libc::CPU_SET(if place == Place::Here { self.0 } else { self.1 }, &mut set);
            set
        };
        confine(&set);
    }
}

/// Keeps the calling thread on one processor as long as it lives.
pub struct Pinned(libc::cpu_set_t);

impl Pinned {
    /// Moves it.
    pub fn to(place: Place) -> Self {
        let before = allowed();
        Processors::of_this_thread().stay(place);
        Pinned(before)
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        confine(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::{Pinned, Place, allowed, numbers};

    #[test]
    fn a_pinned_thread_has_one_processor_until_the_end() {
        let before = numbers(&allowed());
        for (place, at) in [(Place::Here, before.first()), (Place::There, before.last())] {
            let pin = Pinned::to(place);
            assert_eq!(numbers(&allowed()), [*at.expect("a processor")]);
            drop(pin);
            assert_eq!(numbers(&allowed()), before);
        }
    }
}
