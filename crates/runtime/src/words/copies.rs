//! What the runtime copies for a domain: objects of the host's that a system call names. The domain's rights decide, as if it made the access
//! itself; whoever takes rights away waits for a copy in progress.

use super::Attached;
use super::table::WORD;
use crate::lanes::{learn, signal};
use crate::os::guarded;
use ringfence_isa::words;

/// Most bytes that are copied while nobody else changes rights.
const PIECE: usize = 64 << 10;

impl Attached {
    /// Where in the arena an offset in the domain's window is.
    pub(crate) fn place(&self, offset: u32) -> Option<u32> {
        let at = offset.checked_sub(words::ARENA)?;
        (at < self.arena.0.len).then_some(at)
    }

    /// How many of `len` bytes at a place the domain may read, or write.
    pub(crate) fn reach(&self, at: u32, len: u64, write: bool) -> u64 {
        // A forked child's arena is the parent's.
        if self.view.is_gone() || len == 0 {
            return 0;
        }
        let end = u64::from(at).saturating_add(len).min(self.arena.0.len.into()) as u32;
        if learn::learns(self.view.base) {
            return u64::from(end - at);
        }
        let reach = self.table.reach(at / WORD..end.div_ceil(WORD), write) * WORD;
        u64::from(reach.min(end).saturating_sub(at))
    }

    /// Copies out of the arena what the domain may read. Whether it may read all of it.
    pub(crate) fn copy_out(&self, at: u32, to: &mut [u8]) -> bool {
        to.chunks_mut(PIECE).zip((at..).step_by(PIECE)).all(|(to, at)| {
            self.copy(at, to.len(), false, |object| {
                // SAFETY: `to` is ours, the other range lies in the arena.
                unsafe { guarded::copy(to.as_mut_ptr(), object, to.len()) }
            })
        })
    }

    /// Copies into the arena what the domain may write. Whether it may write all of it.
    pub(crate) fn copy_in(&self, at: u32, from: &[u8]) -> bool {
        from.chunks(PIECE).zip((at..).step_by(PIECE)).all(|(from, at)| {
            self.copy(at, from.len(), true, |object| {
                // SAFETY: `from` is ours, the other range lies in the arena.
                unsafe { guarded::copy(object, from.as_ptr(), from.len()) }
            })
        })
    }

    fn copy(&self, at: u32, len: usize, write: bool, copy: impl FnOnce(*mut u8) -> usize) -> bool {
        signal::thread_ready();
        let _state = self.arena.0.state.lock();
        if self.reach(at, len as u64, write) < len as u64 {
            return false;
        }
        learn::copied(self.view.base, at, len as u32, write);
        if write {
            self.table.wrote(at / WORD..(at + len as u32).div_ceil(WORD));
        }
        copy((self.arena.0.host + u64::from(at)) as *mut u8) == 0
    }
}
