//! Heap memory that stays accessible from one user of a pool's domain to the next: zeroed, and nobody's until somebody asks
//! for it.
//!
//! Taking the rights to 64 KiB away and giving them back costs 5 µs, more than writing and zeroing them. What is kept
//! holds zeroes when the next user comes. That user's code can reach it without having asked, as it can reach all that
//! it will get; it is zeroed again before it is handed out, counts against the limit of memory, and goes when that is reached.

use super::{CHUNK, FEW, Memory, Source};
use crate::os::{pages, sys};
use ringfence_core::error::HostError;

/// What a user has not asked for is kept for the next one up to so many bytes: it has to be zeroed again, since it could be written.
const UNUSED: u64 = (pages::KEEP * sys::PAGE) as u64;

pub(super) const READ_WRITE: i32 = libc::PROT_READ | libc::PROT_WRITE;

impl Memory {
    /// Bytes kept, in all.
    pub(super) fn kept(&self) -> u64 {
        self.spare.values().map(|&len| u64::from(len)).sum()
    }

    /// What is kept of a range, as offsets and lengths.
    pub(super) fn kept_in(&self, at: u32, len: u32) -> Vec<(u32, u32)> {
        let end = at + len;
        let part = |(&start, &size): (&u32, &u32)| {
            let (from, to) = (start.max(at), (start + size).min(end));
            (from < to).then(|| (from, to - from))
        };
        self.spare.range(..end).filter_map(part).collect()
    }

    /// A range is somebody's now, or inaccessible.
    pub(super) fn forget_kept(&mut self, at: u32, len: u32) {
        let end = at + len;
        let hit = |(&start, &size): (&u32, &u32)| (start + size > at).then_some((start, start + size));
        let hit: Vec<_> = self.spare.range(..end).filter_map(hit).collect();
        for (start, stop) in hit {
            self.spare.remove(&start);
            if start < at {
                self.spare.insert(start, at - start);
            }
            if stop > end {
                self.spare.insert(end, stop - end);
            }
        }
    }

    /// Makes all that is kept inaccessible.
    pub(crate) fn give_up_kept(&mut self) -> Result<(), HostError> {
        while let Some((&at, &len)) = self.spare.first_key_value() {
            // SAFETY: heap that nobody has asked for; the area stays reserved.
            unsafe { sys::map_anonymous(self.base + u64::from(at), len.into(), libc::PROT_NONE, true)? };
            self.spare.remove(&at);
        }
        Ok(())
    }

    /// As [`clear`](Self::clear), but heap of at most so many bytes is zeroed and stays accessible. Nobody is in the domain.
    pub(crate) fn recycle(&mut self, most: u64) -> Result<(), HostError> {
        if self.kept() > UNUSED {
            self.give_up_kept()?;
        }
        let few = self.pieces.len() + self.spare.len() <= FEW;
        let plain = self
            .pieces
            .values()
            .all(|p| p.source == Source::Zeroes && p.rights.0 == READ_WRITE);
        // The limit may have been lower before the host raised it.
        if !few || !plain || self.used + self.kept() > self.share().min(most) {
            return self.clear();
        }
        let mut all = self.spare.clone();
        all.extend(self.pieces.iter().map(|(&at, piece)| (at, piece.len)));
        let mut joined: Vec<(u32, u32)> = Vec::with_capacity(all.len());
        for (&at, &len) in &all {
            match joined.last_mut() {
                Some(last) if last.0 + last.1 == at => last.1 += len,
                _ => joined.push((at, len)),
            }
        }
        for &(at, len) in &joined {
            let start = self.base + u64::from(at);
            let mut ranges = pages::Ranges::none();
            let Some(own) = pages::all_own(start, start + u64::from(len), &mut ranges) else {
                return self.clear();
            };
            for (from, to) in own.iter() {
                // SAFETY: pages of the heap that are mapped writable; nobody is in the domain.
                unsafe { std::ptr::write_bytes(from as *mut u8, 0, (to - from) as usize) };
            }
        }
        let mut next = Memory::new(self.base, self.limit, self.images).ending(self.end);
        next.stacks = self.stacks;
        next.spare = joined.into_iter().collect();
        let counted = (2 * (next.spare.len() as u64 + 1)).next_multiple_of(CHUNK);
        next.counted = self.counted.min(counted);
        self.counted -= next.counted;
        *self = next;
        Ok(())
    }
}
