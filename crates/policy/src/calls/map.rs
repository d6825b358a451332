//! `mmap`: private maps of files. What anonymous memory is, the runtime knows.

use std::os::fd::AsFd;

use ringfence_core::policy::Syscall;

use crate::calls::context::{Context, Reply};
use crate::device::Device;
use crate::slices::SLICE;
use crate::sys::{self, Outcome, Transfer};
use crate::table::Kind;

/// Private maps of files: anonymous memory with a copy of the content. What anonymous memory is, the runtime knows.
pub(super) fn map(cx: Context<'_>, call: &Syscall) -> Outcome<Reply> {
    let [address, len, protection, flags, fd, offset] = cx.args;
    if protection & libc::PROT_EXEC as u64 != 0 {
        return Err(libc::EACCES);
    }
    if flags & libc::MAP_ANONYMOUS as u64 != 0 {
        // Shared with the processes that it forks, of which there are none.
        let shared = flags & libc::MAP_TYPE as u64 == libc::MAP_SHARED as u64;
        let kind = if shared {
            (libc::MAP_SHARED ^ libc::MAP_PRIVATE) as u64
        } else {
            0
        };
        let mut call = *call;
        call.args[3] ^= kind;
        return cx.memory_call(&call);
    }
    let open = cx.state.table.get(fd)?;
    let anonymous = flags | libc::MAP_ANONYMOUS as u64;
    let fd = match &*open {
        Kind::File(file) => &file.fd,
        // Zeros of its own, which is what anonymous memory is.
        Kind::Device(Device::Zero, libc::O_RDONLY | libc::O_RDWR)
            if flags & libc::MAP_PRIVATE as u64 != 0 =>
        {
            let args = [address, len, protection, anonymous, u64::MAX, 0];
            let number = call.number;
            return cx.memory_call(&Syscall { number, args });
        }
        _ => return Err(libc::ENODEV),
    };
    if flags & libc::MAP_PRIVATE as u64 == 0 {
        // A change of the file would have to show, and the other way round.
        return Err(libc::ENODEV);
    }
    if offset % 4096 != 0 {
        return Err(libc::EINVAL);
    }
    let both = (libc::PROT_READ | libc::PROT_WRITE) as u64;
    let memory = |number: libc::c_long, args| {
        cx.domain.memory_call(&Syscall {
            number: number as u64,
            args,
        })
    };
    let flags = anonymous & !(libc::MAP_POPULATE as u64);
    let start = match memory(libc::SYS_mmap, [address, len, both, flags, u64::MAX, 0]) {
        Some(value) if value >= 0 => value as u64,
        Some(errno) => return Ok(Reply::Value(errno)),
        None => return Err(libc::ENODEV),
    };
    let mut done = 0;
    while done < len {
        let span = cx.memory.span(start + done, len - done, true)?;
        match sys::transfer(Transfer::Pread, fd.as_fd(), span.first(SLICE), offset + done) {
            Ok(0) => break,
            Ok(n) => done += n as u64,
            Err(libc::EINTR) => {}
            Err(errno) => {
                let _ = memory(libc::SYS_munmap, [start, len, 0, 0, 0, 0]);
                return Err(errno);
            }
        }
        // The map stays: its domain is about to be reset or to go, and giving it back takes long.
        cx.going_on()?;
    }
    if protection != both {
        let _ = memory(libc::SYS_mprotect, [start, len, protection, 0, 0, 0]);
    }
    Ok(Reply::Value(start as i64))
}
