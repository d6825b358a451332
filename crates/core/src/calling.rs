//! Which domains of back ends without gates call out on this thread: for plain C functions that ask who calls them, and for hosts that
//! jump over calls.

use std::cell::Cell;

/// How many calls out, one in another, are told apart; those further in are taken for the last of them.
const MOST: usize = 32;

/// The domain's [tag](crate::Instance::set_tag), and where the thread's stack was.
type Out = Cell<(u64, u64)>;

thread_local! {
    static OUT: [Out; MOST] = const { [const { Cell::new((0, 0)) }; MOST] };
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

/// Runs a host function that the domain with this tag calls.
#[inline]
pub fn while_calling<T>(tag: u64, f: impl FnOnce() -> T) -> T {
    let here = 0u8;
    let count = COUNT.get();
    OUT.with(|out| out[count.min(MOST - 1)].set((tag, std::ptr::from_ref(&here) as u64)));
    COUNT.set(count + 1);
    let result = f();
    COUNT.set(count);
    result
}

/// The tag of the innermost such domain on this thread, if its call out lies further in on the stack than `than`.
#[must_use]
pub fn further_in(than: u64) -> Option<u64> {
    let last = COUNT.get().checked_sub(1)?;
    let (tag, stack) = OUT.with(|out| out[last.min(MOST - 1)].get());
    (stack < than).then_some(tag)
}

/// Forgets calls out that the thread has left by a jump to this place on its stack. Whether there were any.
#[must_use]
pub fn left_to(place: u64) -> bool {
    let before = COUNT.get();
    while further_in(place).is_some() {
        COUNT.set(COUNT.get() - 1);
    }
    COUNT.get() < before
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
            COUNT.set(3);
            OUT.with(|out| (out[1].set((2, 100)), out[2].set((3, 50))));
            assert!(!left_to(10));
            assert!(left_to(70));
            assert_eq!(further_in(u64::MAX), Some(2));
            assert!(left_to(1000));
            assert_eq!(further_in(u64::MAX), Some(1));
        });
    }
}
