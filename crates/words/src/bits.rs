//! Rights to words as pairs of bits, and runs of words whose rights change alike.
//!
//! No right is 0, to read is 1, to read and write is 3: what two sources give together is their bitwise or.

use ringfence_core::Rights;
use std::ops::Range;

/// Words whose rights stand in one `u64`.
pub(crate) const CHUNK: u32 = 32;
/// The lower bit of each pair.
const LOW: u64 = 0x5555_5555_5555_5555;

/// The rights for all words of a chunk.
#[inline]
pub(crate) fn filled(rights: Rights) -> u64 {
    match rights {
        Rights::None => 0,
        Rights::Read => LOW,
        Rights::Write => u64::MAX,
    }
}

#[inline]
fn of_pair(pair: u64) -> Rights {
    match pair & 3 {
        0 => Rights::None,
        1 => Rights::Read,
        _ => Rights::Write,
    }
}

/// The rights of one word of a chunk.
#[inline]
pub(crate) fn of_word(bits: u64, word: u32) -> Rights {
    of_pair(bits >> (2 * (word % CHUNK)))
}

/// The chunks that words lie in.
#[inline]
pub(crate) fn chunks(words: &Range<u32>) -> Range<u32> {
    words.start / CHUNK..words.end.div_ceil(CHUNK)
}

/// The pairs of the chunk that are of these words.
#[inline]
pub(crate) fn mask(chunk: u32, words: &Range<u32>) -> u64 {
    let first = chunk * CHUNK;
    let low = words.start.saturating_sub(first).min(CHUNK);
    let high = words.end.saturating_sub(first).min(CHUNK);
    let below = |n: u32| 1_u64.checked_shl(2 * n).map_or(u64::MAX, |bit| bit - 1);
    below(high) & !below(low)
}

/// Words with more rights after than before, as the lower bit of their pairs; the other way round, those with less.
#[inline]
pub(crate) fn more(before: u64, after: u64) -> u64 {
    let new = after & !before;
    (new | new >> 1) & LOW
}

/// Joins words that get the same rights to runs, over the ends of chunks.
#[derive(Default)]
pub(crate) struct Runs {
    run: Range<u32>,
    rights: Rights,
}

impl Runs {
    /// The words of a chunk that `set` has the lower bits of, with their rights. Runs that are whole go to `to`.
    #[inline]
    pub fn add<E>(
        &mut self,
        chunk: u32,
        mut set: u64,
        bits: u64,
        to: &mut impl FnMut(Range<u32>, Rights) -> Result<(), E>,
    ) -> Result<(), E> {
        while set != 0 {
            let first = set.trailing_zeros() / 2;
            let rights = of_pair(bits >> (2 * first));
            let other = bits ^ filled(rights);
            let same = set & !(other | other >> 1);
            let len = ((same >> (2 * first)) | !LOW)
                .trailing_ones()
                .div_ceil(2)
                .min(CHUNK - first);
            let start = chunk * CHUNK + first;
            if self.run.end == start && self.rights == rights && !self.run.is_empty() {
                self.run.end += len;
            } else {
                let run = std::mem::replace(&mut self.run, start..start + len);
                let before = std::mem::replace(&mut self.rights, rights);
                if !run.is_empty() {
                    to(run, before)?;
                }
            }
            let done = first + len;
            set &= u64::MAX.checked_shl(2 * done).unwrap_or(0);
        }
        Ok(())
    }

    /// The last one.
    #[inline]
    pub fn end<E>(self, to: &mut impl FnMut(Range<u32>, Rights) -> Result<(), E>) -> Result<(), E> {
        match self.run.is_empty() {
            true => Ok(()),
            false => to(self.run, self.rights),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    #[test]
    fn masks_cover_their_words() {
        assert_eq!(mask(0, &(0..1)), 3);
        assert_eq!(mask(0, &(31..40)), 3 << 62);
        assert_eq!(mask(1, &(31..40)), 0xFFFF);
        assert_eq!(mask(1, &(0..100)), u64::MAX);
        assert_eq!(mask(2, &(0..64)), 0);
        assert_eq!(
            (chunks(&(0..32)), chunks(&(31..33)), chunks(&(64..65))),
            (0..1, 0..2, 2..3)
        );
    }

    #[test]
    fn runs_are_as_long_as_they_can_be() {
        // Word by word, in place of the arithmetic.
        let mut state = 1_u64;
        for _ in 0..2000 {
            let mut chunks = [(0, 0); 3];
            for chunk in &mut chunks {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                let bits = (state & LOW) | ((state & LOW & (state >> 7)) << 1);
                *chunk = ((state >> 3 | state >> 20 | state >> 33) & LOW, bits);
            }
            let mut expected: Vec<(Range<u32>, Rights)> = Vec::new();
            for word in 0..3 * CHUNK {
                let (set, bits) = chunks[(word / CHUNK) as usize];
                if set >> (2 * (word % CHUNK)) & 1 == 0 {
                    continue;
                }
                let rights = of_word(bits, word);
                match expected.last_mut() {
                    Some((run, r)) if run.end == word && *r == rights => run.end += 1,
                    _ => expected.push((word..word + 1, rights)),
                }
            }
            let (mut runs, mut told) = (Runs::default(), Vec::new());
            let mut to = |run, rights| {
                told.push((run, rights));
                Ok::<(), Infallible>(())
            };
            for (n, (set, bits)) in (0..).zip(chunks) {
                let Ok(()) = runs.add(n, set, bits, &mut to);
            }
            let Ok(()) = runs.end(&mut to);
            assert_eq!(told, expected);
        }
    }
}
