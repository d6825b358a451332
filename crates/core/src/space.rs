//! What host functions and policies may do with a domain while it runs: its memory, mostly.

use crate::error::{CallError, HostError, MemoryError};
use crate::file_map::FileMap;
use crate::limits::LimitHit;
use crate::policy::Syscall;
use crate::rights::Rights;
use crate::transfer::{self, Span, Transfer};
use ringfence_isa::{PAGE, window};
use std::os::fd::BorrowedFd;
use std::sync::Weak;

/// What is told when a thread that a domain has asked for is done.
pub type Ended = Box<dyn FnOnce(Result<(), CallError>) + Send>;

/// A domain as its back end shows it to policies and host functions. They use it through [`DomainRef`].
///
/// Addresses are the domain's own numbers. An implementation checks each range by itself: whoever calls has them from the
/// domain.
pub trait Space: Send + Sync {
    /// The first address of the domain's memory; 0 where it has no memory of its own.
    fn base(&self) -> u64;

    /// How many bytes from there on can be the domain's.
    fn size(&self) -> u64 {
        window::SIZE
    }

    /// What the domain means by `pointer`.
    fn translate(&self, pointer: u64) -> u64 {
        self.base() | (pointer & 0xFFFF_FFFF)
    }

    /// Name of the domain's first module.
    fn name(&self) -> &str;

    /// How often the domain was reset.
    fn resets(&self) -> u64;

    /// Copies out of the domain.
    ///
    /// # Errors
    /// [`MemoryError::Outside`], [`MemoryError::Unmapped`].
    fn read(&self, address: u64, to: &mut [u8]) -> Result<(), MemoryError>;

    /// Copies into the domain.
    ///
    /// # Errors
    /// [`MemoryError::Outside`], [`MemoryError::Unmapped`].
    fn write(&self, address: u64, from: &[u8]) -> Result<(), MemoryError>;

    /// Moves bytes between a descriptor of the host's and the domain's memory, in slices and without a copy in between. A value
    /// or an errno, as the kernel gives it.
    ///
    /// # Errors
    /// The errno; `EFAULT` if the domain has no such memory.
    fn transfer(&self, how: Transfer, fd: BorrowedFd<'_>, spans: &[Span]) -> Result<i64, i32> {
        let mut reached = Vec::with_capacity(spans.len());
        for span in spans {
            self.check(span.address(), span.len()).map_err(|_| libc::EFAULT)?;
            let reach = self.reach(span.address(), span.len(), how.fills());
            reached.push(span.first(reach));
            if reach < span.len() {
                break;
            }
        }
        let some = |spans: &[Span]| spans.iter().any(|s| !s.is_empty());
        if some(spans) && !some(&reached) {
            return Err(libc::EFAULT);
        }
        // SAFETY: the spans lie in the domain's memory, which the host has no references into.
        unsafe { transfer::direct(how, fd, &reached) }
    }

    /// At how many bytes from an address on the kernel may be pointed, to read them, or to write them if it `fills` them: where the
    /// kernel is held to the domain's rights, all that are asked for.
    fn reach(&self, _address: u64, len: u64, _fills: bool) -> u64 {
        len
    }

    /// Whether what lies at an address is an object of the host's, which the kernel does not find there:
    /// [`read`](Self::read) and [`write`](Self::write) copy it, as far as the domain has rights to it.
    fn is_foreign(&self, _address: u64) -> bool {
        false
    }

    /// Whether the range can be the domain's at all. Says nothing about what is mapped there.
    ///
    /// # Errors
    /// [`MemoryError::Outside`].
    fn check(&self, address: u64, len: u64) -> Result<(), MemoryError> {
        let offset = address.wrapping_sub(self.base());
        if offset < self.size() && len <= self.size() - offset {
            return Ok(());
        }
        Err(MemoryError::Outside { address, len })
    }

    /// Allocates zeroed memory in the domain, for the host to pass data in.
    ///
    /// # Errors
    /// [`MemoryError::Limit`], [`MemoryError::Alignment`].
    fn alloc(&self, len: u64, align: u64) -> Result<u64, MemoryError>;

    /// Frees what [`alloc`](Self::alloc) gave; with `resets`, only if the domain has been reset so often and not since.
    ///
    /// # Errors
    /// [`MemoryError::NotAllocated`].
    fn free(&self, address: u64, resets: Option<u64>) -> Result<(), MemoryError>;

    /// Bytes of heap, anonymous maps and host allocations in use.
    fn memory_used(&self) -> u64;

    /// Performs the call if it is one of `brk mmap munmap mremap mprotect madvise` on the domain's own anonymous memory, and tells
    /// its value (or `-errno`).
    fn memory_call(&self, call: &Syscall) -> Option<i64>;

    /// Maps a file into the domain's memory, shared: what the domain writes there is in the file, and what others write to the file
    /// is there. It counts like other memory, and `munmap`, `mprotect` and `mremap` treat it as they do natively. Whether the back
    /// end can ([`Feature::FileMaps`](crate::Feature::FileMaps)); the address.
    ///
    /// Others can make the file shorter. Touching what is gone is a fault of the domain then; [`read`](Self::read) and
    /// [`write`](Self::write) answer [`MemoryError::Unmapped`], and the kernel `EFAULT`.
    ///
    /// # Errors
    /// The errno, as `mmap` gives it; `ENODEV` where no file can be mapped.
    fn map_file(&self, _map: &FileMap<'_>) -> Result<u64, i32> {
        Err(libc::ENODEV)
    }

    /// Copies the host's process, as `fork` does, from a policy's answer to a call of this domain: the call goes on in both. Limits of
    /// time hold in the child as in the parent. The child's number, or 0 in the child. Whether the back end can
    /// ([`Feature::Processes`](crate::Feature::Processes)).
    ///
    /// # Errors
    /// The errno: `EAGAIN` while another thread has a call in the domain, and as `fork` gives it; `ENOSYS` where the domain is not in this
    /// process alone.
    fn fork(&self) -> Result<i32, i32> {
        Err(libc::ENOSYS)
    }

    /// Whether the calling thread's call into this domain has to end. Host functions that wait look here every few
    /// milliseconds.
    fn ending(&self) -> bool;

    /// Ends all calls in progress, from any thread.
    fn interrupt(&self);

    /// Stops the clock of the time limit for the calling thread's call in progress, which has called out; nothing happens without one. It
    /// runs again from [`resume_time`](Self::resume_time) on, or when the thread enters the domain's code. Whether the back end can
    /// ([`Feature::Pauses`](crate::Feature::Pauses)).
    fn pause_time(&self) -> bool {
        false
    }

    /// Lets that clock run again, if it does not.
    fn resume_time(&self) {}

    /// Tells the host's function for limits that the domain has reached one. The higher limit, if it decides so.
    fn limit_reached(&self, hit: &LimitHit) -> Option<u64>;

    /// Address of an exported variable or function, of the module that was added under the name `module`, or of any.
    fn find(&self, module: Option<&str>, name: &str) -> Option<u64>;

    /// Calls the domain's function at `function` with one argument on a new thread. Returns when that thread is inside; `ended`
    /// gets the call's end, on that thread. The thread does not keep the domain.
    ///
    /// # Errors
    /// [`SpawnError`]; `ended` is not called then.
    fn spawn(&self, function: u64, argument: u64, ended: Ended) -> Result<(), SpawnError>;

    /// Who maps regions in the process that runs the domain, if that is another one; they are mapped in this process's window too.
    fn elsewhere(&self) -> Option<Weak<dyn Elsewhere>> {
        None
    }

    /// For the back end itself, which finds its own domain behind a borrow.
    #[doc(hidden)]
    fn own(&self) -> *const ();
}

/// The other process of a domain that runs in one.
pub trait Elsewhere: Send + Sync {
    /// Maps the first `len` bytes of a memory file, which cannot become shorter, at an address in the part of the window that is for
    /// regions, with these rights; without a file, takes away what is there.
    ///
    /// # Errors
    /// [`HostError`]; nothing has changed. Taking away does not fail: a process that does not obey is ended.
    fn map_region(
        &self,
        address: u64,
        len: u64,
        rights: Rights,
        file: Option<BorrowedFd<'_>>,
    ) -> Result<(), HostError>;
}

/// Why a domain did not get another thread.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// No function of the domain starts there.
    #[error("no function of the domain starts at {0:#x}")]
    NoEntry(u64),
    /// The domain is going, or takes no call.
    #[error(transparent)]
    Call(#[from] CallError),
}

/// A borrowed domain, as host functions and policies see it.
#[derive(Clone, Copy)]
pub struct DomainRef<'a>(&'a dyn Space);

impl<'a> DomainRef<'a> {
    /// Borrows a domain.
    #[must_use]
    pub fn of(space: &'a dyn Space) -> Self {
        DomainRef(space)
    }

    /// The back end's own view.
    #[must_use]
    pub fn space(&self) -> &'a dyn Space {
        self.0
    }

    /// The first address of the domain's memory: the window's base.
    #[must_use]
    pub fn base(&self) -> u64 {
        self.0.base()
    }

    /// Whether the calling thread's call into this domain has to end: its time is up, or it was interrupted. The gate
    /// ends it when the host function returns; host functions that wait look here every few milliseconds.
    #[must_use]
    pub fn ending(&self) -> bool {
        self.0.ending()
    }

    /// Ends all calls in progress, from any thread.
    pub fn interrupt(&self) {
        self.0.interrupt();
    }

    /// What the domain means by `pointer`: its low half in this window.
    #[must_use]
    pub fn translate(&self, pointer: u64) -> u64 {
        self.0.translate(pointer)
    }

    /// Name of the domain's first module.
    #[must_use]
    pub fn name(&self) -> &'a str {
        self.0.name()
    }

    /// How often the domain was reset: what was allocated before the last time is gone.
    #[must_use]
    pub fn resets(&self) -> u64 {
        self.0.resets()
    }

    /// Whether the range can be the domain's at all. Says nothing about what is mapped there.
    ///
    /// # Errors
    /// [`MemoryError::Outside`].
    pub fn check(&self, address: u64, len: u64) -> Result<(), MemoryError> {
        self.0.check(address, len)
    }

    /// Copies out of the domain.
    ///
    /// # Errors
    /// [`MemoryError::Outside`], [`MemoryError::Unmapped`].
    pub fn read(&self, address: u64, to: &mut [u8]) -> Result<(), MemoryError> {
        self.0.read(address, to)
    }

    /// Copies into the domain.
    ///
    /// # Errors
    /// [`MemoryError::Outside`], [`MemoryError::Unmapped`].
    pub fn write(&self, address: u64, from: &[u8]) -> Result<(), MemoryError> {
        self.0.write(address, from)
    }

    /// Moves bytes between a descriptor of the host's and the domain's memory, in slices and without a copy in between.
    ///
    /// # Errors
    /// The errno, as the kernel gives it; `EFAULT` if the domain has no such memory.
    pub fn transfer(&self, how: Transfer, fd: BorrowedFd<'_>, spans: &[Span]) -> Result<i64, i32> {
        self.0.transfer(how, fd, spans)
    }

    /// At how many bytes from an address on the kernel may be pointed; see [`Space::reach`].
    #[must_use]
    pub fn reach(&self, address: u64, len: u64, fills: bool) -> u64 {
        self.0.reach(address, len, fills)
    }

    /// Whether an object of the host's lies at an address; see [`Space::is_foreign`].
    #[must_use]
    pub fn is_foreign(&self, address: u64) -> bool {
        self.0.is_foreign(address)
    }

    /// Copies a C string of at most `limit` bytes out of the domain, without the NUL.
    ///
    /// # Errors
    /// [`MemoryError::Outside`], [`MemoryError::Unmapped`]; also when there is no NUL within the limit.
    pub fn read_c_string(&self, address: u64, limit: usize) -> Result<Vec<u8>, MemoryError> {
        let mut text = Vec::new();
        let mut at = address;
        // Up to the page's end: what lies behind may not be mapped. Objects of the host's word by word: what lies behind may be others'.
        let step = if self.is_foreign(address) { 4 } else { PAGE };
        while text.len() < limit {
            let len = ((step - at % step) as usize).min(limit - text.len());
            let old = text.len();
            text.resize(old + len, 0);
            self.read(at, &mut text[old..])?;
            if let Some(nul) = text[old..].iter().position(|&b| b == 0) {
                text.truncate(old + nul);
                return Ok(text);
            }
            at += len as u64;
        }
        Err(MemoryError::Unmapped {
            address,
            len: limit as u64,
        })
    }

    /// Allocates zeroed memory in the domain, for the host to pass data in. Its bookkeeping is out of the domain's reach.
    ///
    /// # Errors
    /// [`MemoryError::Limit`], [`MemoryError::Alignment`].
    pub fn alloc(&self, len: u64, align: u64) -> Result<u64, MemoryError> {
        self.0.alloc(len, align)
    }

    /// Frees what [`alloc`](Self::alloc) gave.
    ///
    /// # Errors
    /// [`MemoryError::NotAllocated`].
    pub fn free(&self, address: u64) -> Result<(), MemoryError> {
        self.0.free(address, None)
    }

    /// Frees what [`alloc`](Self::alloc) gave when the domain had been reset `resets` times, and does nothing if it has
    /// been reset since.
    pub fn free_unless_reset(&self, address: u64, resets: u64) {
        let _ = self.0.free(address, Some(resets));
    }

    /// Tells the host's function for limits that the domain has reached one: for policies, which have limits of their own. Call
    /// it without locks that the function could need.
    pub fn limit_reached(&self, hit: &LimitHit) -> Option<u64> {
        self.0.limit_reached(hit)
    }

    /// Bytes of heap, anonymous maps and host allocations in use.
    #[must_use]
    pub fn memory_used(&self) -> u64 {
        self.0.memory_used()
    }

    /// Performs the call if it is one of `brk mmap munmap mremap mprotect madvise` on the domain's own anonymous memory, and tells
    /// its value (or `-errno`).
    #[must_use]
    pub fn memory_call(&self, call: &Syscall) -> Option<i64> {
        self.0.memory_call(call)
    }

    /// Copies the host's process; see [`Space::fork`].
    ///
    /// # Errors
    /// The errno.
    pub fn fork(&self) -> Result<i32, i32> {
        self.0.fork()
    }

    /// Maps a file into the domain's memory, shared; see [`Space::map_file`].
    ///
    /// # Errors
    /// The errno, as `mmap` gives it; `ENODEV` where no file can be mapped.
    pub fn map_file(&self, map: &FileMap<'_>) -> Result<u64, i32> {
        self.0.map_file(map)
    }

    /// Address of an exported variable or function: of a module that was added under the name `module`, or of
    /// any module, those that the domain was made of first. What a host function for looking up symbols at run time, like `dlsym`,
    /// returns to the domain.
    #[must_use]
    pub fn find(&self, module: Option<&str>, name: &str) -> Option<u64> {
        self.0.find(module, name)
    }

    /// Calls the domain's function at `function` with one argument on a new thread; see [`Space::spawn`].
    ///
    /// # Errors
    /// [`SpawnError`]; `ended` is not called then.
    pub fn spawn(&self, function: u64, argument: u64, ended: Ended) -> Result<(), SpawnError> {
        self.0.spawn(function, argument, ended)
    }
}
