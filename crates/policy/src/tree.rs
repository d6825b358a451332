//! The domain's file tree: host directories under guest names, and how a guest's path becomes a directory and a rest.

use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::grant::PolicyError;
use crate::memory::PATH_MAX;
use crate::place::Place;
use crate::sys::{self, Outcome};
use crate::table::Held;
use ringfence_core::Rights;

/// `statfs` types of file systems that are doors to the kernel rather than files.
const DOORS: [i64; 5] = [
    0x9FA0,      // procfs: /proc/self/mem writes into read-only text
    0x6265_6572, // sysfs
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x6367_7270, // cgroup2
];

/// Symbolic links that one path may lead over where the kernel does not follow them, as many as the kernel follows, and components that
/// it may have on the way.
const LINKS: usize = 40;
const COMPONENTS: usize = 256;

/// A path one step further.
struct Expanded {
    path: Vec<u8>,
    /// A link was replaced, rather than each `..` resolved.
    by_link: bool,
}

/// A host directory in the domain's tree.
#[derive(Debug)]
pub struct Mount {
    /// Components of its guest name.
    guest: Vec<Vec<u8>>,
    fd: Held,
    /// What may be done below it.
    pub rights: Rights,
}

/// All directories of a domain.
#[derive(Debug, Default)]
pub struct Tree {
    mounts: Vec<Mount>,
}

/// Components of a path: no empty ones, no `.`.
fn components(path: &[u8]) -> Vec<&[u8]> {
    path.split(|b| *b == b'/')
        .filter(|c| !c.is_empty() && *c != b".")
        .collect()
}

/// `..` taken literally, never above the root.
fn collapse<'a>(path: &[&'a [u8]]) -> Vec<&'a [u8]> {
    let mut out: Vec<&[u8]> = Vec::new();
    for c in path {
        if *c == b".." {
            out.pop();
        } else {
            out.push(c);
        }
    }
    out
}

impl Mount {
    /// Opens a host directory.
    pub fn open(host: &Path, guest: &str, rights: Rights) -> Result<Mount, PolicyError> {
        let fail = |errno: i32| PolicyError::Directory {
            path: host.to_owned(),
            source: std::io::Error::from_raw_os_error(errno),
        };
        if !guest.starts_with('/') {
            return Err(PolicyError::GuestName {
                name: guest.to_owned(),
            });
        }
        let name = CString::new(host.as_os_str().as_bytes()).map_err(|_| fail(libc::EINVAL))?;
        let fd = sys::open_root(&name).map_err(fail)?;
        let kind = sys::file_system(fd.as_fd()).map_err(fail)?;
        if DOORS.contains(&kind) {
            return Err(PolicyError::KernelFiles {
                path: host.to_owned(),
            });
        }
        let guest = components(guest.as_bytes());
        let guest = collapse(&guest).into_iter().map(<[u8]>::to_vec).collect();
        let fd = Held::new(fd).map_err(fail)?;
        Ok(Mount { guest, fd, rights })
    }

    /// The directory. `EBADF`: the host has closed it.
    pub fn fd(&self) -> Outcome<BorrowedFd<'_>> {
        self.fd.fd()
    }

    /// Its guest name.
    pub fn guest_name(&self) -> Vec<u8> {
        join(self.guest.iter().map(Vec::as_slice))
    }
}

fn join<'a>(parts: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut out = Vec::new();
    for part in parts {
        out.push(b'/');
        out.extend_from_slice(part);
    }
    if out.is_empty() {
        out.push(b'/');
    }
    out
}

/// `path` seen from the directory `from`, absolute and without `.`; `..` stays.
pub fn absolute(from: &[u8], path: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    if !path.starts_with(b"/") {
        whole.extend_from_slice(from);
        whole.push(b'/');
    }
    whole.extend_from_slice(path);
    let mut out = join(components(&whole).into_iter());
    // A trailing slash demands a directory.
    let ends = path.ends_with(b"/") || path.ends_with(b"/.");
    if ends && out.len() > 1 {
        out.push(b'/');
    }
    out
}

impl Tree {
    /// Adds a directory.
    pub fn add(&mut self, mount: Mount) {
        self.mounts.push(mount);
    }

    /// A directory for reading that is also one for writing, or lies below one, by their numbers. It could be written under the
    /// other's name, or after a rename above it. What counts is the directory, by device and inode and by its place in the file
    /// system, not the names and mounts by which the host knows it.
    pub fn writable_too(&self) -> Outcome<Option<(usize, usize)>> {
        // Device and inode.
        let identity =
            |fd: BorrowedFd<'_>| sys::stat(fd).map(|s| <[u8; 16]>::try_from(&s[..16]).unwrap_or_default());
        let mut writable = Vec::new();
        for (n, mount) in self.mounts.iter().enumerate() {
            if mount.rights == Rights::Write {
                writable.push((identity(mount.fd()?)?, Place::of(mount.fd()?), n));
            }
        }
        for (n, mount) in self.mounts.iter().enumerate() {
            if mount.rights == Rights::Write || writable.is_empty() {
                continue;
            }
            if let Some(place) = Place::of(mount.fd()?)
                && let Some((.., other)) = writable
                    .iter()
                    .find(|w| w.1.as_ref().is_some_and(|other| other.holds(&place)))
            {
                return Ok(Some((n, *other)));
            }
            let (mut here, mut above) = (identity(mount.fd()?)?, sys::parent(mount.fd()?)?);
            loop {
                if let Some((.., other)) = writable.iter().find(|w| w.0 == here) {
                    return Ok(Some((n, *other)));
                }
                let next = identity(above.as_fd())?;
                if next == here {
                    break;
                }
                (here, above) = (next, sys::parent(above.as_fd())?);
            }
        }
        Ok(None)
    }

    /// Whether two directories, by their numbers, are the same one.
    pub fn same(&self, a: usize, b: usize) -> bool {
        let identity = |n: usize| {
            self.mounts[n]
                .fd()
                .and_then(sys::stat)
                .ok()
                .and_then(|s| <[u8; 16]>::try_from(&s[..16]).ok())
        };
        identity(a).is_some() && identity(a) == identity(b)
    }

    /// The first directory's guest name: where a program starts.
    pub fn start(&self) -> Vec<u8> {
        self.mounts
            .first()
            .map_or_else(|| b"/".to_vec(), Mount::guest_name)
    }

    /// Calls `f` with the directory that `path` (absolute) lies in and the rest of the path below it. The kernel decides
    /// whether that rest stays below, and says `EXDEV` if it does not. Then links are taken one by one as names in this tree, as after
    /// `chroot`, and each path that comes of it is looked up likewise: below one directory, by the kernel.
    pub fn with<T>(&self, path: &[u8], mut f: impl FnMut(&Mount, CString) -> Outcome<T>) -> Outcome<T> {
        let parts = components(path);
        let fixed = parts.iter().position(|c| *c == b"..").unwrap_or(parts.len());
        let slash = path.len() > 1 && path.ends_with(b"/");
        let mut attempt = |parts: &[&[u8]], fixed: usize| match self.find(&parts[..fixed]) {
            Some(mount) => {
                let rest = &parts[mount.guest.len()..];
                let mut name = rest.join(&b'/');
                if name.is_empty() {
                    name.push(b'.');
                }
                if slash {
                    name.push(b'/');
                }
                f(mount, CString::new(name).map_err(|_| libc::EINVAL)?)
            }
            None => Err(libc::ENOENT),
        };
        match attempt(&parts, fixed) {
            Err(libc::EXDEV) => {}
            Err(libc::ENOENT) if fixed < parts.len() => {
                let literal = collapse(&parts);
                match attempt(&literal, literal.len()) {
                    Err(libc::EXDEV) => {}
                    other => return other,
                }
            }
            other => return other,
        }
        let mut path = path.to_vec();
        let mut outside = libc::ENOENT;
        for _ in 0..LINKS {
            // Nothing that leads elsewhere: another file system, say.
            let next = self.expanded(&path)?.ok_or(libc::EACCES)?;
            path = next.path;
            let parts = components(&path);
            let fixed = parts.iter().position(|c| *c == b"..").unwrap_or(parts.len());
            // Out of all that was granted: a name that is not there, or a link that is, and leads to none.
            if next.by_link {
                outside = libc::EACCES;
            }
            self.find(&parts[..fixed]).ok_or(outside)?;
            match attempt(&parts, fixed) {
                Err(libc::EXDEV) => {}
                other => return other,
            }
        }
        Err(libc::ELOOP)
    }

    /// `path` with its first symbolic link replaced by what that says. Without one, or if only the last name is one behind a `..`: with
    /// each `..` resolved. `None` if there is nothing to replace.
    fn expanded(&self, path: &[u8]) -> Outcome<Option<Expanded>> {
        let parts = components(path);
        if parts.len() > COMPONENTS {
            return Err(libc::ELOOP);
        }
        let mut done: Vec<&[u8]> = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            if *part == b".." {
                done.pop();
                continue;
            }
            done.push(part);
            // The `..` may have been what led out, and the last link one that is not to be followed.
            if at + 1 == parts.len() && done.len() < parts.len() {
                break;
            }
            if let Some(text) = self.link(&done) {
                done.pop();
                let from = join(done.into_iter());
                let rest = parts[at + 1..].iter().copied();
                let whole: Vec<&[u8]> = std::iter::once(&text[..]).chain(rest).collect();
                let path = absolute(&from, &whole.join(&b'/'));
                return if path.len() < PATH_MAX {
                    Ok(Some(Expanded { path, by_link: true }))
                } else {
                    Err(libc::ENAMETOOLONG)
                };
            }
        }
        Ok((done.len() < parts.len()).then(|| Expanded {
            path: join(done.into_iter()),
            by_link: false,
        }))
    }

    /// What the symbolic link of this name says, if it is one.
    fn link(&self, parts: &[&[u8]]) -> Option<Vec<u8>> {
        let mount = self.find(parts)?;
        let name = CString::new(parts[mount.guest.len()..].join(&b'/')).ok()?;
        let fd = sys::open_beneath(mount.fd().ok()?, &name, libc::O_PATH | libc::O_NOFOLLOW, 0).ok()?;
        sys::read_link(fd.as_fd(), c"").ok()
    }

    fn find(&self, path: &[&[u8]]) -> Option<&Mount> {
        self.mounts
            .iter()
            .filter(|m| m.guest.len() <= path.len() && m.guest.iter().zip(path).all(|(a, b)| a == b))
            .max_by_key(|m| m.guest.len())
    }

    /// Whether `path` is above some directory of the tree, and so has to look like one itself.
    pub fn is_above(&self, path: &[u8]) -> bool {
        let all = components(path);
        let parts = collapse(&all);
        self.mounts
            .iter()
            .any(|m| m.guest.len() > parts.len() && parts.iter().zip(&m.guest).all(|(a, b)| a == b))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_names() {
        assert_eq!(absolute(b"/a/b", b"c/./d"), b"/a/b/c/d");
        assert_eq!(absolute(b"/a/b", b"../c"), b"/a/b/../c");
        assert_eq!(absolute(b"/a", b"/x//y/"), b"/x/y/");
        assert_eq!(absolute(b"/", b"."), b"/");
    }

    #[test]
    fn the_longest_name_wins_and_dots_do_not_fool_it() {
        let dir = std::env::temp_dir();
        let mut tree = Tree::default();
        tree.add(Mount::open(&dir, "/", Rights::Read).unwrap());
        tree.add(Mount::open(&dir, "/data/deep", Rights::Write).unwrap());
        let seen = |path: &[u8]| {
            tree.with(path, |m, rest| Ok((m.rights, rest.into_bytes())))
                .map(|(r, n)| (r, String::from_utf8(n).unwrap()))
        };
        assert_eq!(seen(b"/data/deep/x/"), Ok((Rights::Write, "x/".into())));
        assert_eq!(seen(b"/data/deep"), Ok((Rights::Write, ".".into())));
        assert_eq!(seen(b"/data/deeper"), Ok((Rights::Read, "data/deeper".into())));
        assert_eq!(seen(b"/data/deep/../x"), Ok((Rights::Write, "../x".into())));
        assert!(tree.is_above(b"/data") && !tree.is_above(b"/data/deep"));
    }

    #[test]
    fn kernel_files_are_refused() {
        assert!(matches!(
            Mount::open(Path::new("/proc/self"), "/p", Rights::Read),
            Err(PolicyError::KernelFiles { .. })
        ));
        assert!(matches!(
            Mount::open(Path::new("/"), "relative", Rights::Read),
            Err(PolicyError::GuestName { .. })
        ));
    }
}
