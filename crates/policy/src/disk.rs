//! How much a domain may put on disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::processes::DISK;
use crate::sys::process::Words;

/// What a name, and a write that does not go on where the last one ended, are counted in addition: the disk gives whole blocks.
pub const BLOCK: u64 = 4096;

/// Bytes that a domain has written to files or had allocated for them, and may. They only grow: what is written stays written,
/// whoever removes the file.
#[derive(Debug)]
pub struct Disk {
    used: Used,
    limit: AtomicU64,
}

/// Where it is counted.
#[derive(Debug)]
enum Used {
    Own(AtomicU64),
    /// With all processes of a program.
    Shared(Arc<Words>),
}

impl Used {
    fn get(&self) -> &AtomicU64 {
        match self {
            Used::Own(used) => used,
            Used::Shared(words) => words.get(DISK),
        }
    }
}

impl Disk {
    /// Nothing used so far: by this process, or by those that have these words.
    pub fn new(limit: u64, shared: Option<Arc<Words>>) -> Disk {
        Disk {
            used: shared.map_or(Used::Own(0.into()), Used::Shared),
            limit: limit.into(),
        }
    }

    /// Bytes used.
    pub fn used(&self) -> u64 {
        self.used.get().load(Ordering::Relaxed)
    }

    /// Bytes there may be.
    pub fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// The limit is at least this from now on.
    pub fn raise(&self, to: u64) {
        self.limit.fetch_max(to, Ordering::Relaxed);
    }

    /// Takes `fixed` bytes and as many as there are left of `most`, one at least unless `most` is 0. How many of `most`.
    pub fn take(&self, fixed: u64, most: u64) -> Option<u64> {
        let limit = self.limit();
        let mut some = 0;
        let update = |used: u64| {
            let least = used.checked_add(fixed)?;
            some = most.min(limit.checked_sub(least)?);
            (some > 0 || most == 0).then_some(least + some)
        };
        self.used
            .get()
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, update)
            .ok()?;
        Some(some)
    }

    /// Bytes that were taken and not used.
    pub fn give_back(&self, bytes: u64) {
        self.used.get().fetch_sub(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_byte_is_given_and_no_more() {
        let disk = Disk::new(100, None);
        assert_eq!(disk.take(10, 50), Some(50));
        assert_eq!(disk.take(10, 50), Some(30));
        assert_eq!(disk.take(0, 1), None);
        assert_eq!(disk.take(0, 0), Some(0));
        assert_eq!(disk.take(u64::MAX, u64::MAX), None);
        disk.give_back(1);
        assert_eq!((disk.take(1, 1), disk.take(1, 0)), (None, Some(0)));
        disk.raise(50);
        assert_eq!(disk.limit(), 100);
        disk.raise(102);
        assert_eq!(disk.take(0, 9), Some(2));
        assert_eq!(disk.used(), 102);
    }
}
