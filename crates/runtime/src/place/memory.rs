//! The heap area of a window: anonymous maps, the break, and what the host allocates there.
//!
//! All bookkeeping is in host memory. Nothing here ever maps executable memory, and nothing leaves the heap area.

use crate::os::{host, pages, sys};
use ringfence_core::error::{HostError, MemoryError};
use ringfence_isa::{PAGE, window};
use std::collections::BTreeMap;

mod alloc;
mod calls;
mod files;
mod pieces;
mod spare;
#[cfg(test)]
mod tests;

pub(crate) use calls::{SLICE, slices, system_call};

/// Most separate mappings that a domain may have: the process has 65,530 for all.
const MOST_PIECES: usize = 2048;

/// A heap of more pieces is not cleared piece by piece.
const FEW: usize = 8;

/// Mappings are counted by so many.
const CHUNK: u64 = 4;

/// How much address space the break may grow over.
const BREAK_AREA: u32 = 0x3000_0000;

/// What may be done with a piece of memory, as for `mprotect`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Protection(pub i32);

/// What is behind a piece of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// Zeroes, and what the domain has written.
    Zeroes,
    /// A file, shared with whoever has it.
    File {
        /// Whether the domain may write to it.
        writable: bool,
    },
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    len: u32,
    rights: Protection,
    source: Source,
}

impl Piece {
    /// Memory of the domain's own.
    fn zeroes(len: u32, rights: Protection) -> Piece {
        let source = Source::Zeroes;
        Piece { len, rights, source }
    }
}

/// Where something may be mapped.
struct Admitted {
    at: u32,
    len: u32,
    /// What is kept there, as offsets and lengths.
    kept: Vec<(u32, u32)>,
}

pub(crate) struct Memory {
    base: u64,
    limit: u64,
    /// Where the heap area ends.
    end: u32,
    /// Bytes of the writable data of the modules that the domain was made of: they count as long as it lives.
    images: u64,
    /// Bytes of the stacks and thread blocks of lanes: they count as long as they are mapped, used or not.
    stacks: u64,
    /// Bytes mapped.
    used: u64,
    /// What is mapped, by offset in the window. Pieces do not overlap.
    pieces: BTreeMap<u32, Piece>,
    /// The break: offset in the window.
    brk: u32,
    /// Host allocations: offset and length.
    live: BTreeMap<u32, u32>,
    /// Free parts of what was mapped for host allocations.
    free: BTreeMap<u32, u32>,
    /// Kernel mappings counted for this domain's pieces.
    counted: u64,
    /// Where an image is mapped, by offset and length, and whether it still is there as it was.
    frozen: Vec<(u32, u32)>,
    intact: bool,
    /// Zeroed memory that is accessible although nobody has asked for it: offset and length. Never part of a piece.
    spare: BTreeMap<u32, u32>,
    /// The last request of the domain's that the limit refused: what it wanted.
    refused: Option<u64>,
}

/// The bookkeeping of a heap, for an image.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heap {
    used: u64,
    pieces: BTreeMap<u32, Piece>,
    brk: u32,
    live: BTreeMap<u32, u32>,
    free: BTreeMap<u32, u32>,
}

impl PartialEq for Heap {
    fn eq(&self, other: &Self) -> bool {
        self.list().eq(other.list())
            && (self.brk, &self.live, &self.free) == (other.brk, &other.live, &other.free)
    }
}

impl Heap {
    /// Pieces as offset, length and rights.
    pub(crate) fn list(&self) -> impl Iterator<Item = (u32, u32, i32)> + '_ {
        self.pieces
            .iter()
            .map(|(&at, piece)| (at, piece.len, piece.rights.0))
    }
}

/// A length in whole pages, if it is neither 0 nor more than the heap area.
pub(crate) fn pages(len: u64) -> Option<u32> {
    let len = len.checked_add(PAGE - 1)? & !(PAGE - 1);
    u32::try_from(len)
        .ok()
        .filter(|&l| l > 0 && l <= window::HEAP_END - window::HEAP)
}

impl Memory {
    /// The same with an area that ends sooner.
    pub(crate) fn ending(mut self, end: u32) -> Memory {
        self.end = end;
        self
    }

    pub(crate) fn new(base: u64, limit: u64, images: u64) -> Memory {
        Memory {
            base,
            limit,
            end: window::HEAP_END,
            images,
            stacks: 0,
            used: 0,
            pieces: BTreeMap::new(),
            brk: window::HEAP,
            live: BTreeMap::new(),
            free: BTreeMap::new(),
            counted: 0,
            frozen: Vec::new(),
            intact: true,
            spare: BTreeMap::new(),
            refused: None,
        }
    }

    /// Sets the limit; what is in use stays.
    pub(crate) fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    /// Raises the limit.
    pub(crate) fn raise(&mut self, limit: u64) {
        self.limit = self.limit.max(limit);
    }

    /// What a request since the last look wanted that the limit refused, what is in use, and the limit.
    pub(crate) fn take_refused(&mut self) -> Option<(u64, u64, u64)> {
        let wanted = self.refused.take()?;
        Some((wanted, self.used(), self.limit))
    }

    /// The bookkeeping as it is, for an image of it. Nothing is kept accessible any more.
    pub(crate) fn state(&mut self) -> Result<Heap, HostError> {
        self.give_up_kept()?;
        Ok(Heap {
            used: self.used,
            pieces: self.pieces.clone(),
            brk: self.brk,
            live: self.live.clone(),
            free: self.free.clone(),
        })
    }

    /// Takes over the bookkeeping of an image that is mapped in this window.
    pub(crate) fn adopt(&mut self, heap: &Heap) -> Result<(), HostError> {
        let Heap {
            used,
            pieces,
            brk,
            live,
            free,
        } = heap.clone();
        let mappings = 2 * (pieces.len() as u64 + 1);
        while mappings > self.counted {
            host::take_mappings(CHUNK)?;
            self.counted += CHUNK;
        }
        self.frozen = pieces.iter().map(|(&at, piece)| (at, piece.len)).collect();
        self.intact = true;
        (self.used, self.pieces, self.brk, self.live, self.free) = (used, pieces, brk, live, free);
        Ok(())
    }

    /// Takes away what was mapped besides an image. False if the image has to be mapped anew, too.
    pub(crate) fn keep_only(&mut self, heap: &Heap) -> Result<bool, HostError> {
        if !self.intact || self.pieces.len() > heap.pieces.len() + FEW {
            let len = u64::from(window::HEAP_END - window::HEAP);
            // SAFETY: nobody is in the domain; the area stays reserved.
            unsafe { sys::map_anonymous(self.base + u64::from(window::HEAP), len, libc::PROT_NONE, true)? };
            return Ok(false);
        }
        let mut more = Vec::new();
        for (&at, &piece) in &self.pieces {
            let mut from = at;
            // The image's pieces are all still there, some of them joined with others.
            for &(start, len) in self.frozen.iter().filter(|f| f.0 >= at && f.0 - at < piece.len) {
                let len_before = start - from;
                more.push((
                    from,
                    Piece {
                        len: len_before,
                        ..piece
                    },
                ));
                from = start + len;
            }
            let len = at + piece.len - from;
            more.push((from, Piece { len, ..piece }));
        }
        for (at, piece) in more {
            if piece.len > 0 && !self.hide(at, piece) {
                let (start, len) = (self.base + u64::from(at), u64::from(piece.len));
                // SAFETY: as above.
                unsafe { sys::map_anonymous(start, len, libc::PROT_NONE, true)? };
            }
        }
        Ok(true)
    }

    /// Whether there may be two pieces more: here, and among the process's mappings. A piece with the gap
    /// behind it costs the kernel two.
    fn room(&mut self) -> bool {
        let pieces = self.pieces.len() + 2;
        if pieces > MOST_PIECES {
            return false;
        }
        while 2 * (pieces + self.spare.len()) as u64 > self.counted {
            if host::take_mappings(CHUNK).is_err() {
                return false;
            }
            self.counted += CHUNK;
        }
        true
    }

    pub(crate) fn used(&self) -> u64 {
        self.images + self.stacks + self.used
    }

    /// What of the limit is for all but the first modules' data and stacks.
    fn share(&self) -> u64 {
        self.limit.saturating_sub(self.images + self.stacks)
    }

    /// Counts the stacks of another lane.
    pub(crate) fn charge_stacks(&mut self, len: u64) -> Result<(), MemoryError> {
        self.charge(len)?;
        self.used -= len;
        self.stacks += len;
        Ok(())
    }

    /// A lane's stacks are gone.
    pub(crate) fn discharge_stacks(&mut self, len: u64) {
        self.stacks -= len;
    }

    /// Counts memory of the domain that lies elsewhere in the window.
    pub(crate) fn charge(&mut self, len: u64) -> Result<(), MemoryError> {
        if len > self.share().saturating_sub(self.used) {
            return Err(self.over(len));
        }
        if self.used + len + self.kept() > self.share() {
            // What is accessible never exceeds the limit.
            self.give_up_kept().map_err(|_| self.over(len))?;
        }
        self.used += len;
        Ok(())
    }

    /// That memory is gone.
    pub(crate) fn discharge(&mut self, len: u64) {
        self.used -= len;
    }

    /// Everything is inaccessible again, and holds nothing.
    pub(crate) fn clear(&mut self) -> Result<(), HostError> {
        let spare = self.spare.iter().map(|(&at, &len)| {
            let rights = Protection(spare::READ_WRITE);
            (at, Piece::zeroes(len, rights))
        });
        let mut all = self.pieces.iter().map(|(&at, &piece)| (at, piece)).chain(spare);
        let count = self.pieces.len() + self.spare.len();
        if count > 0 && !(count <= FEW && all.all(|(at, piece)| self.hide(at, piece))) {
            let len = u64::from(window::HEAP_END - window::HEAP);
            // SAFETY: nobody is in the domain; the area stays reserved.
            unsafe { sys::map_anonymous(self.base + u64::from(window::HEAP), len, libc::PROT_NONE, true)? };
        }
        let stacks = self.stacks;
        *self = Memory::new(self.base, self.limit, self.images).ending(self.end);
        self.stacks = stacks;
        Ok(())
    }

    /// Zeroes a piece where it is and takes its rights away, so that the next user of its memory has no page faults. False if
    /// that cannot be done, or not quickly.
    fn hide(&self, at: u32, piece: Piece) -> bool {
        let (start, len) = (self.base + u64::from(at), u64::from(piece.len));
        // What the domain cannot write now may hold what it wrote before, and a file is not to be written to.
        if piece.source != Source::Zeroes || piece.rights.0 != libc::PROT_READ | libc::PROT_WRITE {
            return false;
        }
        let mut ranges = pages::Ranges::none();
        let Some(own) = pages::own(start, start + len, &mut ranges) else {
            return false;
        };
        for (from, to) in own.iter() {
            // SAFETY: pages of a piece that is mapped writable; nobody is in the domain.
            unsafe { std::ptr::write_bytes(from as *mut u8, 0, (to - from) as usize) };
        }
        // SAFETY: as above.
        unsafe { sys::protect(start, len, libc::PROT_NONE) }.is_ok()
    }

    fn over(&self, wanted: u64) -> MemoryError {
        MemoryError::Limit {
            wanted,
            used: self.used(),
            limit: self.limit,
        }
    }

    /// Whether a range is in the area for heaps, of whichever window.
    fn in_area(at: u32, len: u32) -> bool {
        at >= window::HEAP && at.checked_add(len).is_some_and(|end| end <= window::HEAP_END)
    }

    fn inside(&self, at: u32, len: u32) -> bool {
        at >= window::HEAP && at.checked_add(len).is_some_and(|end| end <= self.end)
    }

    /// Where `len` bytes may come to lie, whole pages of them: at `at`, in place of what was there, or anywhere. With it what is kept
    /// there. The limit and the number of mappings allow it.
    fn admit(&mut self, at: Option<u32>, len: u64) -> Result<Admitted, MemoryError> {
        let wanted = len;
        let len = pages(len).ok_or_else(|| self.over(wanted))?;
        let replaced = at.map_or(0, |at| self.mapped_in(at, len));
        if self.used - replaced + u64::from(len) > self.share() {
            self.refused = Some(u64::from(len) - replaced);
            return Err(self.over(wanted));
        }
        if !self.room() {
            return Err(self.over(wanted));
        }
        let at = match at {
            Some(at) if at.is_multiple_of(PAGE as u32) && self.inside(at, len) => at,
            Some(_) => return Err(self.over(wanted)),
            None => self.place(len).ok_or_else(|| self.over(wanted))?,
        };
        let mut kept = self.kept_in(at, len);
        let here: u64 = kept.iter().map(|k| u64::from(k.1)).sum();
        if self.used - replaced + u64::from(len) + self.kept() - here > self.share() {
            // What is accessible never exceeds the limit.
            self.give_up_kept().map_err(|_| self.over(wanted))?;
            kept.clear();
        }
        Ok(Admitted { at, len, kept })
    }

    /// Something was mapped where it was admitted.
    fn note(&mut self, at: u32, piece: Piece) {
        self.forget_kept(at, piece.len);
        self.cut(at, piece.len);
        self.used += u64::from(piece.len);
        self.pieces.insert(at, piece);
        self.join(at);
    }

    /// Maps zeroed memory at `at`, replacing what was there, or anywhere.
    pub(crate) fn map(&mut self, at: Option<u32>, len: u64, rights: Protection) -> Result<u32, MemoryError> {
        let wanted = len;
        let Admitted { at, len, kept } = self.admit(at, len)?;
        let here: u64 = kept.iter().map(|k| u64::from(k.1)).sum();
        let address = self.base + u64::from(at);
        // Memory that is not in use is zero: it was mapped anew when it was given back, or zeroed by `hide`. What is kept was
        // zeroed, but the domain can write it.
        let free = self.mapped_in(at, len) == 0;
        // SAFETY: inside the domain's heap area, to which the host holds no references.
        unsafe {
            if free && kept.is_empty() {
                sys::protect(address, len.into(), rights.0)
            } else if free && rights.0 == spare::READ_WRITE {
                kept.iter()
                    .try_for_each(|&(at, len)| pages::zero(self.base + u64::from(at), len.into()))
                    .and_then(|()| match here < u64::from(len) {
                        true => sys::protect(address, len.into(), rights.0),
                        false => Ok(()),
                    })
            } else {
                sys::map_anonymous(address, len.into(), rights.0, true).map(drop)
            }
        }
        .map_err(|_| self.over(wanted))?;
        self.note(at, Piece::zeroes(len, rights));
        Ok(at)
    }

    /// Makes a range inaccessible and forgets it.
    pub(crate) fn unmap(&mut self, at: u32, len: u64) -> Result<(), MemoryError> {
        let outside = MemoryError::Outside {
            address: self.base + u64::from(at),
            len,
        };
        let len = pages(len).ok_or(outside)?;
        if !at.is_multiple_of(PAGE as u32) || !self.inside(at, len) {
            return Err(outside);
        }
        if !self.room() {
            return Err(self.over(len.into()));
        }
        // SAFETY: as in `map`. A mapping, not a hole: nothing else can ever come to lie here.
        unsafe { sys::map_anonymous(self.base + u64::from(at), len.into(), libc::PROT_NONE, true) }
            .map_err(|_| outside)?;
        self.forget_kept(at, len);
        self.cut(at, len);
        Ok(())
    }

    /// Changes the rights of a range that is mapped throughout.
    pub(crate) fn protect(&mut self, at: u32, len: u64, rights: Protection) -> Result<(), MemoryError> {
        let address = self.base + u64::from(at);
        let outside = MemoryError::Outside { address, len };
        let len = pages(len).ok_or(outside)?;
        if !at.is_multiple_of(PAGE as u32) || !self.inside(at, len) {
            return Err(outside);
        }
        if self.mapped_in(at, len) != u64::from(len) {
            return Err(MemoryError::Unmapped {
                address,
                len: len.into(),
            });
        }
        if !self.room() {
            return Err(self.over(len.into()));
        }
        // One by one: what is known of a piece is what the kernel has of it, also if it refuses the next.
        for (start, piece) in self.parts(at, len) {
            let from = self.base + u64::from(start);
            // SAFETY: as in `map`.
            unsafe { sys::protect(from, piece.len.into(), rights.0) }.map_err(|_| MemoryError::Unmapped {
                address: from,
                len: piece.len.into(),
            })?;
            self.cut(start, piece.len);
            self.used += u64::from(piece.len);
            self.pieces.insert(start, Piece { rights, ..piece });
            self.join(start);
        }
        Ok(())
    }

    /// Zeroes a range that is mapped throughout.
    pub(crate) fn discard(&mut self, at: u32, len: u64) -> Result<(), MemoryError> {
        let address = self.base + u64::from(at);
        let outside = MemoryError::Outside { address, len };
        let len = pages(len).ok_or(outside)?;
        if !at.is_multiple_of(PAGE as u32) || !self.inside(at, len) {
            return Err(outside);
        }
        if self.mapped_in(at, len) != u64::from(len) {
            return Err(MemoryError::Unmapped {
                address,
                len: len.into(),
            });
        }
        for (start, piece) in self.parts(at, len) {
            // What was written to a file stays in it.
            if piece.source == Source::Zeroes {
                self.zero(start, piece).map_err(|_| outside)?;
            }
        }
        Ok(())
    }

    /// Zeroes a part of a piece, which keeps its rights.
    fn zero(&mut self, at: u32, piece: Piece) -> Result<(), HostError> {
        let (address, len) = (self.base + u64::from(at), u64::from(piece.len));
        let of_image = |&(start, size): &(u32, u32)| start < at + piece.len && at < start + size;
        if self.frozen.iter().any(of_image) {
            // Dropped pages of an image would be the image's again.
            self.touch(at, piece.len);
            // SAFETY: inside the domain's heap area, to which the host holds no references.
            return unsafe { sys::map_anonymous(address, len, piece.rights.0, true).map(drop) };
        }
        // SAFETY: as in `map`.
        unsafe { sys::drop_pages(address, len) }
    }

    /// Whether a range is free for a mapping that must not replace anything.
    pub(crate) fn is_free(&self, at: u32, len: u64) -> bool {
        pages(len).is_some_and(|len| self.inside(at, len) && self.mapped_in(at, len) == 0)
    }

    /// Moves the break to `to` if that is possible; returns where it is.
    pub(crate) fn set_break(&mut self, to: u32) -> u32 {
        if (window::HEAP..=window::HEAP + BREAK_AREA).contains(&to) {
            let old = self.brk.next_multiple_of(PAGE as u32);
            let new = to.next_multiple_of(PAGE as u32);
            let rw = Protection(libc::PROT_READ | libc::PROT_WRITE);
            let done = match new.cmp(&old) {
                std::cmp::Ordering::Greater => {
                    self.mapped_in(old, new - old) == 0 && self.map(Some(old), (new - old).into(), rw).is_ok()
                }
                std::cmp::Ordering::Less => self.unmap(new, (old - new).into()).is_ok(),
                std::cmp::Ordering::Equal => true,
            };
            if done {
                self.brk = to;
            }
        }
        self.brk
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        host::give_mappings(self.counted);
    }
}
