//! `mmap` of files, private and shared, and `msync`. What anonymous memory is, the runtime knows.

use std::os::fd::{AsFd, AsRawFd};

use ringfence_core::FileMap;
use ringfence_core::policy::Syscall;

use crate::calls::context::{Context, Reply};
use crate::device::Device;
use crate::slices::SLICE;
use crate::sys::{self, Outcome, Plain, Transfer};
use crate::table::{File, Kind};

/// Maps of files: shared ones are the file, private ones anonymous memory with a copy of the content.
pub(super) fn map(cx: Context<'_>, call: &Syscall) -> Outcome<Reply> {
    let [address, len, protection, flags, fd, offset] = cx.args;
    if protection & libc::PROT_EXEC as u64 != 0 {
        return Err(libc::EACCES);
    }
    if flags & libc::MAP_ANONYMOUS as u64 != 0 {
        let shared = flags & libc::MAP_TYPE as u64 == libc::MAP_SHARED as u64;
        if shared && cx.state.processes.granted() {
            return share_memory(cx);
        }
        // Shared with the processes that it forks, of which there are none.
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
    let file = match &*open {
        Kind::File(file) => file,
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
    if offset % 4096 != 0 {
        return Err(libc::EINVAL);
    }
    match flags as i32 & libc::MAP_TYPE {
        libc::MAP_PRIVATE => {}
        libc::MAP_SHARED => return share(cx, file),
        libc::MAP_SHARED_VALIDATE if flags & libc::MAP_SYNC as u64 != 0 => return Err(libc::EOPNOTSUPP),
        libc::MAP_SHARED_VALIDATE => return share(cx, file),
        _ => return Err(libc::EINVAL),
    }
    let fd = &file.fd;
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
        match fd
            .fd()
            .and_then(|fd| sys::transfer(Transfer::Pread, fd, span.first(SLICE), offset + done))
        {
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

/// A map that is shared with whoever has the file.
fn share(cx: Context<'_>, file: &File) -> Outcome<Reply> {
    let [address, len, protection, flags, _, offset] = cx.args;
    let fd = file.fd.fd()?;
    let mode = sys::plain(Plain::Fcntl, [fd.as_raw_fd() as u64, libc::F_GETFL as u64, 0, 0])?;
    let writable = file.writable && mode as i32 & libc::O_ACCMODE == libc::O_RDWR;
    let map = FileMap {
        file: fd,
        offset,
        len,
        address,
        rights: protection as i32,
        flags: flags as i32,
        writable,
    };
    // Writing into a hole takes room on disk, and nobody is asked then.
    let holes = if writable { sys::holes(fd, offset, len)? } else { 0 };
    let address = cx.on_disk(holes, || cx.domain.map_file(&map).map(|address| address as i64))?;
    Ok(Reply::Value(address))
}

/// Memory that the processes which the domain makes from now on share with it: a file without a name.
fn share_memory(cx: Context<'_>) -> Outcome<Reply> {
    let [address, len, protection, flags, ..] = cx.args;
    let file = sys::memory_file(len)?;
    let map = FileMap {
        file: file.as_fd(),
        offset: 0,
        len,
        address,
        rights: protection as i32,
        flags: flags as i32,
        writable: true,
    };
    cx.domain
        .map_file(&map)
        .map(|address| Reply::Value(address as i64))
}

/// `msync`: what was written through shared maps goes to the disk. All other memory is the domain's own.
pub(super) fn sync(cx: Context<'_>) -> Outcome {
    let [address, len, flags, ..] = cx.args;
    let len = len.checked_next_multiple_of(4096).ok_or(libc::ENOMEM)?;
    let mut left = cx.memory.span(address, len, false).map_err(|_| libc::ENOMEM)?;
    loop {
        let now = left.first(SLICE);
        sys::sync(now, flags)?;
        left = left.skip(now.len());
        if left.len() == 0 {
            return Ok(0);
        }
        cx.going_on()?;
    }
}
