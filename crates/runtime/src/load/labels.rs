//! Numbers of labels: every module of the process has its own, so that any modules can share a window.

use crate::os::lock::{Lock, Locked, Rank};
use ringfence_isa::identifier::{LABEL_MAX, LABEL_MIN, LABEL_NEVER};
use std::ops::RangeInclusive;

/// Free numbers as half-open ranges, ascending, none adjacent.
static FREE: Lock<Vec<(u32, u32)>> = Lock::new(Rank::Labels, Vec::new());
static STARTED: std::sync::Once = std::sync::Once::new();

/// A module's numbers; given back on drop.
#[derive(Debug)]
pub(crate) struct Range {
    start: u32,
    end: u32,
}

impl Range {
    /// `count` numbers in a row, or how many the longest free row has.
    pub(crate) fn take(count: usize) -> Result<Range, usize> {
        STARTED.call_once(|| {
            let never = u32::from(LABEL_NEVER);
            *lock() = vec![
                (u32::from(LABEL_MIN), never),
                (never + 1, u32::from(LABEL_MAX) + 1),
            ];
        });
        if count == 0 {
            return Ok(Range { start: 0, end: 0 });
        }
        let mut free = lock();
        let longest = free.iter().map(|(a, b)| (b - a) as usize).max().unwrap_or(0);
        if count > longest {
            return Err(longest);
        }
        let at = free
            .iter()
            .position(|(a, b)| (b - a) as usize >= count)
            .expect("the longest fits");
        let start = free[at].0;
        let end = start + count as u32;
        free[at].0 = end;
        if free[at].0 == free[at].1 {
            free.remove(at);
        }
        Ok(Range { start, end })
    }

    /// The `n`th number, if it has so many.
    pub(crate) fn number(&self, n: usize) -> Option<u16> {
        let number = self.start.checked_add(u32::try_from(n).ok()?)?;
        (number < self.end).then_some(number as u16)
    }

    /// For the verifier; empty when there are no labels.
    pub(crate) fn inclusive(&self) -> RangeInclusive<u16> {
        if self.start == self.end {
            #[allow(clippy::reversed_empty_ranges)]
            return 1..=0;
        }
        self.start as u16..=(self.end - 1) as u16
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        if self.start == self.end {
            return;
        }
        let mut free = lock();
        let at = free.partition_point(|r| r.0 < self.start);
        free.insert(at, (self.start, self.end));
        // LABEL_NEVER is never free, so the two sides of it never grow together.
        if at + 1 < free.len() && free[at].1 == free[at + 1].0 {
            free[at].1 = free[at + 1].1;
            free.remove(at + 1);
        }
        if at > 0 && free[at - 1].1 == free[at].0 {
            free[at - 1].1 = free[at].1;
            free.remove(at);
        }
    }
}

/// The lock, held until what is returned goes: for `fork`.
pub(crate) fn hold() -> Box<dyn std::any::Any> {
    Box::new(lock())
}

fn lock() -> Locked<'static, Vec<(u32, u32)>> {
    FREE.lock()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_disjoint_and_come_back() {
        let a = Range::take(100).unwrap();
        let b = Range::take(200).unwrap();
        assert!(a.inclusive().all(|n| !b.inclusive().contains(&n)));
        let free = Range::take(usize::MAX).unwrap_err();
        let c = Range::take(free).unwrap();
        assert!(c.inclusive().all(|n| n != LABEL_NEVER && n >= LABEL_MIN));
        assert_eq!(b.number(0), Some(*b.inclusive().start()));
        assert_eq!(b.number(199), Some(*b.inclusive().end()));
        assert_eq!(b.number(200), None);
        assert!(Range::take(65_000).is_err());
        drop((a, b, c));
        assert!(Range::take(0).unwrap().inclusive().is_empty());
    }
}
