//! Files that a domain maps, and shares with whoever else has them mapped or open.

use std::os::fd::BorrowedFd;

/// What of a file is to be mapped into a domain's memory, and where: [`Space::map_file`](crate::Space::map_file).
#[derive(Clone, Copy, Debug)]
pub struct FileMap<'a> {
    /// The host's descriptor. The map stays when it is closed.
    pub file: BorrowedFd<'a>,
    /// Where in the file the map begins: a multiple of 4096.
    pub offset: u64,
    /// Its length in bytes, at least one. What lies behind the file's last page is a fault to touch.
    pub len: u64,
    /// Where in the domain, as `mmap` takes it: the domain's own number, 0 if it has no wish.
    pub address: u64,
    /// `PROT_READ`, `PROT_WRITE`, both or none. Nothing else: no map is executable.
    pub rights: i32,
    /// Of `mmap`'s flags `MAP_FIXED` and `MAP_FIXED_NOREPLACE`; others do not count.
    pub flags: i32,
    /// Whether the domain may write to the file: by this map, now or when it changes the map's rights.
    pub writable: bool,
}
