//! `mremap`: a domain's anonymous memory grows or shrinks where it is, or moves; so do maps of files.
//!
//! What moves is what is in it. The pages stay: where the kernel moves those it leaves a hole in the window, into which anything
//! of the host's could come.

use super::Inner;
use crate::lanes::signal;
use crate::os::guarded;
use crate::place::memory::{self, Memory, SLICE};
use ringfence_core::{Space, Syscall};
use ringfence_isa::PAGE;

const READ_WRITE: u64 = (libc::PROT_READ | libc::PROT_WRITE) as u64;

impl Inner {
    /// A memory call of the domain's, in slices.
    fn memory_call_of(&self, number: libc::c_long, args: [u64; 4]) -> Result<u64, i64> {
        let [a, b, c, d] = args;
        let call = Syscall {
            number: number as u64,
            args: [a, b, c, d, u64::MAX, 0],
        };
        match Space::memory_call(self, &call) {
            Some(value) if value >= 0 => Ok(value as u64),
            Some(errno) => Err(errno),
            None => Err(-i64::from(libc::ENOMEM)),
        }
    }

    /// The call's value.
    pub(super) fn remap(&self, args: [u64; 6]) -> i64 {
        let [old, old_len, new_len, flags, ..] = args;
        self.remapped(old as u32, old_len, new_len, flags as i32)
            .map_or_else(|errno| errno, |address| address as i64)
    }

    fn remapped(&self, at: u32, old_len: u64, new_len: u64, flags: i32) -> Result<u64, i64> {
        let error = |errno: i32| -i64::from(errno);
        if flags & !libc::MREMAP_MAYMOVE != 0
            || !at.is_multiple_of(PAGE as u32)
            || old_len == 0
            || new_len == 0
        {
            return Err(error(libc::EINVAL));
        }
        let old_len = memory::pages(old_len).ok_or(error(libc::EFAULT))?;
        let new_len = u64::from(memory::pages(new_len).ok_or(error(libc::ENOMEM))?);
        let (rights, file) = {
            let memory = self.memory();
            let rights = memory.rights_of(at, old_len).ok_or(error(libc::EFAULT))?;
            (rights.0 as u64, memory.file_at(at, old_len).is_some())
        };
        if file && new_len > u64::from(old_len) {
            return self.remapped_file(at, old_len, new_len, flags);
        }
        let (start, old_len) = (self.base() + u64::from(at), u64::from(old_len));
        if new_len < old_len {
            self.memory_call_of(libc::SYS_munmap, [start + new_len, old_len - new_len, 0, 0])?;
        }
        if new_len <= old_len {
            return Ok(start);
        }
        let anonymous = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
        let behind = [
            start + old_len,
            new_len - old_len,
            rights,
            anonymous | libc::MAP_FIXED_NOREPLACE as u64,
        ];
        match self.memory_call_of(libc::SYS_mmap, behind) {
            Ok(_) => return Ok(start),
            // Something lies there, or the heap ends.
            Err(errno) if errno == error(libc::EEXIST) || errno == error(libc::EPERM) => {}
            Err(errno) => return Err(errno),
        }
        if flags & libc::MREMAP_MAYMOVE == 0 {
            return Err(error(libc::ENOMEM));
        }
        let to = self.memory_call_of(libc::SYS_mmap, [0, new_len, READ_WRITE, anonymous])?;
        let moved = self.copy_heap(start, to, old_len, rights);
        let moved = moved.and_then(|()| match rights {
            READ_WRITE => Ok(0),
            _ => self.memory_call_of(libc::SYS_mprotect, [to, new_len, rights, 0]),
        });
        if let Err(errno) = moved {
            // A call that has to end leaves it: giving it back takes long.
            if errno != error(libc::EINTR) {
                let _ = self.memory_call_of(libc::SYS_munmap, [to, new_len, 0, 0]);
            }
            return Err(errno);
        }
        self.memory_call_of(libc::SYS_munmap, [start, old_len, 0, 0])?;
        Ok(to)
    }

    /// A map of a file that grows. Behind it the window has something, if only what keeps others out: it moves.
    fn remapped_file(&self, at: u32, old_len: u32, new_len: u64, flags: i32) -> Result<u64, i64> {
        if flags & libc::MREMAP_MAYMOVE == 0 {
            return Err(-i64::from(libc::ENOMEM));
        }
        let grow = |memory: &mut Memory| memory.grow_file(at, old_len, new_len);
        match self.with_limit(grow) {
            Ok(to) => Ok(self.base() + u64::from(to)),
            Err(_) => Err(-i64::from(libc::ENOMEM)),
        }
    }

    /// Copies from one part of the domain's heap, which has these rights, to another.
    fn copy_heap(&self, from: u64, to: u64, len: u64, rights: u64) -> Result<(), i64> {
        let hidden = rights & libc::PROT_READ as u64 == 0;
        if hidden {
            let readable = libc::PROT_READ as u64;
            self.memory_call_of(libc::SYS_mprotect, [from, len, readable, 0])?;
        }
        signal::thread_ready();
        let mut done = 0;
        while done < len {
            if done > 0 && Space::ending(self) {
                return Err(-i64::from(libc::EINTR));
            }
            let n = SLICE.min(len - done);
            // SAFETY: both lie in the window's heap area, to which the host holds no references; faults become a result.
            let failed =
                unsafe { guarded::copy((to + done) as *mut u8, (from + done) as *const u8, n as usize) };
            if failed != 0 {
                // Another thread of the domain took it away.
                if hidden {
                    let _ = self.memory_call_of(libc::SYS_mprotect, [from, len, rights, 0]);
                }
                return Err(-i64::from(libc::EFAULT));
            }
            done += n;
        }
        Ok(())
    }
}
