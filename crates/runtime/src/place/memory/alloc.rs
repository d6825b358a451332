//! The host's own allocations in a domain's heap.

use super::{Memory, Protection, pages};
use ringfence_core::error::MemoryError;
use ringfence_isa::{PAGE, window};

impl Memory {
    /// A host allocation, and whether its memory was never used before and so is zero.
    pub(crate) fn alloc(&mut self, len: u64, align: u64) -> Result<(u32, bool), MemoryError> {
        if !align.is_power_of_two() || align > PAGE {
            return Err(MemoryError::Alignment { align });
        }
        let align = (align as u32).max(16);
        let wanted = len;
        let len = u32::try_from(len.max(1).saturating_add(15) & !15)
            .ok()
            .filter(|&l| l <= window::HEAP_END - window::HEAP)
            .ok_or_else(|| self.over(wanted))?;
        let fits = |(&at, &size): (&u32, &u32)| {
            let start = at.next_multiple_of(align);
            (u64::from(start) + u64::from(len) <= u64::from(at) + u64::from(size))
                .then_some((at, size, start))
        };
        let mut fresh = false;
        let found = match self.free.iter().find_map(fits) {
            Some(found) => found,
            None => {
                fresh = true;
                let more = len.max(64 << 10).next_multiple_of(PAGE as u32);
                let rw = Protection(libc::PROT_READ | libc::PROT_WRITE);
                let least = pages(len.into()).ok_or_else(|| self.over(wanted))?;
                let (at, size) = match self.map(None, more.into(), rw) {
                    Err(_) if more > least => (self.map(None, least.into(), rw)?, least),
                    other => (other?, more),
                };
                // Not joined with older free memory, which may hold old data.
                (at, size, at)
            }
        };
        let (at, size, start) = found;
        self.free.remove(&at);
        if start > at {
            self.free.insert(at, start - at);
        }
        if at + size > start + len {
            self.give(start + len, at + size - start - len);
        }
        self.live.insert(start, len);
        Ok((start, fresh))
    }

    /// Takes a host allocation back; returns its length.
    pub(crate) fn free(&mut self, at: u32) -> Option<u32> {
        let len = self.live.remove(&at)?;
        self.give(at, len);
        Some(len)
    }

    pub(super) fn give(&mut self, at: u32, len: u32) {
        let (mut at, mut len) = (at, len);
        if let Some(&next) = self.free.get(&(at + len)) {
            self.free.remove(&(at + len));
            len += next;
        }
        if let Some((&before, &size)) = self.free.range(..at).next_back()
            && before + size == at
        {
            at = before;
            len += size;
        }
        self.free.insert(at, len);
    }
}
