//! Which domains of back ends without gates call out on this thread: for plain C functions that ask who calls them, and for hosts that
//! jump over calls.

use std::cell::Cell;

/// How many calls out, one in another, are told apart; those further in are taken for the last of them.
const MOST: usize = 32;

/// The calls out of a thread. In the heap: what libraries have for each thread on the threads' own memory is little for all of them
/// together, and a second copy of this one is to be loaded and refused, not to be refused loading.
#[derive(Default)]
struct Out {
    count: Cell<usize>,
    /// The domain's [tag](crate::Instance::set_tag), and where the thread's stack was.
    list: [Cell<(u64, u64)>; MOST],
}

crate::local!(static OUT: Out);

/// Runs a host function that the domain with this tag calls. (Where there is no memory to note it, nobody is told.)
#[inline]
pub fn while_calling<T>(tag: u64, f: impl FnOnce() -> T) -> T {
    let here = 0u8;
    let before = OUT.with(|out| {
        let count = out.count.get();
        out.list[count.min(MOST - 1)].set((tag, std::ptr::from_ref(&here) as u64));
        out.count.set(count + 1);
        count
    });
    let result = f();
    if let Some(count) = before {
        OUT.look(|out| out.count.set(count));
    }
    result
}

/// The tag of the innermost such domain on this thread, if its call out lies further in on the stack than `than`.
#[must_use]
pub fn further_in(than: u64) -> Option<u64> {
    let last = OUT.look(|out| {
        let last = out.count.get().checked_sub(1)?;
        Some(out.list[last.min(MOST - 1)].get())
    });
    let (tag, stack) = last.flatten()?;
    (stack < than).then_some(tag)
}

/// Forgets calls out that the thread has left by a jump to this place on its stack. Whether there were any.
#[must_use]
pub fn left_to(place: u64) -> bool {
    let mut any = false;
    while further_in(place).is_some() {
        OUT.look(|out| out.count.set(out.count.get() - 1));
        any = true;
    }
    any
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_is_told() {
        assert_eq!(further_in(u64::MAX), None);
        while_calling(1, || {
            assert_eq!(further_in(u64::MAX), Some(1));
            while_calling(2, || assert_eq!(further_in(u64::MAX), Some(2)));
            assert_eq!((further_in(u64::MAX), further_in(0)), (Some(1), None));
        });
        assert_eq!(further_in(u64::MAX), None);
    }

    fn nest(depth: usize) {
        if depth > 0 {
            while_calling(depth as u64, || nest(depth - 1));
        } else {
            assert_eq!(further_in(u64::MAX), Some(1));
        }
    }

    #[test]
    fn more_than_are_told_apart() {
        nest(2 * MOST);
        assert_eq!(further_in(u64::MAX), None);
    }

    /// As after a jump: the call out is never come back to.
    #[test]
    fn what_was_left_is_forgotten() {
        while_calling(1, || {
            OUT.with(|out| {
                out.count.set(3);
                out.list[1].set((2, 100));
                out.list[2].set((3, 50));
            });
            assert!(!left_to(10));
            assert!(left_to(70));
            assert_eq!(further_in(u64::MAX), Some(2));
            assert!(left_to(1000));
            assert_eq!(further_in(u64::MAX), Some(1));
        });
    }
}
