//! `inotify`: what happens to files and directories that are granted, and to names in them.
//!
//! The kernel's own, on what a name below a granted directory stands for when it is added. It tells of names that a listing would tell
//! of too, and when: so it needs clocks. A directory that is moved away stays watched, as one that is open stays open.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::calls::context::Context;
use crate::calls::paths;
use crate::sys::{Outcome, events};
use crate::table::{Held, Kind};

/// Most descriptors of this kind in a domain: the kernel has 128 for all programs of a user.
const SETS: usize = 8;

/// Most names that one of them watches: added, and not removed by the domain.
const NAMES: usize = 1024;

pub(super) fn create(cx: Context<'_>, number: libc::c_long) -> Outcome {
    cx.clocks()?;
    let flags = if number == libc::SYS_inotify_init1 {
        cx.args[0] as i32
    } else {
        0
    };
    if flags & !(libc::IN_CLOEXEC | libc::IN_NONBLOCK) != 0 {
        return Err(libc::EINVAL);
    }
    if cx.state.table.count(|open| matches!(open, Kind::Watch(..))) >= SETS {
        return Err(libc::EMFILE);
    }
    let nonblocking = AtomicBool::new(flags & libc::IN_NONBLOCK != 0);
    let open = Kind::Watch(Held::new(events::watch()?)?, nonblocking, AtomicUsize::new(0));
    cx.state
        .table
        .add(Arc::new(open), 0, flags & libc::IN_CLOEXEC != 0)
}

pub(super) fn add(cx: Context<'_>) -> Outcome {
    let [_, path, mask, ..] = cx.args;
    let mask = mask as u32;
    let open = cx.open(0)?;
    let Kind::Watch(fd, _, names) = &*open else {
        return Err(libc::EINVAL);
    };
    let file = paths::watched(cx, path, mask & libc::IN_DONT_FOLLOW == 0)?;
    let set = fd.fd()?;
    if names.fetch_add(1, Ordering::Relaxed) >= NAMES {
        names.fetch_sub(1, Ordering::Relaxed);
        return Err(libc::ENOSPC);
    }
    // The name is looked up already.
    let mask = mask & !libc::IN_DONT_FOLLOW;
    events::add_watch(set, file.as_fd(), mask).inspect_err(|_| {
        names.fetch_sub(1, Ordering::Relaxed);
    })
}

pub(super) fn remove(cx: Context<'_>) -> Outcome {
    let open = cx.open(0)?;
    let Kind::Watch(fd, _, names) = &*open else {
        return Err(libc::EINVAL);
    };
    let done = events::remove_watch(fd.fd()?, cx.args[1] as i32)?;
    names.fetch_sub(1, Ordering::Relaxed);
    Ok(done)
}
