//! Descriptors that are kept for later.
//!
//! A host may close descriptors that are not its own: a daemon closes all but three when it starts. The number is then free, and the next
//! file that is opened gets it, be it the host's or one of ours. So whoever uses a descriptor that was made some time ago looks first
//! whether it is the same open file. Device and inode do not tell: counters, timers and sets share one inode, numbers of inodes come
//! back, and a file may be open twice, with two rights and two positions. Two marks together do:
//!
//! * on the open file, in the kernel: the number of the signal that would tell of input (`F_SETSIG`, fcntl(2)). It belongs to the open
//!   file and not to the descriptor, is 0 unless somebody sets it, and has no effect on a file that sends no signals. So a file of the
//!   host's own is told from one of ours;
//! * on the number, here: who was the last that kept a file under it. So one of ours is told from another one of ours.
//!
//! Open files that take no mark (directories opened with `O_PATH`), that are the host's as well, or in a process whose filter refuses the
//! mark, are told by device and inode, which is all that there is.

use crate::error::HostError;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// `fcntl(2)`; the numbers are Linux's.
const F_SETSIG: i32 = 10;
const F_GETSIG: i32 = 11;

/// A signal that nothing sends: who wants one for input takes another.
const MARK: i32 = libc::SIGSTKFLT;

/// Numbers of descriptors: as many as a process may have unless the administrator allows more.
const CHUNK: usize = 1024;
const CHUNKS: usize = 1024;

type Turns = [AtomicU64; CHUNK];

/// Which [`KeptFile`] was the last to have a number. Chunks are made when they are needed first, and stay.
static OWNERS: [AtomicPtr<Turns>; CHUNKS] = [const { AtomicPtr::new(std::ptr::null_mut()) }; CHUNKS];

/// The last one that was kept.
static LAST: AtomicU64 = AtomicU64::new(0);

/// The word of a number, if one was ever kept near it.
fn owner(number: i32) -> Option<&'static AtomicU64> {
    let number = usize::try_from(number).ok()?;
    let chunk = OWNERS.get(number / CHUNK)?.load(Ordering::Acquire);
    // SAFETY: null, or made below, complete, and never freed.
    unsafe { chunk.as_ref() }.map(|chunk| &chunk[number % CHUNK])
}

/// The word of a number.
fn make_owner(number: i32) -> Result<&'static AtomicU64, HostError> {
    let fail = |errno| HostError::Os {
        what: "keeping a descriptor",
        source: io::Error::from_raw_os_error(errno),
    };
    if let Some(owner) = owner(number) {
        return Ok(owner);
    }
    let at = usize::try_from(number).ok().and_then(|n| OWNERS.get(n / CHUNK));
    let at = at.ok_or_else(|| fail(libc::EMFILE))?;
    let mut words = Vec::new();
    words.try_reserve_exact(CHUNK).map_err(|_| fail(libc::ENOMEM))?;
    words.resize_with(CHUNK, || AtomicU64::new(0));
    // As long as it has to be, so nothing is allocated again.
    let chunk: Box<Turns> = words.try_into().map_err(|_| fail(libc::ENOMEM))?;
    let chunk = Box::into_raw(chunk);
    let raced = (Ordering::AcqRel, Ordering::Acquire);
    if at
        .compare_exchange(std::ptr::null_mut(), chunk, raced.0, raced.1)
        .is_err()
    {
        // SAFETY: made just now, and nobody has seen it.
        drop(unsafe { Box::from_raw(chunk) });
    }
    owner(number).ok_or_else(|| fail(libc::ENOMEM))
}

/// How an open file is told from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Marked,
    /// Device and inode.
    Named(u64, u64),
}

/// An open file, kept by its descriptor, and told from others that got its number.
#[derive(Debug)]
pub struct KeptFile {
    file: ManuallyDrop<OwnedFd>,
    /// Which one it is of those that had the number.
    turn: u64,
    told: Told,
}

/// Device and inode; an error if it is closed.
fn name(file: BorrowedFd<'_>) -> io::Result<Told> {
    // By its number: the library's `fstat` is another system call, which a filter may refuse that has this one.
    // SAFETY: asks only, into a structure that may be all zeroes before and is the kernel's on this machine.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        match libc::syscall(libc::SYS_fstat, file.as_raw_fd(), &raw mut stat) {
            0 => Ok(Told::Named(stat.st_dev, stat.st_ino)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

fn mark(file: BorrowedFd<'_>) -> Option<Told> {
    // SAFETY: integers only.
    let done = unsafe { libc::fcntl(file.as_raw_fd(), F_SETSIG, MARK) };
    (done == 0).then_some(Told::Marked)
}

impl KeptFile {
    /// Keeps a file that was just opened, by us: the open file is nobody else's.
    ///
    /// # Errors
    /// [`HostError`]: the system does not tell which it is, or has no memory for its owner.
    pub fn new(file: OwnedFd) -> Result<KeptFile, HostError> {
        KeptFile::keep(file, mark)
    }

    /// Keeps an open file that the host has as well, and on which nothing may be changed.
    ///
    /// # Errors
    /// As [`KeptFile::new`].
    pub fn of_others(file: OwnedFd) -> Result<KeptFile, HostError> {
        KeptFile::keep(file, |_| None)
    }

    fn keep(file: OwnedFd, mark: impl Fn(BorrowedFd<'_>) -> Option<Told>) -> Result<KeptFile, HostError> {
        let turn = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        // Before the mark: whoever had the number then finds it taken, or a file without a mark.
        make_owner(file.as_raw_fd())?.store(turn, Ordering::Release);
        let told = match mark(file.as_fd()) {
            Some(told) => told,
            None => name(file.as_fd()).map_err(|source| HostError::Os {
                what: "asking which file a descriptor is",
                source,
            })?,
        };
        Ok(KeptFile {
            file: ManuallyDrop::new(file),
            turn,
            told,
        })
    }

    /// The descriptor, for use at once.
    ///
    /// # Errors
    /// [`HostError::Descriptor`]: somebody has closed it.
    pub fn get(&self) -> Result<BorrowedFd<'_>, HostError> {
        let file = self.file.as_fd();
        let last = owner(file.as_raw_fd()).is_some_and(|o| o.load(Ordering::Acquire) == self.turn);
        let same = last
            && match self.told {
                // SAFETY: asks only.
                Told::Marked => unsafe { libc::fcntl(file.as_raw_fd(), F_GETSIG) == MARK },
                named => name(file).is_ok_and(|now| now == named),
            };
        same.then_some(file).ok_or(HostError::Descriptor)
    }
}

impl Drop for KeptFile {
    fn drop(&mut self) {
        if self.get().is_err() {
            // What somebody else has closed, and may have opened again, is not ours to close.
            return;
        }
        // Before the number is free for another one of ours.
        if let Some(owner) = owner(self.file.as_raw_fd()) {
            let (done, raced) = (Ordering::AcqRel, Ordering::Relaxed);
            let _ = owner.compare_exchange(self.turn, 0, done, raced);
        }
        // SAFETY: dropped once.
        unsafe { ManuallyDrop::drop(&mut self.file) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::FromRawFd;
    use std::sync::atomic::AtomicU32;

    fn made(fd: i64) -> OwnedFd {
        assert!(fd >= 0);
        // SAFETY: the kernel has just made it.
        unsafe { OwnedFd::from_raw_fd(fd as i32) }
    }

    /// Each kind of open file, made anew.
    fn kinds() -> Vec<OwnedFd> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let (process, next) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let file = std::env::temp_dir().join(format!("ringfence-kept-{process}-{next}"));
        std::fs::write(&file, "x").unwrap();
        let opened = std::fs::File::open(&file).unwrap().into();
        // The next one gets its inode.
        std::fs::remove_file(&file).unwrap();
        let mut pipe = [0; 2];
        // SAFETY: constant names, integers, and an array of ours.
        unsafe {
            assert_eq!(libc::pipe(pipe.as_mut_ptr()), 0);
            let number = |n: libc::c_long, a: i64, b: i64| libc::syscall(n, a, b, 0);
            vec![
                opened,
                made(pipe[0].into()),
                made(pipe[1].into()),
                made(number(libc::SYS_eventfd2, 0, 0)),
                made(number(libc::SYS_timerfd_create, 1, 0)),
                made(number(libc::SYS_epoll_create1, 0, 0)),
                made(number(
                    libc::SYS_socket,
                    libc::AF_UNIX.into(),
                    libc::SOCK_STREAM.into(),
                )),
                made(libc::syscall(libc::SYS_memfd_create, c"kept".as_ptr(), 0)),
                std::fs::File::open("/").unwrap().into(),
            ]
        }
    }

    /// Puts `other` at the number, as a host does that knows no better.
    fn take(number: i32, other: &OwnedFd) {
        // SAFETY: the point of the test: the number's owner has kept it.
        unsafe { assert_eq!(libc::dup3(other.as_raw_fd(), number, libc::O_CLOEXEC), number) };
    }

    fn is_open(number: i32) -> bool {
        // SAFETY: asks only.
        unsafe { libc::fcntl(number, libc::F_GETFD) >= 0 }
    }

    fn close(number: i32) {
        // SAFETY: a number that this test has taken.
        unsafe { libc::close(number) };
    }

    #[test]
    fn another_open_file_of_the_same_number_is_not_taken_for_it() {
        for (file, other) in kinds().into_iter().zip(kinds()) {
            let number = file.as_raw_fd();
            let kept = KeptFile::new(file).unwrap();
            assert_eq!(kept.told, Told::Marked);
            assert_eq!(kept.get().unwrap().as_raw_fd(), number);
            take(number, &other);
            assert!(matches!(kept.get(), Err(HostError::Descriptor)));
            drop(kept);
            assert!(is_open(number), "it is still the host's");
            close(number);
        }
    }

    /// The same file, opened again, has its own position and rights.
    #[test]
    fn a_file_opened_twice_is_two() {
        let open = || OwnedFd::from(std::fs::File::open(std::env::current_exe().unwrap()).unwrap());
        let kept = KeptFile::new(open()).unwrap();
        let number = kept.get().unwrap().as_raw_fd();
        take(number, &open());
        assert!(kept.get().is_err());
        drop(kept);
        close(number);
    }

    /// One of ours that got the number of another one of ours.
    #[test]
    fn the_number_is_the_last_ones() {
        for (file, other) in kinds().into_iter().zip(kinds()) {
            let first = KeptFile::new(file).unwrap();
            let number = first.get().unwrap().as_raw_fd();
            take(number, &other);
            // SAFETY: `take` has made it, and nobody else owns it.
            let second = KeptFile::new(unsafe { OwnedFd::from_raw_fd(number) }).unwrap();
            assert!(first.get().is_err());
            drop(first);
            assert_eq!(second.get().unwrap().as_raw_fd(), number);
            drop(second);
        }
    }

    /// What cannot be marked, and what must not be, is told by its inode.
    #[test]
    fn what_has_no_mark_is_told_by_its_name() {
        // SAFETY: a constant name.
        let path = |name: &std::ffi::CStr| made(unsafe { libc::open(name.as_ptr(), libc::O_PATH) }.into());
        for (file, other) in [
            (KeptFile::new(path(c"/")), path(c"/dev")),
            (KeptFile::of_others(kinds().remove(0)), path(c"/")),
        ] {
            let file = file.unwrap();
            assert_ne!(file.told, Told::Marked);
            let number = file.get().unwrap().as_raw_fd();
            // SAFETY: asks only.
            assert!(unsafe { libc::fcntl(number, F_GETSIG) } <= 0);
            take(number, &other);
            assert!(file.get().is_err());
            drop(file);
            close(number);
        }
    }

    #[test]
    fn what_is_closed_is_no_file() {
        let kept = KeptFile::new(kinds().remove(3)).unwrap();
        close(kept.get().unwrap().as_raw_fd());
        assert!(kept.get().is_err());
    }
}
