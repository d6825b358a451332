//! `sendfile` and `copy_file_range`: bytes that the kernel moves between two descriptors, in slices.

use crate::calls::context::Context;
use crate::calls::transfer::counted;
use crate::slices::SLICE;
use crate::sys::{self, Outcome};
use crate::table::{File, Kind};

/// A position that the domain keeps, if it keeps one: then the descriptor's own stays as it is.
fn position(cx: Context<'_>, pointer: u64) -> Outcome<Option<i64>> {
    match pointer as u32 {
        0 => Ok(None),
        _ => Ok(Some(i64::from_ne_bytes(cx.memory.get(pointer)?))),
    }
}

fn put_position(cx: Context<'_>, pointer: u64, position: Option<i64>) -> Outcome<()> {
    position.map_or(Ok(()), |at| cx.memory.put(pointer, &at.to_ne_bytes()))
}

/// Moves `len` bytes by calls that move a slice at most, until one moves nothing, or the call has to end.
fn sliced(cx: Context<'_>, len: u64, mut one: impl FnMut(u64) -> Outcome) -> Outcome {
    let mut done = 0;
    loop {
        match one(SLICE.min(len - done)) {
            Ok(n) => {
                done += n as u64;
                if n == 0 || done == len || cx.going_on().is_err() {
                    return Ok(done as i64);
                }
            }
            Err(errno) if done == 0 => return Err(errno),
            Err(_) => return Ok(done as i64),
        }
    }
}

/// From a file to a file, a pipe or a socket. `EINVAL` tells programs to read and write instead, as it does in Linux.
pub(super) fn send(cx: Context<'_>) -> Outcome {
    let [_, _, pointer, len, ..] = cx.args;
    let (to, from) = (cx.open(0)?, cx.open(1)?);
    let Kind::File(File { fd: from, .. }) = &*from else {
        return Err(libc::EINVAL);
    };
    let mut at = position(cx, pointer)?;
    let from = from.fd()?;
    let done = match &*to {
        Kind::File(file) => sliced(cx, len, |n| {
            cx.write_to_disk(|| {
                counted(cx.state, file, n, None, |to, may| {
                    sys::copy::send(to, from, at.as_mut(), may)
                })
            })
        }),
        Kind::Pipe(fd, _) | Kind::Socket(fd, _) => sys::quietly(|| {
            sliced(cx, len, |n| {
                loop {
                    match sys::copy::send(fd.fd()?, from, at.as_mut(), n) {
                        Err(libc::EAGAIN) if to.waits() => cx.ready(fd.fd()?, libc::POLLOUT)?,
                        other => return other,
                    }
                }
            })
        }),
        _ => Err(libc::EINVAL),
    }?;
    put_position(cx, pointer, at)?;
    Ok(done)
}

/// From a file to a file.
pub(super) fn range(cx: Context<'_>) -> Outcome {
    let [_, from_at, _, to_at, len, flags] = cx.args;
    let (from, to) = (cx.open(0)?, cx.open(2)?);
    let (Kind::File(from), Kind::File(to)) = (&*from, &*to) else {
        let directory = |open: &Kind| matches!(open, Kind::Directory { .. });
        return Err(if directory(&from) || directory(&to) {
            libc::EISDIR
        } else {
            libc::EINVAL
        });
    };
    if flags as u32 != 0 {
        return Err(libc::EINVAL);
    }
    let (mut read, mut written) = (position(cx, from_at)?, position(cx, to_at)?);
    let done = sliced(cx, len, |n| {
        cx.write_to_disk(|| {
            let at = written.map(|at| at as u64);
            counted(cx.state, to, n, at, |to, may| {
                sys::copy::range((from.fd.fd()?, read.as_mut()), (to, written.as_mut()), may)
            })
        })
    })?;
    put_position(cx, from_at, read)?;
    put_position(cx, to_at, written)?;
    Ok(done)
}
