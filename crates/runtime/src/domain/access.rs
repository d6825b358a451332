//! A domain's memory, as the host uses it.

use super::{Domain, Inner};
use crate::domain::limits::LimitHit;
use crate::domain::policy::{Answer, Syscall};
use crate::lanes::lane::attention;
use crate::lanes::signal;
use crate::os::guarded;
use crate::outcome::error::MemoryError;
use ringfence_isa::{PAGE, window};
use std::sync::atomic::Ordering;

/// A borrowed domain, as host functions and policies see it.
#[derive(Clone, Copy)]
pub struct DomainRef<'a>(pub(super) &'a Inner);

impl<'a> DomainRef<'a> {
    pub(crate) fn of(inner: &'a Inner) -> Self {
        DomainRef(inner)
    }

    /// The window's base.
    #[must_use]
    pub fn base(&self) -> u64 {
        self.0.base()
    }

    /// Whether the calling thread's call into this domain has to end: its time is up, or it was interrupted. The gate
    /// ends it when the host function returns; host functions that wait look here every few milliseconds.
    #[must_use]
    pub fn ending(&self) -> bool {
        // SAFETY: no arguments.
        let tid = unsafe { libc::syscall(libc::SYS_gettid) } as i32;
        let ending = attention::TIME | attention::INTERRUPT | attention::ELSEWHERE;
        self.0.lanes().lanes.iter().any(|&lane| {
            // SAFETY: lanes are never unmapped; only atomics are used.
            let lane = unsafe { &*lane };
            lane.tid.load(Ordering::Relaxed) == tid
                && lane.attention.load(Ordering::Acquire) & ending != 0
                && lane.expired.load(Ordering::Acquire) == lane.sequence.load(Ordering::Acquire)
        })
    }

    /// A handle of its own, for what has to outlive the borrow; `None` if the domain's last handle is being dropped.
    #[must_use]
    pub fn handle(&self) -> Option<Domain> {
        self.0.me.upgrade().map(Domain::of)
    }

    /// What the domain means by `pointer`: its low half in this window.
    #[must_use]
    pub fn translate(&self, pointer: u64) -> u64 {
        self.base() | (pointer & 0xFFFF_FFFF)
    }

    /// Name of the domain's first module.
    #[must_use]
    pub fn name(&self) -> &'a str {
        self.0.name()
    }

    /// How often the domain was reset: what was allocated before the last time is gone.
    #[must_use]
    pub fn resets(&self) -> u64 {
        self.0.resets.load(Ordering::Acquire)
    }

    /// Frees what [`alloc`](Self::alloc) gave when the domain had been reset `resets` times, and does nothing if it has
    /// been reset since.
    pub fn free_unless_reset(&self, address: u64, resets: u64) {
        let mut memory = self.0.memory();
        if self.resets() == resets && address.wrapping_sub(self.base()) < window::SIZE {
            let _ = memory.free(address as u32);
        }
    }

    /// Whether both are the same domain.
    #[must_use]
    pub fn is(&self, domain: &Domain) -> bool {
        std::ptr::eq(self.0, &raw const **domain.0)
    }

    fn check(&self, address: u64, len: usize) -> Result<(), MemoryError> {
        let len = len as u64;
        let offset = address.wrapping_sub(self.base());
        if offset < window::SIZE && len <= window::SIZE - offset {
            return Ok(());
        }
        Err(MemoryError::Outside { address, len })
    }

    /// Copies out of the domain.
    ///
    /// # Errors
    /// [`MemoryError::Outside`], [`MemoryError::Unmapped`].
    pub fn read(&self, address: u64, to: &mut [u8]) -> Result<(), MemoryError> {
        self.check(address, to.len())?;
        signal::thread_ready();
        // SAFETY: `to` is ours, the other range lies in the window; faults become a result.
        match unsafe { guarded::copy(to.as_mut_ptr(), address as *const u8, to.len()) } {
            0 => Ok(()),
            _ => Err(MemoryError::Unmapped {
                address,
                len: to.len() as u64,
            }),
        }
    }

    /// Copies into the domain.
    ///
    /// # Errors
    /// [`MemoryError::Outside`], [`MemoryError::Unmapped`].
    pub fn write(&self, address: u64, from: &[u8]) -> Result<(), MemoryError> {
        self.check(address, from.len())?;
        signal::thread_ready();
        // SAFETY: `from` is ours, the other range lies in the window; faults become a result.
        match unsafe { guarded::copy(address as *mut u8, from.as_ptr(), from.len()) } {
            0 => Ok(()),
            _ => Err(MemoryError::Unmapped {
                address,
                len: from.len() as u64,
            }),
        }
    }

    /// Copies a C string of at most `limit` bytes out of the domain, without the NUL.
    ///
    /// # Errors
    /// [`MemoryError::Outside`], [`MemoryError::Unmapped`]; also when there is no NUL within the limit.
    pub fn read_c_string(&self, address: u64, limit: usize) -> Result<Vec<u8>, MemoryError> {
        let mut text = Vec::new();
        let mut at = address;
        while text.len() < limit {
            // Up to the page's end: what lies behind may not be mapped.
            let len = ((PAGE - at % PAGE) as usize).min(limit - text.len());
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
        let allocate = || self.0.memory().alloc(len, align);
        let (offset, fresh) = match allocate() {
            // More than it was: the host may decide so, once.
            Err(MemoryError::Limit { wanted, used, limit }) if self.0.raise_memory(wanted, used, limit) => {
                allocate()?
            }
            other => other?,
        };
        let address = self.base() + u64::from(offset);
        if !fresh {
            signal::thread_ready();
            // SAFETY: in the window; a fault becomes a result.
            if unsafe { guarded::fill(address as *mut u8, 0, len as usize) } != 0 {
                return Err(MemoryError::Unmapped { address, len });
            }
        }
        Ok(address)
    }

    /// Frees what [`alloc`](Self::alloc) gave.
    ///
    /// # Errors
    /// [`MemoryError::NotAllocated`].
    pub fn free(&self, address: u64) -> Result<(), MemoryError> {
        let unknown = MemoryError::NotAllocated { address };
        if address.wrapping_sub(self.base()) >= window::SIZE {
            return Err(unknown);
        }
        self.0.memory().free(address as u32).map(|_| ()).ok_or(unknown)
    }

    /// Tells the host's function for limits ([`Imports::on_limit`](crate::Imports::on_limit)) that the domain has reached one: for
    /// policies, which have limits of their own. Call it without locks that the function could need. The higher limit, if it decides
    /// so.
    pub fn limit_reached(&self, hit: &LimitHit) -> Option<u64> {
        self.0.tell_limit(hit)
    }

    /// Bytes of heap, anonymous maps and host allocations in use.
    #[must_use]
    pub fn memory_used(&self) -> u64 {
        self.0.memory().used()
    }

    /// Performs the call if it is one of `brk mmap munmap mprotect madvise` on the domain's own anonymous memory.
    #[must_use]
    pub fn memory_call(&self, call: &Syscall) -> Option<Answer> {
        let answer = || {
            let mut memory = self.0.memory();
            memory.take_refused();
            let value = crate::place::memory::system_call(&mut memory, self.base(), call);
            (value, memory.take_refused())
        };
        let (value, refused) = answer();
        let value = match refused {
            Some((wanted, used, limit)) if self.0.raise_memory(wanted, used, limit) => answer().0,
            _ => value,
        };
        value.map(Answer::Return)
    }
}
