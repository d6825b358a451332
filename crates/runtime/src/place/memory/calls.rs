//! The memory calls that a domain makes, in terms of its heap.

use super::{Memory, Protection, pages};
use ringfence_core::error::MemoryError;
use ringfence_core::policy::Syscall;
use ringfence_isa::PAGE;

/// Most bytes whose pages the kernel takes back, or changes, in one step: a quarter of a millisecond.
pub(crate) const SLICE: u64 = 4 << 20;

/// The calls that a call is made of: one for each slice of a large range whose pages it gives back or changes. Between two of them
/// whoever makes them can see that the domain's call has to end.
pub(crate) fn slices(call: &Syscall) -> impl Iterator<Item = Syscall> + use<> {
    let [at, len, third, flags, ..] = call.args;
    let number = call.number as libc::c_long;
    let sliced = match number {
        libc::SYS_munmap | libc::SYS_mprotect => true,
        libc::SYS_madvise => third == libc::MADV_DONTNEED as u64,
        // What is there goes first, as Linux has it too.
        libc::SYS_mmap => {
            let fixed = flags as i32 & (libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE) == libc::MAP_FIXED;
            fixed && flags as i32 & libc::MAP_ANONYMOUS != 0 && third & libc::PROT_EXEC as u64 == 0
        }
        _ => false,
    };
    // What is not inside the heap area is one call, which is refused whole.
    let inside = pages(len).is_some_and(|len| Memory::in_area(at as u32, len));
    let count = if sliced && inside { len.div_ceil(SLICE) } else { 0 };
    let replaces = number == libc::SYS_mmap;
    let slice = move |n: u64| {
        let mut args = [
            at.wrapping_add(n * SLICE),
            SLICE.min(len - n * SLICE),
            third,
            0,
            0,
            0,
        ];
        let number = if replaces { libc::SYS_munmap } else { number };
        if replaces {
            args[2] = 0;
        }
        Syscall {
            number: number as u64,
            args,
        }
    };
    let large = count > 1;
    let whole = (!large || replaces).then_some(*call);
    (0..if large { count } else { 0 }).map(slice).chain(whole)
}

/// The memory calls of Linux on a domain's own anonymous memory, of which `mremap` is made. `None`: another call.
pub(crate) fn system_call(memory: &mut Memory, base: u64, call: &Syscall) -> Option<i64> {
    const BRK: u64 = libc::SYS_brk as u64;
    const MMAP: u64 = libc::SYS_mmap as u64;
    const MUNMAP: u64 = libc::SYS_munmap as u64;
    const MPROTECT: u64 = libc::SYS_mprotect as u64;
    const MADVISE: u64 = libc::SYS_madvise as u64;
    let [address, len, third, flags, ..] = call.args;
    // Addresses are rebased, as everything that a domain passes.
    let offset = address as u32;
    let error = |e: i32| -i64::from(e);
    let rights = |prot: u64| {
        let allowed = (libc::PROT_READ | libc::PROT_WRITE) as u64;
        (prot & !allowed == 0).then_some(Protection(prot as i32))
    };
    let done = |r: Result<(), MemoryError>| match r {
        Ok(()) => 0,
        Err(MemoryError::Outside { .. }) => error(libc::EINVAL),
        Err(_) => error(libc::ENOMEM),
    };
    Some(match call.number {
        BRK => (base + u64::from(memory.set_break(offset))) as i64,
        MMAP => {
            let flags = flags as i32;
            let kind = flags & (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            if kind != libc::MAP_PRIVATE | libc::MAP_ANONYMOUS {
                return None;
            }
            if third & libc::PROT_EXEC as u64 != 0 {
                return Some(error(libc::EPERM));
            }
            let Some(rights) = rights(third) else {
                return Some(error(libc::EINVAL));
            };
            if len == 0 {
                return Some(error(libc::EINVAL));
            }
            match memory
                .wished(offset, len, flags)
                .map(|at| memory.map(at, len, rights))
            {
                Ok(Ok(at)) => (base + u64::from(at)) as i64,
                Ok(Err(_)) => error(libc::ENOMEM),
                Err(errno) => error(errno),
            }
        }
        MUNMAP => done(memory.unmap(offset, len)),
        MPROTECT if third & libc::PROT_EXEC as u64 != 0 => error(libc::EACCES),
        MPROTECT => match rights(third) {
            Some(_) if len == 0 => 0,
            Some(rights) if rights.0 & libc::PROT_WRITE != 0 && memory.read_only(offset, len) => {
                error(libc::EACCES)
            }
            Some(rights) => done(memory.protect(offset, len, rights)),
            None => error(libc::EINVAL),
        },
        MADVISE if third == libc::MADV_DONTNEED as u64 => done(memory.discard(offset, len)),
        MADVISE => 0,
        _ => return None,
    })
}

impl Memory {
    /// Where a call that maps `len` bytes wants them, by its address and flags: `None` for anywhere, or the errno.
    pub(super) fn wished(&self, at: u32, len: u64, flags: i32) -> Result<Option<u32>, i32> {
        let aligned = at.is_multiple_of(PAGE as u32);
        if flags & (libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE) != 0 {
            if !aligned || !pages(len).is_some_and(|len| self.inside(at, len)) {
                return Err(libc::EPERM);
            }
            let replaces = flags & libc::MAP_FIXED_NOREPLACE != libc::MAP_FIXED_NOREPLACE;
            return match replaces || self.is_free(at, len) {
                true => Ok(Some(at)),
                false => Err(libc::EEXIST),
            };
        }
        Ok((at != 0 && aligned && self.is_free(at, len)).then_some(at))
    }
}
