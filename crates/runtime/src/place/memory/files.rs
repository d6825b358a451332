//! Files that are mapped into a domain's heap, shared with whoever has them.
//!
//! Their bytes are not the domain's: nothing here ever writes them, and a reset or the domain's end only takes the map away. Others may
//! make the file shorter, and what was behind its end is a bus error then, like memory that is not there: in the domain a fault, in the
//! guarded copies an error value.

use super::{Admitted, Memory, Piece, Protection, Source, pages};
use crate::os::sys;
use ringfence_core::FileMap;
use ringfence_core::error::{HostError, MemoryError};
use ringfence_isa::PAGE;

/// What the kernel said, or why it was not asked.
fn errno(error: &HostError) -> i32 {
    match error {
        HostError::Os { source, .. } => source.raw_os_error().unwrap_or(libc::EIO),
        _ => libc::EACCES,
    }
}

impl Memory {
    /// Maps a file; its offset in the window, or the errno.
    pub(crate) fn map_file(&mut self, map: &FileMap<'_>) -> Result<u32, i32> {
        let both = libc::PROT_READ | libc::PROT_WRITE;
        if map.rights & libc::PROT_EXEC != 0 || map.rights & libc::PROT_WRITE != 0 && !map.writable {
            return Err(libc::EACCES);
        }
        if map.rights & !both != 0 || map.len == 0 || !map.offset.is_multiple_of(PAGE) {
            return Err(libc::EINVAL);
        }
        let at = self.wished(map.address as u32, map.len, map.flags)?;
        let Admitted { at, len, .. } = self.admit(at, map.len).map_err(|_| libc::ENOMEM)?;
        // SAFETY: inside the domain's heap area, to which the host holds no references.
        let mapped = unsafe {
            sys::map_shared(
                self.base + u64::from(at),
                len.into(),
                map.rights,
                map.file,
                map.offset,
            )
        };
        if let Err(e) = mapped {
            // What was there may be gone.
            let _ = self.unmap(at, len.into());
            return Err(errno(&e));
        }
        let source = Source::File {
            writable: map.writable,
        };
        let rights = Protection(map.rights);
        self.note(at, Piece { len, rights, source });
        Ok(at)
    }

    /// Maps what a map of a file has, and more of the file behind it, elsewhere, and takes the old map away. The new offset.
    pub(crate) fn grow_file(&mut self, at: u32, old_len: u32, new_len: u64) -> Result<u32, MemoryError> {
        let parts = self.parts(at, old_len);
        let &[(_, piece)] = parts.as_slice() else {
            return Err(self.over(new_len));
        };
        let Admitted { at: to, len, .. } = self.admit(None, new_len)?;
        let (from, target) = (self.base + u64::from(at), self.base + u64::from(to));
        // SAFETY: both lie in the domain's heap area, to which the host holds no references; nothing is mapped at the target.
        unsafe { sys::map_shared_again(from, target, len.into()) }.map_err(|_| self.over(new_len))?;
        self.note(to, Piece { len, ..piece });
        self.unmap(at, old_len.into())?;
        Ok(to)
    }

    /// Whether a file is mapped anywhere.
    pub(crate) fn has_files(&self) -> bool {
        self.pieces.values().any(|piece| piece.source != Source::Zeroes)
    }

    /// Whether a file that the domain may not write to is mapped in a range.
    pub(super) fn read_only(&self, at: u32, len: u64) -> bool {
        let Some(len) = pages(len).filter(|&len| self.inside(at, len)) else {
            return false;
        };
        let refused = Source::File { writable: false };
        self.parts(at, len)
            .iter()
            .any(|(_, piece)| piece.source == refused)
    }
}
