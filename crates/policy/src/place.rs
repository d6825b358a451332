//! Where a directory lies in its file system, by whatever mount it is reached.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;

/// A directory's place: the file system, and the components of the path from that file system's own root.
#[derive(Debug, PartialEq, Eq)]
pub struct Place {
    system: String,
    path: Vec<Vec<u8>>,
}

impl Place {
    /// Of an open directory. `None` where the system does not tell, as without a procfs.
    pub fn of(fd: BorrowedFd<'_>) -> Option<Place> {
        let number = fd.as_raw_fd();
        let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}")).ok()?;
        let mount = info.lines().find_map(|l| l.strip_prefix("mnt_id:"))?.trim();
        let path = std::fs::read_link(format!("/proc/self/fd/{number}")).ok()?;
        let mounts = std::fs::read("/proc/self/mountinfo").ok()?;
        Place::found(mount, path.as_os_str().as_bytes(), &mounts)
    }

    fn found(mount: &str, path: &[u8], mounts: &[u8]) -> Option<Place> {
        // id, id of the one above, device, root in the file system, where it is mounted
        mounts.split(|b| *b == b'\n').find_map(|line| {
            let mut fields = line.split(|b| *b == b' ');
            if fields.next()? != mount.as_bytes() {
                return None;
            }
            let system = String::from_utf8(fields.nth(1)?.to_vec()).ok()?;
            let (root, point) = (unescaped(fields.next()?), unescaped(fields.next()?));
            let (path, point) = (components(path), components(&point));
            let below = path.strip_prefix(point.as_slice())?;
            Some(Place {
                system,
                path: [components(&root), below.to_vec()].concat(),
            })
        })
    }

    /// Whether `other` is the same directory, or lies below this one.
    pub fn holds(&self, other: &Place) -> bool {
        self.system == other.system && other.path.starts_with(&self.path)
    }
}

fn components(path: &[u8]) -> Vec<Vec<u8>> {
    path.split(|b| *b == b'/')
        .filter(|c| !c.is_empty())
        .map(<[u8]>::to_vec)
        .collect()
}

/// Blanks and their like are written as three octal digits behind a backslash.
fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = field;
    while let [first, tail @ ..] = rest {
        let octal = tail.get(..3).filter(|_| *first == b'\\').and_then(|digits| {
            let digits = std::str::from_utf8(digits).ok()?;
            u8::from_str_radix(digits, 8).ok()
        });
        out.push(octal.unwrap_or(*first));
        rest = if octal.is_some() { &tail[3..] } else { tail };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &[u8] = b"20 1 8:1 / / rw - ext4 /dev/a rw\n\
        31 20 8:1 /srv/a\\040b /mnt/x rw shared:1 - ext4 /dev/a rw\n\
        32 20 8:2 / /mnt/y rw - ext4 /dev/b rw\n";

    #[test]
    fn a_second_mount_is_the_same_place() {
        let found = |mount, path: &str| Place::found(mount, path.as_bytes(), MOUNTS).unwrap();
        let plain = found("20", "/srv/a b/c");
        assert_eq!(plain, found("31", "/mnt/x/c"));
        assert!(found("20", "/srv").holds(&found("31", "/mnt/x")));
        assert!(found("20", "/").holds(&plain));
        assert!(!plain.holds(&found("20", "/srv/a b")));
        assert!(!found("20", "/srv/a").holds(&plain), "by whole names");
        assert!(!found("32", "/mnt/y").holds(&plain), "another file system");
        assert_eq!(Place::found("33", b"/", MOUNTS), None);
        assert_eq!(unescaped(b"a\\134b\\9\\04"), b"a\\b\\9\\04");
    }

    #[test]
    fn this_system_tells() {
        use std::os::fd::AsFd;
        let root = std::fs::File::open("/").unwrap();
        let here = std::fs::File::open(std::env::temp_dir()).unwrap();
        let (root, here) = (Place::of(root.as_fd()).unwrap(), Place::of(here.as_fd()).unwrap());
        assert!(here.holds(&here) && root.holds(&root));
    }
}
