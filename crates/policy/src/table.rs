//! The domain's descriptors: its own numbers for what the host opened for it.

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use ringfence_core::KeptFile;

use crate::captured::Captured;
use crate::device::Device;
use crate::sys::{self, Outcome, Plain};

/// A descriptor of the host's process that the monitor has opened for the domain. Whoever uses it asks for it each time, for a host may
/// close what is not its own, and the number is another file's then.
#[derive(Debug)]
pub struct Held(KeptFile);

impl Held {
    /// Just opened, by the monitor.
    pub fn new(fd: OwnedFd) -> Outcome<Held> {
        KeptFile::new(fd).map(Held).map_err(|_| libc::ENFILE)
    }

    /// A second descriptor for an open file that the host has as well.
    fn of_hosts(fd: OwnedFd) -> Outcome<Held> {
        KeptFile::of_others(fd).map(Held).map_err(|_| libc::ENFILE)
    }

    /// For use at once. `EBADF`: the host has closed it.
    pub fn fd(&self) -> Outcome<BorrowedFd<'_>> {
        self.0.get().map_err(|_| libc::EBADF)
    }
}

/// An open file below a directory of the tree.
#[derive(Debug)]
pub struct File {
    /// The host's descriptor.
    pub fd: Held,
    /// Whether it lies in a directory that may be written to.
    pub writable: bool,
    /// Whether writes go to its end (`O_APPEND`). Changes with `place` held.
    pub appends: AtomicBool,
    /// Where the last write ended. Held from the look at the position until the write is done.
    pub place: Mutex<Place>,
}

/// Where a write went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// There was none.
    Nowhere,
    /// Before this position.
    Before(u64),
    /// To the file's end, wherever that was.
    End,
}

impl File {
    /// Just opened.
    pub fn new(fd: Held, writable: bool, appends: bool) -> File {
        File {
            fd,
            writable,
            appends: appends.into(),
            place: Mutex::new(Place::Nowhere),
        }
    }

    /// A second descriptor for an open file of the host's: with one position. `None` if it is none, or not open.
    pub fn again(fd: BorrowedFd<'_>) -> Option<File> {
        if !sys::is_file(fd) {
            return None;
        }
        let asked = [fd.as_raw_fd() as u64, libc::F_GETFL as u64, 0, 0];
        let flags = sys::plain(Plain::Fcntl, asked).ok()? as i32;
        let writable = flags & libc::O_ACCMODE != libc::O_RDONLY;
        let appends = flags & libc::O_APPEND != 0;
        let fd = Held::of_hosts(fd.try_clone_to_owned().ok()?).ok()?;
        Some(File::new(fd, writable, appends))
    }
}

/// What a descriptor stands for.
#[derive(Debug)]
pub enum Kind {
    /// A standard stream of the host's.
    Standard {
        /// 0, 1 or 2. The first is read from, the others are written to, whatever the host's descriptor could do.
        number: i32,
        /// Whether it can keep a reader or writer waiting.
        waits: bool,
        /// Whether it is a file of the host's: what is written there is on disk.
        disk: bool,
    },
    /// Written bytes are kept for the host, up to a number.
    Capture(Captured, usize),
    /// Bytes that the host prepared, and how many have been read.
    Input(Arc<Vec<u8>>, Mutex<usize>),
    /// Reads end, writes vanish.
    Null,
    /// A device, and how it was opened (`O_ACCMODE`).
    Device(Device, i32),
    /// A file below a directory of the tree.
    File(File),
    /// A directory of the tree.
    Directory {
        /// The directory.
        fd: Held,
        /// Its absolute guest name.
        name: Vec<u8>,
        /// Whether it lies in a directory that may be written to.
        writable: bool,
    },
    /// A pipe. The flag tells whether the domain made it non-blocking; the host's descriptor always is, so that what poll
    /// saw and somebody else took cannot hold up a call that has to end.
    Pipe(Held, AtomicBool),
    /// A socket, likewise.
    Socket(Held, AtomicBool),
    /// A socket of datagrams, likewise. What it receives is from addresses that are granted.
    Datagram(Held, AtomicBool),
    /// A counter (`eventfd`), likewise.
    Event(Held, AtomicBool),
    /// A timer (`timerfd`), likewise.
    Timer(Held, AtomicBool),
    /// What watches names (`inotify`), likewise, and how many it watches at most.
    Watch(Held, AtomicBool, AtomicUsize),
    /// A set of descriptors (`epoll`).
    Set(Held),
}

impl Kind {
    /// The host's descriptor, if there is one. `EBADF`: the host has closed it.
    pub fn host(&self) -> Outcome<Option<BorrowedFd<'_>>> {
        match self {
            Kind::Standard { number, .. } => Ok(Some(sys::standard(*number))),
            Kind::File(file) => file.fd.fd().map(Some),
            Kind::Directory { fd, .. }
            | Kind::Pipe(fd, _)
            | Kind::Socket(fd, _)
            | Kind::Datagram(fd, _)
            | Kind::Event(fd, _)
            | Kind::Timer(fd, _)
            | Kind::Watch(fd, ..)
            | Kind::Set(fd) => fd.fd().map(Some),
            Kind::Capture(..) | Kind::Input(..) | Kind::Null | Kind::Device(..) => Ok(None),
        }
    }

    /// Whether it can be read from, as far as the grant says; the rest is for the kernel to know.
    pub fn reads(&self) -> bool {
        match self {
            Kind::Standard { number, .. } => *number == 0,
            Kind::Capture(..) => false,
            Kind::Device(_, access) => *access != libc::O_WRONLY,
            _ => true,
        }
    }

    /// Whether it can be written to, likewise.
    pub fn writes(&self) -> bool {
        match self {
            Kind::Standard { number, .. } => *number != 0,
            Kind::Input(..) | Kind::Watch(..) => false,
            Kind::Device(_, access) => *access != libc::O_RDONLY,
            _ => true,
        }
    }

    /// Whether it is a stream: without a position, without a size.
    pub fn is_stream(&self) -> bool {
        !matches!(self, Kind::File(_) | Kind::Directory { .. } | Kind::Device(..))
    }

    /// Whether a write can bring on SIGPIPE.
    pub fn breaks(&self) -> bool {
        matches!(
            self,
            Kind::Pipe(..) | Kind::Socket(..) | Kind::Datagram(..) | Kind::Standard { waits: true, .. }
        )
    }

    /// Whether reading or writing can take for ever.
    pub fn waits(&self) -> bool {
        match self {
            Kind::Standard { waits, .. } => *waits,
            _ => self.nonblocking().is_some_and(|set| !set.load(Ordering::Relaxed)),
        }
    }

    /// Whether the domain made it non-blocking, where that is the domain's to say.
    pub fn nonblocking(&self) -> Option<&AtomicBool> {
        match self {
            Kind::Pipe(_, set)
            | Kind::Socket(_, set)
            | Kind::Datagram(_, set)
            | Kind::Event(_, set)
            | Kind::Timer(_, set)
            | Kind::Watch(_, set, _) => Some(set),
            _ => None,
        }
    }
}

#[derive(Clone, Debug)]
struct Descriptor {
    open: Arc<Kind>,
    close_on_exec: bool,
}

/// The table.
#[derive(Debug)]
pub struct Table {
    slots: RwLock<Vec<Option<Descriptor>>>,
    limit: usize,
}

impl Table {
    /// An empty table of at most `limit` descriptors.
    pub fn new(limit: usize) -> Table {
        Table {
            slots: RwLock::new(Vec::new()),
            limit,
        }
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, Vec<Option<Descriptor>>> {
        // A panic cannot leave the vector in a state that is not one.
        self.slots.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many descriptors there are.
    pub fn open(&self) -> usize {
        self.count(|_| true)
    }

    /// How many descriptors of some kind there are.
    pub fn count(&self, kind: impl Fn(&Kind) -> bool) -> usize {
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        slots.iter().flatten().filter(|slot| kind(&slot.open)).count()
    }

    /// How many descriptors there may be.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// What `number` stands for.
    pub fn get(&self, number: u64) -> Outcome<Arc<Kind>> {
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        // Descriptors are ints: the upper half of the register does not count.
        let slot = slots.get(number as u32 as usize).and_then(Option::as_ref);
        slot.map(|s| s.open.clone()).ok_or(libc::EBADF)
    }

    /// Calls `f` with what `number` stands for, without counting a reference: for what cannot keep anybody waiting, for the
    /// table is locked meanwhile.
    pub fn with<T>(&self, number: u64, f: impl FnOnce(&Kind) -> Option<T>) -> Option<T> {
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        slots
            .get(number as u32 as usize)
            .and_then(Option::as_ref)
            .and_then(|s| f(&s.open))
    }

    /// Gives `open` the lowest free number that is at least `from`.
    pub fn add(&self, open: Arc<Kind>, from: u64, close_on_exec: bool) -> Outcome {
        let mut slots = self.write();
        let from = usize::try_from(from).map_err(|_| libc::EINVAL)?;
        if from >= self.limit {
            return Err(libc::EINVAL);
        }
        let number = (from..self.limit)
            .find(|n| slots.get(*n).is_none_or(Option::is_none))
            .ok_or(libc::EMFILE)?;
        if slots.len() <= number {
            slots.resize(number + 1, None);
        }
        slots[number] = Some(Descriptor { open, close_on_exec });
        Ok(number as i64)
    }

    /// Gives `open` exactly this number, closing what it was.
    pub fn put(&self, open: Arc<Kind>, number: u64, close_on_exec: bool) -> Outcome {
        let index = usize::try_from(number)
            .ok()
            .filter(|n| *n < self.limit)
            .ok_or(libc::EBADF)?;
        let mut slots = self.write();
        if slots.len() <= index {
            slots.resize(index + 1, None);
        }
        slots[index] = Some(Descriptor { open, close_on_exec });
        Ok(number as i64)
    }

    /// Closes a number.
    pub fn close(&self, number: u64) -> Outcome {
        let mut slots = self.write();
        let slot = slots.get_mut(number as u32 as usize).and_then(Option::take);
        drop(slots);
        slot.map(|_| 0).ok_or(libc::EBADF)
    }

    /// The close-on-exec flag; nothing is ever executed, but programs read back what they set.
    pub fn flag(&self, number: u64, set: Option<bool>) -> Outcome {
        let mut slots = self.write();
        let slot = slots
            .get_mut(number as u32 as usize)
            .and_then(Option::as_mut)
            .ok_or(libc::EBADF)?;
        if let Some(flag) = set {
            slot.close_on_exec = flag;
            return Ok(0);
        }
        Ok(i64::from(slot.close_on_exec))
    }

    /// Whether there is anything but standard streams as they are at first (some of them may be closed).
    pub fn more_than_streams(&self) -> bool {
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        slots.iter().enumerate().any(|(number, slot)| {
            let Some(slot) = slot else { return false };
            number > 2
                || match &*slot.open {
                    Kind::Standard { number: n, .. } => *n as usize != number,
                    Kind::Capture(..) | Kind::Null => false,
                    Kind::Input(_, read) => *read.lock().unwrap_or_else(PoisonError::into_inner) > 0,
                    _ => true,
                }
        })
    }

    /// Closes everything.
    pub fn clear(&self) {
        self.write().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_the_lowest_free_ones() {
        let table = Table::new(4);
        let null = || Arc::new(Kind::Null);
        assert_eq!(
            (0..4).map(|_| table.add(null(), 0, false)).collect::<Vec<_>>(),
            [Ok(0), Ok(1), Ok(2), Ok(3)]
        );
        assert_eq!(table.add(null(), 0, false), Err(libc::EMFILE));
        assert_eq!(table.close(1), Ok(0));
        assert_eq!(table.close(1), Err(libc::EBADF));
        assert_eq!(table.add(null(), 0, true), Ok(1));
        assert_eq!(table.flag(1, None), Ok(1));
        assert_eq!(table.put(null(), 4, false), Err(libc::EBADF));
        assert!(table.get(u64::MAX).is_err());
    }
}
