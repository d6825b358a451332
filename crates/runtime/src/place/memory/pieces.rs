//! What is mapped in a domain's heap, and where there is room.

use super::{BREAK_AREA, Memory, Piece, Protection, Source};
use ringfence_isa::{PAGE, window};

impl Memory {
    /// A free place of `len` bytes: above the break's area, or in it, well above the break.
    pub(super) fn place(&self, len: u32) -> Option<u32> {
        let area = window::HEAP + BREAK_AREA;
        let above_break = self.brk.next_multiple_of(PAGE as u32).saturating_add(16 << 20);
        self.first_fit(area, self.end, len)
            .or_else(|| self.first_fit(above_break, area, len))
    }

    pub(super) fn first_fit(&self, low: u32, high: u32, len: u32) -> Option<u32> {
        if low >= high {
            return None;
        }
        let mut at = low;
        if let Some((&start, piece)) = self.pieces.range(..low).next_back() {
            at = at.max(start + piece.len);
        }
        for (&start, piece) in self.pieces.range(low..high) {
            if start >= at && start - at >= len {
                break;
            }
            at = at.max(start + piece.len);
        }
        at.checked_add(len).is_some_and(|end| end <= high).then_some(at)
    }

    /// Bytes mapped within a range.
    pub(super) fn mapped_in(&self, at: u32, len: u32) -> u64 {
        let end = u64::from(at) + u64::from(len);
        let first = self.pieces.range(..=at).next_back().map_or(at, |p| *p.0);
        self.pieces
            .range(first..)
            .take_while(|(start, _)| u64::from(**start) < end)
            .map(|(&start, piece)| {
                let piece_end = u64::from(start) + u64::from(piece.len);
                piece_end.min(end).saturating_sub(u64::from(start.max(at)))
            })
            .sum()
    }

    /// What is known of a range that lies in one piece.
    fn piece_of(&self, at: u32, len: u32) -> Option<&Piece> {
        let (start, piece) = self.pieces.range(..=at).next_back()?;
        let end = at.checked_add(len)?;
        (end <= start + piece.len).then_some(piece)
    }

    /// The rights of a range that lies in one piece.
    pub(crate) fn rights_of(&self, at: u32, len: u32) -> Option<Protection> {
        self.piece_of(at, len).map(|piece| piece.rights)
    }

    /// The same, if a file is mapped there.
    pub(crate) fn file_at(&self, at: u32, len: u32) -> Option<Protection> {
        let piece = self.piece_of(at, len)?;
        (piece.source != Source::Zeroes).then_some(piece.rights)
    }

    /// What of each piece lies in a range.
    pub(super) fn parts(&self, at: u32, len: u32) -> Vec<(u32, Piece)> {
        let end = at + len;
        let first = self.pieces.range(..=at).next_back().map_or(at, |p| *p.0);
        let part = |(&start, &piece): (&u32, &Piece)| {
            let (from, to) = (start.max(at), (start + piece.len).min(end));
            (from < to).then(|| {
                (
                    from,
                    Piece {
                        len: to - from,
                        ..piece
                    },
                )
            })
        };
        self.pieces.range(first..end).filter_map(part).collect()
    }

    /// Something is about to be mapped over a range, or its rights change.
    pub(super) fn touch(&mut self, at: u32, len: u32) {
        self.intact &= !self
            .frozen
            .iter()
            .any(|&(start, size)| start < at + len && at < start + size);
    }

    /// Forgets what is mapped in a range.
    pub(super) fn cut(&mut self, at: u32, len: u32) {
        let end = at + len;
        self.touch(at, len);
        let first = self.pieces.range(..=at).next_back().map_or(at, |p| *p.0);
        let hit: Vec<(u32, Piece)> = self.pieces.range(first..end).map(|(s, p)| (*s, *p)).collect();
        for (start, piece) in hit {
            let piece_end = start + piece.len;
            if piece_end <= at {
                continue;
            }
            self.pieces.remove(&start);
            if start < at {
                self.pieces.insert(
                    start,
                    Piece {
                        len: at - start,
                        ..piece
                    },
                );
            }
            if piece_end > end {
                self.pieces.insert(
                    end,
                    Piece {
                        len: piece_end - end,
                        ..piece
                    },
                );
            }
            self.used -= u64::from(piece_end.min(end) - start.max(at));
        }
    }

    /// Joins a piece with its neighbours of the same kind and rights, as the kernel does. Maps of files stay what they are.
    pub(super) fn join(&mut self, at: u32) {
        let Some(piece) = self.pieces.get(&at).copied() else {
            return;
        };
        if piece.source != Source::Zeroes {
            return;
        }
        let joins = |other: &Piece| other.source == piece.source && other.rights == piece.rights;
        let mut start = at;
        let mut len = piece.len;
        if let Some((&next, p)) = self.pieces.range(at + 1..).next()
            && next == at + len
            && joins(p)
        {
            len += p.len;
            self.pieces.remove(&next);
        }
        if let Some((&before, p)) = self.pieces.range(..at).next_back()
            && before + p.len == at
            && joins(p)
        {
            len += p.len;
            self.pieces.remove(&at);
            start = before;
        }
        self.pieces.insert(start, Piece { len, ..piece });
    }
}
