//! A domain's memory, as the host uses it.

use super::{Domain, Inner};
use crate::lanes::lane::Lane;
use crate::lanes::{gate, signal, watchdog};
use crate::os::guarded;
use crate::place::memory::{self, Memory, SLICE};
use crate::words::Attached;
use ringfence_core::error::{CallError, MemoryError};
use ringfence_core::{DomainRef, Ended, FileMap, LimitHit, Space, SpawnError, Syscall};
use ringfence_isa::window;
use std::sync::atomic::Ordering;

impl Domain {
    /// Whether the borrowed domain is this one.
    #[must_use]
    pub fn is(&self, domain: DomainRef<'_>) -> bool {
        std::ptr::addr_eq(domain.space().own(), &raw const **self.0)
    }
}

impl<'a> From<&'a Domain> for DomainRef<'a> {
    fn from(domain: &'a Domain) -> Self {
        domain.as_ref()
    }
}

impl Inner {
    /// Does something with the domain's heap; again, if the host raises the limit that it meets.
    pub(super) fn with_limit<T>(&self, step: impl Fn(&mut Memory) -> T) -> T {
        let answer = || {
            let mut memory = self.memory();
            memory.take_refused();
            let value = step(&mut memory);
            (value, memory.take_refused())
        };
        match answer() {
            (_, Some((wanted, used, limit))) if self.raise_memory(wanted, used, limit) => answer().0,
            (value, _) => value,
        }
    }

    /// The arena's place that an address in the window stands for, in the words mode.
    fn object(&self, address: u64) -> Option<(&Attached, u32)> {
        let words = self.words()?;
        let offset = u32::try_from(address.wrapping_sub(self.base())).ok()?;
        Some((words, words.place(offset)?))
    }

    /// One memory call.
    fn memory_step(&self, call: &Syscall) -> Option<i64> {
        self.with_limit(|memory| memory::system_call(memory, self.base(), call))
    }
}

impl Space for Inner {
    fn base(&self) -> u64 {
        self.base()
    }

    fn name(&self) -> &str {
        self.name()
    }

    fn resets(&self) -> u64 {
        self.resets.load(Ordering::Acquire)
    }

    fn ending(&self) -> bool {
        // SAFETY: no arguments.
        let tid = unsafe { libc::syscall(libc::SYS_gettid) } as i32;
        self.lanes().lanes.iter().any(|&lane| {
            // SAFETY: lanes are never unmapped; only atomics are used.
            let lane = unsafe { &*lane };
            lane.tid.load(Ordering::Relaxed) == tid && lane.ending() != 0
        })
    }

    fn interrupt(&self) {
        self.interrupt();
    }

    fn pause_time(&self) -> bool {
        self.with_own_lane(|lane| {
            if lane.active() && lane.depth.load(Ordering::Relaxed) > 0 {
                lane.pause();
            }
        });
        true
    }

    fn resume_time(&self) {
        self.with_own_lane(Lane::resume);
    }

    fn reach(&self, address: u64, len: u64, fills: bool) -> u64 {
        match self.object(address) {
            None => len,
            Some((words, at)) => words.reach(at, len, fills),
        }
    }

    fn is_foreign(&self, address: u64) -> bool {
        self.object(address).is_some()
    }

    fn read(&self, address: u64, to: &mut [u8]) -> Result<(), MemoryError> {
        self.check(address, to.len() as u64)?;
        if let Some((words, at)) = self.object(address) {
            let len = to.len() as u64;
            let done = words.copy_out(at, to);
            return done.then_some(()).ok_or(MemoryError::Unmapped { address, len });
        }
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

    fn write(&self, address: u64, from: &[u8]) -> Result<(), MemoryError> {
        self.check(address, from.len() as u64)?;
        if let Some((words, at)) = self.object(address) {
            let len = from.len() as u64;
            let done = words.copy_in(at, from);
            return done.then_some(()).ok_or(MemoryError::Unmapped { address, len });
        }
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

    /// Its bookkeeping is out of the domain's reach.
    fn alloc(&self, len: u64, align: u64) -> Result<u64, MemoryError> {
        let allocate = || self.memory().alloc(len, align);
        let (offset, fresh) = match allocate() {
            // More than it was: the host may decide so, once.
            Err(MemoryError::Limit { wanted, used, limit }) if self.raise_memory(wanted, used, limit) => {
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

    fn free(&self, address: u64, resets: Option<u64>) -> Result<(), MemoryError> {
        let unknown = MemoryError::NotAllocated { address };
        if address.wrapping_sub(self.base()) >= window::SIZE {
            return Err(unknown);
        }
        let mut memory = self.memory();
        if resets.is_some_and(|resets| resets != Space::resets(self)) {
            return Ok(());
        }
        memory.free(address as u32).map(|_| ()).ok_or(unknown)
    }

    fn limit_reached(&self, hit: &LimitHit) -> Option<u64> {
        self.tell_limit(hit)
    }

    fn memory_used(&self) -> u64 {
        self.memory().used()
    }

    fn memory_call(&self, call: &Syscall) -> Option<i64> {
        if call.number == libc::SYS_brk as u64 {
            // Down in slices, too.
            let brk = |to: u32| {
                self.memory_step(&Syscall {
                    number: call.number,
                    args: [to.into(), 0, 0, 0, 0, 0],
                })
            };
            let to = call.args[0] as u32;
            let mut now = brk(0)? as u32;
            while to >= window::HEAP && now.saturating_sub(to) > SLICE as u32 {
                now -= SLICE as u32;
                let at = brk(now)?;
                if Space::ending(self) {
                    return Some(at);
                }
            }
        }
        if call.number == libc::SYS_mremap as u64 {
            return Some(self.remap(call.args));
        }
        let mut value = None;
        for (n, slice) in memory::slices(call).enumerate() {
            // Without the heap's lock: who looks takes that of the lanes, which comes first.
            if n > 0 && Space::ending(self) {
                return Some(-i64::from(libc::EINTR));
            }
            value = Some(self.memory_step(&slice)?);
            if value.is_some_and(|value| (-4095..0).contains(&value)) {
                break;
            }
        }
        value
    }

    fn map_file(&self, map: &FileMap<'_>) -> Result<u64, i32> {
        let replaces = map.flags & (libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE) == libc::MAP_FIXED;
        if replaces && map.len > SLICE {
            // What is there goes first, in slices.
            let number = libc::SYS_munmap as u64;
            let args = [map.address, map.len, 0, 0, 0, 0];
            match Space::memory_call(self, &Syscall { number, args }) {
                Some(errno) if errno < 0 => return Err(-errno as i32),
                _ => {}
            }
        }
        let at = self.with_limit(|memory| memory.map_file(map))?;
        Ok(self.base() + u64::from(at))
    }

    fn fork(&self) -> Result<i32, i32> {
        let me = gate::thread_pointer();
        let busy = |lane: &&*mut Lane| {
            // SAFETY: lanes are never unmapped; only atomics are used.
            let lane = unsafe { &***lane };
            lane.active() && lane.thread.load(Ordering::Relaxed) != me
        };
        // The child would have what such a call has half done, and nobody to do the rest.
        if self.lanes().lanes.iter().any(|lane| busy(&lane)) {
            return Err(libc::EAGAIN);
        }
        // SAFETY: the runtime's own state is ready for it (`fork.rs`); in the child the call in progress goes on.
        match unsafe { libc::fork() } {
            0 => {
                if watchdog::wake().is_err() {
                    // Nobody would end what takes too long.
                    // SAFETY: ends the child.
                    unsafe { libc::_exit(127) };
                }
                Ok(0)
            }
            child @ 1.. => Ok(child),
            _ => Err(std::io::Error::last_os_error()
                .raw_os_error()
                .unwrap_or(libc::EAGAIN)),
        }
    }

    fn find(&self, module: Option<&str>, name: &str) -> Option<u64> {
        self.symbol(module, name)
    }

    fn spawn(&self, function: u64, argument: u64, ended: Ended) -> Result<(), SpawnError> {
        let domain = self.me.upgrade().map(Domain::of).ok_or(CallError::Gone)?;
        let entry = domain
            .entry_by_address(function)
            .map_err(|_| SpawnError::NoEntry(function))?;
        entry.spawn(argument, move |result| ended(result.map(drop)))?;
        Ok(())
    }

    fn own(&self) -> *const () {
        std::ptr::from_ref(self).cast()
    }
}
