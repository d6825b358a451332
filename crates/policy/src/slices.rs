//! Large transfers in pieces, so that a call that has to end is not held up by one.

use crate::span::Span;

/// Most bytes of one piece: a fraction of a millisecond of copying.
pub const SLICE: u64 = 256 << 10;

/// Spans that are worked off from the front.
pub struct Slices<'a> {
    spans: &'a [Span],
    /// Bytes of the first of them that are done.
    begun: u64,
}

impl<'a> Slices<'a> {
    /// All of them.
    pub fn new(spans: &'a [Span]) -> Slices<'a> {
        let mut all = Slices { spans, begun: 0 };
        all.done(0);
        all
    }

    /// The next `most` bytes, or all that are left.
    pub fn next(&self, most: u64) -> Vec<Span> {
        let (mut begun, mut most) = (self.begun, most);
        let mut next = Vec::new();
        for span in self.spans {
            let part = span.skip(std::mem::take(&mut begun)).first(most);
            most -= part.len();
            next.push(part);
            if most == 0 {
                break;
            }
        }
        next
    }

    /// The next `n` bytes have been moved.
    pub fn done(&mut self, n: u64) {
        self.begun += n;
        while let [first, rest @ ..] = self.spans
            && self.begun >= first.len()
        {
            self.begun -= first.len();
            self.spans = rest;
        }
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }
}

/// Bytes in all.
pub fn total(spans: &[Span]) -> u64 {
    spans.iter().map(|s| s.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cross_borders_and_leave_nothing_out() {
        let spans: Vec<Span> = [(10, 0), (100, 5), (200, 0), (300, 7), (400, 0)]
            .map(|(at, len)| Span::checked(at, len))
            .into();
        let mut slices = Slices::new(&spans);
        let mut seen = Vec::new();
        while !slices.is_empty() {
            let next = slices.next(3);
            let n = total(&next);
            assert!((1..=3).contains(&n));
            for span in next {
                seen.extend(span.address()..span.address() + span.len());
            }
            slices.done(n);
        }
        assert_eq!(seen, (100..105).chain(300..307).collect::<Vec<_>>());
        assert!(Slices::new(&[]).is_empty());
        assert!(Slices::new(&spans[..1]).is_empty());
    }
}
