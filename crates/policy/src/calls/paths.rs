//! Calls on names.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::{Arc, PoisonError};

use crate::calls::context::Context;
use crate::calls::files;
use crate::device::Device;
use crate::disk::BLOCK;
use crate::memory::PATH_MAX;
use crate::sys::{self, Named, Outcome, Plain};
use crate::table::{File, Held, Kind};
use crate::tree::{Mount, absolute};
use ringfence_core::Rights;

const AT_FDCWD: u64 = libc::AT_FDCWD as u64;

/// `O_` flags that a domain may use. `O_PATH`, `O_DIRECT` and the rest are of no use or too much.
const OPEN_FLAGS: i32 = libc::O_ACCMODE
    | libc::O_CREAT
    | libc::O_EXCL
    | libc::O_TRUNC
    | libc::O_APPEND
    | libc::O_DIRECTORY
    | libc::O_NOFOLLOW
    | libc::O_SYNC
    | libc::O_DSYNC;

impl Context<'_> {
    /// The absolute guest name of the path at `pointer`, seen from `directory`.
    fn name(&self, directory: u64, pointer: u64) -> Outcome<Vec<u8>> {
        let path = self.memory.path(pointer)?;
        if path.is_empty() {
            return Err(libc::ENOENT);
        }
        let name = self.name_of(directory, &path)?;
        // Of those above the granted directories the kernel never sees how long they have become.
        if name.len() >= PATH_MAX {
            return Err(libc::ENAMETOOLONG);
        }
        Ok(name)
    }

    fn name_of(&self, directory: u64, path: &[u8]) -> Outcome<Vec<u8>> {
        if path.starts_with(b"/") {
            return Ok(absolute(b"/", path));
        }
        if directory as i32 == libc::AT_FDCWD {
            let here = self
                .state
                .directory
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            return Ok(absolute(&here, path));
        }
        match &*self.state.table.get(directory)? {
            Kind::Directory { name, .. } => Ok(absolute(name, path)),
            _ => Err(libc::ENOTDIR),
        }
    }

    /// The device that `name` is, if it is one.
    fn device(&self, name: &[u8]) -> Option<Device> {
        Device::named(name, self.state.policy.randomness)
    }

    /// What `name` leads to, opened for looking only.
    fn look(&self, name: &[u8], follow: bool) -> Outcome<(OwnedFd, Rights)> {
        let flags = libc::O_PATH | if follow { 0 } else { libc::O_NOFOLLOW };
        self.state.tree.with(name, |mount, rest| {
            sys::open_beneath(mount.fd()?, &rest, flags, 0).map(|fd| (fd, mount.rights))
        })
    }

    /// Calls `f` with the directory that holds the last component of `name`, and that component.
    fn parent<T>(&self, name: &[u8], mut f: impl FnMut(&Mount, OwnedFd, &CStr) -> Outcome<T>) -> Outcome<T> {
        self.state.tree.with(name, |mount, rest| {
            let text = rest.as_bytes();
            let slash = text.ends_with(b"/");
            let text = if slash { &text[..text.len() - 1] } else { text };
            let (directory, last) = match text.iter().rposition(|b| *b == b'/') {
                Some(at) => (&text[..at], &text[at + 1..]),
                None => (&b"."[..], text),
            };
            if last == b"." || last == b".." {
                // The directory itself cannot be made, removed or renamed from below.
                return Err(if last == b".." { libc::EXDEV } else { libc::EBUSY });
            }
            let mut last = last.to_vec();
            if slash {
                last.push(b'/');
            }
            let c = |bytes: &[u8]| CString::new(bytes).map_err(|_| libc::EINVAL);
            let fd = sys::open_beneath(mount.fd()?, &c(directory)?, libc::O_PATH | libc::O_DIRECTORY, 0)?;
            f(mount, fd, &c(&last)?)
        })
    }

    fn created_mode(&self, mode: u64) -> u32 {
        let umask = *self.state.umask.lock().unwrap_or_else(PoisonError::into_inner);
        mode as u32 & 0o777 & !umask
    }
}

fn need_write(rights: Rights) -> Outcome<()> {
    if rights == Rights::Write {
        Ok(())
    } else {
        Err(libc::EROFS)
    }
}

fn kind_of(fd: &OwnedFd) -> Outcome<u32> {
    let bytes = sys::stat(fd.as_fd())?;
    Ok(u32::from_ne_bytes([bytes[24], bytes[25], bytes[26], bytes[27]]) & libc::S_IFMT)
}

/// Only what is no device may be opened: opening one can do things by itself.
fn harmless(kind: u32) -> Outcome<()> {
    match kind {
        libc::S_IFCHR | libc::S_IFBLK | libc::S_IFSOCK => Err(libc::EACCES),
        _ => Ok(()),
    }
}

pub(super) fn open(cx: Context<'_>, directory: u64, path: u64, flags: u64, mode: u64) -> Outcome {
    let name = cx.name(directory, path)?;
    let wanted = flags as i32;
    let mut flags = wanted & OPEN_FLAGS;
    let nameless = wanted & libc::O_TMPFILE == libc::O_TMPFILE;
    if nameless {
        if flags & libc::O_ACCMODE == libc::O_RDONLY || flags & libc::O_CREAT != 0 {
            return Err(libc::EINVAL);
        }
        flags |= libc::O_TMPFILE;
    }
    if let Some(device) = cx.device(&name) {
        return if flags & libc::O_DIRECTORY != 0 {
            Err(libc::ENOTDIR)
        } else if flags & (libc::O_CREAT | libc::O_EXCL) == libc::O_CREAT | libc::O_EXCL {
            Err(libc::EEXIST)
        } else {
            let open = Kind::Device(device, flags & libc::O_ACCMODE);
            cx.state
                .table
                .add(Arc::new(open), 0, wanted & libc::O_CLOEXEC != 0)
        };
    }
    let writes = flags & libc::O_ACCMODE != libc::O_RDONLY || flags & (libc::O_CREAT | libc::O_TRUNC) != 0;
    let follow = flags & (libc::O_NOFOLLOW | libc::O_EXCL) == 0;
    let mode = if flags & libc::O_CREAT != 0 || nameless {
        cx.created_mode(mode)
    } else {
        0
    };
    let result = cx.state.tree.with(&name, |mount, rest| {
        let look = libc::O_PATH | if follow { 0 } else { libc::O_NOFOLLOW };
        let mut made = nameless;
        match sys::open_beneath(mount.fd()?, &rest, look, 0) {
            Ok(fd) => harmless(kind_of(&fd)?)?,
            Err(libc::ENOENT) if flags & libc::O_CREAT != 0 => made = true,
            Err(e) => return Err(e),
        }
        if writes {
            need_write(mount.rights)?;
        }
        // A pipe that somebody put there must not hold us up; checked again below, for names can change.
        let open = || {
            sys::open_beneath(
                mount.fd()?,
                &rest,
                flags | libc::O_NONBLOCK | libc::O_NOCTTY,
                mode,
            )
        };
        let fd = if made { cx.on_disk(BLOCK, open)? } else { open()? };
        Ok((fd, mount.rights == Rights::Write))
    });
    let (fd, writable) = match result {
        // `O_CREAT` on a read-only directory of a file that is there and is to be read only.
        Err(libc::EROFS) if flags & (libc::O_ACCMODE | libc::O_TRUNC | libc::O_EXCL) == 0 => {
            let plain = u64::from((wanted & !libc::O_CREAT) as u32);
            return open(cx, directory, path, plain, 0);
        }
        other => other?,
    };
    let kind = kind_of(&fd)?;
    harmless(kind)?;
    let fd = Held::new(fd)?;
    let open = match kind {
        libc::S_IFDIR => Kind::Directory { fd, name, writable },
        libc::S_IFIFO => Kind::Pipe(fd, (wanted & libc::O_NONBLOCK != 0).into()),
        _ => Kind::File(File::new(fd, writable, flags & libc::O_APPEND != 0)),
    };
    cx.state
        .table
        .add(Arc::new(open), 0, wanted & libc::O_CLOEXEC != 0)
}

/// A directory that exists in the guest's tree only, above those that were granted.
fn synthetic() -> [u8; 144] {
    let mut bytes = [0; 144];
    bytes[8..16].copy_from_slice(&1u64.to_ne_bytes());
    bytes[16..24].copy_from_slice(&2u64.to_ne_bytes());
    bytes[24..28].copy_from_slice(&(libc::S_IFDIR | 0o555).to_ne_bytes());
    bytes[56..64].copy_from_slice(&4096u64.to_ne_bytes());
    bytes
}

pub(super) fn stat(cx: Context<'_>, number: libc::c_long) -> Outcome {
    let (directory, path, out, follow) = match number {
        libc::SYS_stat => (AT_FDCWD, cx.args[0], cx.args[1], true),
        libc::SYS_lstat => (AT_FDCWD, cx.args[0], cx.args[1], false),
        _ => {
            let flags = cx.args[3] as i32;
            if flags & libc::AT_EMPTY_PATH != 0 && empty(cx, cx.args[1])? {
                let open = cx.state.table.get(cx.args[0])?;
                return cx.put_status(cx.args[2], files::stat_of(&open)?);
            }
            (
                cx.args[0],
                cx.args[1],
                cx.args[2],
                flags & libc::AT_SYMLINK_NOFOLLOW == 0,
            )
        }
    };
    let name = cx.name(directory, path)?;
    if let Some(device) = cx.device(&name) {
        return cx.put_status(out, device.stat());
    }
    let bytes = match cx.look(&name, follow) {
        Ok((fd, _)) => sys::stat(fd.as_fd())?,
        Err(libc::ENOENT) if cx.state.tree.is_above(&name) => synthetic(),
        Err(e) => return Err(e),
    };
    cx.put_status(out, bytes)
}

/// Whether a path that may be empty, or null, is.
fn empty(cx: Context<'_>, pointer: u64) -> Outcome<bool> {
    Ok(pointer as u32 == 0 || cx.memory.get::<1>(pointer)? == [0])
}

pub(super) fn statx(cx: Context<'_>) -> Outcome {
    let [directory, path, flags, mask, out, _] = cx.args;
    let flags = flags as i32;
    let mut bytes = if flags & libc::AT_EMPTY_PATH != 0 && empty(cx, path)? {
        let open = cx.state.table.get(directory)?;
        match (&*open, open.host()?) {
            (Kind::File(_) | Kind::Directory { .. } | Kind::Pipe(..), Some(fd))
            | (Kind::Socket(..) | Kind::Datagram(..), Some(fd)) => sys::statx(fd, mask & 0xFFFF_FFFF)?,
            // Libraries ask the older call then.
            _ => return Err(libc::ENOSYS),
        }
    } else {
        let name = cx.name(directory, path)?;
        if cx.device(&name).is_some() {
            // As for every descriptor that is none of the host's.
            return Err(libc::ENOSYS);
        }
        let (fd, _) = cx.look(&name, flags & libc::AT_SYMLINK_NOFOLLOW == 0)?;
        sys::statx(fd.as_fd(), mask & 0xFFFF_FFFF)?
    };
    if cx.clocks().is_err() {
        // Access, birth, change and modification.
        bytes[64..128].fill(0);
    }
    cx.memory.put(out, &bytes)?;
    Ok(0)
}

/// How large and how full the file system of a granted directory is.
pub(super) fn file_system(cx: Context<'_>) -> Outcome {
    let (fd, _) = cx.look(&cx.name(AT_FDCWD, cx.args[0])?, true)?;
    cx.memory.put(cx.args[1], &sys::file_system_status(fd.as_fd())?)?;
    Ok(0)
}

pub(super) fn access(cx: Context<'_>, number: libc::c_long) -> Outcome {
    let (directory, path, mode) = match number {
        libc::SYS_access => (AT_FDCWD, cx.args[0], cx.args[1]),
        _ => (cx.args[0], cx.args[1], cx.args[2]),
    };
    let name = cx.name(directory, path)?;
    if cx.device(&name).is_some() {
        return if mode & libc::X_OK as u64 == 0 {
            Ok(0)
        } else {
            Err(libc::EACCES)
        };
    }
    let (fd, rights) = match cx.look(&name, true) {
        Err(libc::ENOENT) if cx.state.tree.is_above(&name) => {
            return if mode & libc::W_OK as u64 == 0 {
                Ok(0)
            } else {
                Err(libc::EROFS)
            };
        }
        other => other?,
    };
    if mode & libc::W_OK as u64 != 0 {
        need_write(rights)?;
    }
    sys::named(
        Named::Access,
        fd.as_fd(),
        c"",
        mode & 7,
        libc::AT_EMPTY_PATH as u64,
    )
}

pub(super) fn make_directory(cx: Context<'_>, number: libc::c_long) -> Outcome {
    let (directory, path, mode) = match number {
        libc::SYS_mkdir => (AT_FDCWD, cx.args[0], cx.args[1]),
        _ => (cx.args[0], cx.args[1], cx.args[2]),
    };
    let name = cx.name(directory, path)?;
    let mode = u64::from(cx.created_mode(mode));
    let result = cx.parent(&name, |mount, dir, last| {
        need_write(mount.rights)?;
        cx.on_disk(BLOCK, || sys::named(Named::Mkdir, dir.as_fd(), last, mode, 0))
    });
    match result {
        // What is there is there, whoever may write: `mkdir -p` depends on it.
        Err(libc::EBUSY | libc::EROFS | libc::ENOENT)
            if cx.look(&name, false).is_ok() || cx.state.tree.is_above(&name) =>
        {
            Err(libc::EEXIST)
        }
        other => other,
    }
}

pub(super) fn remove(cx: Context<'_>, number: libc::c_long) -> Outcome {
    let (directory, path, flags) = match number {
        libc::SYS_rmdir => (AT_FDCWD, cx.args[0], libc::AT_REMOVEDIR as u64),
        libc::SYS_unlink => (AT_FDCWD, cx.args[0], 0),
        _ => (cx.args[0], cx.args[1], cx.args[2]),
    };
    let name = cx.name(directory, path)?;
    cx.parent(&name, |mount, dir, last| {
        need_write(mount.rights)?;
        sys::named(
            Named::Unlink,
            dir.as_fd(),
            last,
            flags & libc::AT_REMOVEDIR as u64,
            0,
        )
    })
}

/// Calls `f` with the parents of both names.
fn with_two(
    cx: Context<'_>,
    from: &[u8],
    to: &[u8],
    mut f: impl FnMut((&OwnedFd, &CStr), (&OwnedFd, &CStr)) -> Outcome,
) -> Outcome {
    cx.parent(from, |mount, from_dir, from_last| {
        need_write(mount.rights)?;
        cx.parent(to, |mount, to_dir, to_last| {
            need_write(mount.rights)?;
            // That they lie on two file systems says nothing about the way to them.
            match f((&from_dir, from_last), (&to_dir, to_last)) {
                Err(libc::EXDEV) => Ok(Err(libc::EXDEV)),
                other => other.map(Ok),
            }
        })
    })?
}

pub(super) fn rename(cx: Context<'_>, number: libc::c_long) -> Outcome {
    let [a, b, c, d, e, _] = cx.args;
    let (from, to, flags) = match number {
        libc::SYS_rename => (cx.name(AT_FDCWD, a)?, cx.name(AT_FDCWD, b)?, 0),
        libc::SYS_renameat => (cx.name(a, b)?, cx.name(c, d)?, 0),
        _ => (cx.name(a, b)?, cx.name(c, d)?, e),
    };
    // No whiteouts: those are devices.
    if flags & !u64::from(libc::RENAME_NOREPLACE | libc::RENAME_EXCHANGE) != 0 {
        return Err(libc::EINVAL);
    }
    with_two(cx, &from, &to, |(d1, n1), (d2, n2)| {
        sys::two_names(false, (d1.as_fd(), n1), (d2.as_fd(), n2), flags)
    })
}

pub(super) fn link(cx: Context<'_>, number: libc::c_long) -> Outcome {
    let [a, b, c, d, ..] = cx.args;
    let (from, to) = match number {
        libc::SYS_link => (cx.name(AT_FDCWD, a)?, cx.name(AT_FDCWD, b)?),
        _ => (cx.name(a, b)?, cx.name(c, d)?),
    };
    // Both ends must be writable: a second name in a writable directory would make a read-only file writable.
    with_two(cx, &from, &to, |(d1, n1), (d2, n2)| {
        cx.on_disk(BLOCK, || {
            sys::two_names(true, (d1.as_fd(), n1), (d2.as_fd(), n2), 0)
        })
    })
}

/// The text is anything: it is looked up when somebody follows the link, within what is granted to who does.
pub(super) fn symbolic_link(cx: Context<'_>, number: libc::c_long) -> Outcome {
    let (text, directory, path) = match number {
        libc::SYS_symlink => (cx.args[0], AT_FDCWD, cx.args[1]),
        _ => (cx.args[0], cx.args[1], cx.args[2]),
    };
    let text = CString::new(cx.memory.path(text)?).map_err(|_| libc::EINVAL)?;
    if text.is_empty() {
        return Err(libc::ENOENT);
    }
    let name = cx.name(directory, path)?;
    cx.parent(&name, |mount, dir, last| {
        need_write(mount.rights)?;
        cx.on_disk(BLOCK, || sys::make_link(&text, dir.as_fd(), last))
    })
}

pub(super) fn read_link(cx: Context<'_>, number: libc::c_long) -> Outcome {
    let (directory, path, out, len) = match number {
        libc::SYS_readlink => (AT_FDCWD, cx.args[0], cx.args[1], cx.args[2]),
        _ => (cx.args[0], cx.args[1], cx.args[2], cx.args[3]),
    };
    if len == 0 {
        return Err(libc::EINVAL);
    }
    let name = cx.name(directory, path)?;
    let fd = match cx.look(&name, false) {
        Ok((fd, _)) => fd,
        Err(libc::ENOENT) if cx.state.tree.is_above(&name) => return Err(libc::EINVAL),
        Err(e) => return Err(e),
    };
    // An empty name on a descriptor that is no link gives ENOENT; programs expect EINVAL.
    let text =
        sys::read_link(fd.as_fd(), c"").map_err(|e| if e == libc::ENOENT { libc::EINVAL } else { e })?;
    let n = text.len().min(len as usize);
    cx.memory.put(out, &text[..n])?;
    Ok(n as i64)
}

/// The file that `name` leads to, opened so that it can be changed.
fn changeable(cx: Context<'_>, name: &[u8], flags: i32) -> Outcome<OwnedFd> {
    cx.state.tree.with(name, |mount, rest| {
        let look = sys::open_beneath(mount.fd()?, &rest, libc::O_PATH, 0)?;
        harmless(kind_of(&look)?)?;
        need_write(mount.rights)?;
        sys::open_beneath(mount.fd()?, &rest, flags | libc::O_NONBLOCK | libc::O_NOCTTY, 0)
    })
}

pub(super) fn change_mode(cx: Context<'_>, number: libc::c_long) -> Outcome {
    let (directory, path, mode) = match number {
        libc::SYS_chmod => (AT_FDCWD, cx.args[0], cx.args[1]),
        _ => (cx.args[0], cx.args[1], cx.args[2]),
    };
    let fd = changeable(cx, &cx.name(directory, path)?, libc::O_RDONLY)?;
    sys::plain(Plain::Fchmod, [fd.as_raw_fd() as u64, mode & 0o777, 0, 0])
}

pub(super) fn truncate(cx: Context<'_>) -> Outcome {
    let fd = changeable(cx, &cx.name(AT_FDCWD, cx.args[0])?, libc::O_WRONLY)?;
    files::resize(cx, fd.as_fd(), cx.args[1])
}

pub(super) fn set_times(cx: Context<'_>) -> Outcome {
    let [directory, path, times, flags, ..] = cx.args;
    let times = match times as u32 {
        0 => None,
        _ => Some(cx.memory.words::<4>(times)?.map(|w| w as i64)),
    };
    if path as u32 == 0 {
        return match &*cx.state.table.get(directory)? {
            Kind::File(File { writable: false, .. }) | Kind::Directory { writable: false, .. } => {
                Err(libc::EROFS)
            }
            Kind::File(File { fd, .. }) | Kind::Directory { fd, .. } => sys::set_times(fd.fd()?, times),
            _ => Err(libc::EINVAL),
        };
    }
    let name = cx.name(directory, path)?;
    let (fd, rights) = cx.look(&name, flags & libc::AT_SYMLINK_NOFOLLOW as u64 == 0)?;
    need_write(rights)?;
    sys::set_times(fd.as_fd(), times)
}

/// `chown` and its kin: nobody gets another owner, and what is asked to stay as it is may stay so.
pub(super) fn change_owner(cx: Context<'_>, number: libc::c_long) -> Outcome {
    let [first, second, third, fourth, flags, _] = cx.args;
    let by_path = |directory, path, follow| -> Outcome<[u8; 144]> {
        let (fd, rights) = cx.look(&cx.name(directory, path)?, follow)?;
        need_write(rights)?;
        sys::stat(fd.as_fd())
    };
    let (status, owner, group) = match number {
        libc::SYS_fchown => {
            let open = cx.open(0)?;
            (sys::stat(files::changeable(&open)?)?, second, third)
        }
        libc::SYS_fchownat => {
            let follow = flags & libc::AT_SYMLINK_NOFOLLOW as u64 == 0;
            (by_path(first, second, follow)?, third, fourth)
        }
        _ => (
            by_path(AT_FDCWD, first, number == libc::SYS_chown)?,
            second,
            third,
        ),
    };
    let same = |wanted: u64, at: usize| {
        wanted as u32 == u32::MAX || status[at..at + 4] == (wanted as u32).to_ne_bytes()
    };
    // `st_uid` and `st_gid`.
    if same(owner, 28) && same(group, 32) {
        Ok(0)
    } else {
        Err(libc::EPERM)
    }
}

/// What a name stands for that is to be watched: a file or a directory.
pub(super) fn watched(cx: Context<'_>, path: u64, follow: bool) -> Outcome<OwnedFd> {
    let (fd, _) = cx.look(&cx.name(AT_FDCWD, path)?, follow)?;
    match kind_of(&fd)? {
        libc::S_IFREG | libc::S_IFDIR => Ok(fd),
        _ => Err(libc::EACCES),
    }
}

pub(super) fn change_directory(cx: Context<'_>) -> Outcome {
    let name = cx.name(AT_FDCWD, cx.args[0])?;
    match cx.look(&name, true) {
        Ok((fd, _)) if kind_of(&fd)? == libc::S_IFDIR => {}
        Ok(_) => return Err(libc::ENOTDIR),
        Err(libc::ENOENT) if cx.state.tree.is_above(&name) => {}
        Err(e) => return Err(e),
    }
    set_directory(cx, name);
    Ok(0)
}

pub(super) fn change_directory_to(cx: Context<'_>) -> Outcome {
    match &*cx.state.table.get(cx.args[0])? {
        Kind::Directory { name, .. } => set_directory(cx, name.clone()),
        _ => return Err(libc::ENOTDIR),
    }
    Ok(0)
}

fn set_directory(cx: Context<'_>, name: Vec<u8>) {
    *cx.state.directory.lock().unwrap_or_else(PoisonError::into_inner) = name;
}

pub(super) fn current_directory(cx: Context<'_>) -> Outcome {
    let mut name = cx
        .state
        .directory
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    if name.len() > 1 && name.ends_with(b"/") {
        name.pop();
    }
    name.push(0);
    if (cx.args[1] as usize) < name.len() {
        return Err(libc::ERANGE);
    }
    cx.memory.put(cx.args[0], &name)?;
    Ok(name.len() as i64)
}

pub(super) fn umask(cx: Context<'_>) -> Outcome {
    let mut umask = cx.state.umask.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(i64::from(std::mem::replace(
        &mut *umask,
        cx.args[0] as u32 & 0o777,
    )))
}
