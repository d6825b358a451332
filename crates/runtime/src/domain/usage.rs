//! What a domain has used.

use super::{Domain, Inner};
use crate::lanes::lane::{Lane, attention};
use crate::lanes::{watchdog, world};
use crate::os::sys;
use crate::outcome::error::HostError;
use ringfence_isa::window;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// What a domain uses and has used. Reading it costs two locks and a look at each lane; calls pay nothing for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Bytes of heap, anonymous maps, host allocations and writable data of modules that were added, now. Limit:
    /// [`DomainOptions::memory_limit`](crate::DomainOptions::memory_limit).
    pub memory: u64,
    /// Bytes of code linked since the domain was made, now. Limit:
    /// [`DomainOptions::code_limit`](crate::DomainOptions::code_limit).
    pub linked: u64,
    /// Bytes of the window that modules added since the domain was made take, now. Limit:
    /// [`DomainOptions::module_limit`](crate::DomainOptions::module_limit).
    pub modules: u64,
    /// Calls from outside (those of constructors too) since the domain was made. A call from a host function that the domain
    /// called is part of the call that it is nested in. Limit:
    /// [`DomainOptions::call_limit`](crate::DomainOptions::call_limit).
    pub calls: u64,
    /// How often it has faulted since it was made; a fault that ends other threads' calls too is one. Limit:
    /// [`DomainOptions::fault_limit`](crate::DomainOptions::fault_limit).
    pub faults: u64,
    /// Processor time in the domain's own code since it was made, if
    /// [`DomainOptions::processor_time`](crate::DomainOptions::processor_time) asks for it; otherwise zero. It is sampled about once a
    /// millisecond: right on the average, and off by some milliseconds.
    pub processor_time: Duration,
    /// Descriptors that its policy has open for it; 0 if the policy does not tell.
    pub descriptors: u64,
    /// Bytes that it has put on disk since it was made, as its policy counts them; 0 if the policy does not tell.
    pub disk: u64,
    /// Threads that have stacks in the domain. Limit: [`DomainOptions::max_lanes`](crate::DomainOptions::max_lanes).
    pub lanes: u32,
    /// How many of them have a call in progress.
    pub active: u32,
    /// How often it was reset.
    pub resets: u64,
    /// How many of the calls in progress have to end, by a limit or an interrupt, and do not because their thread blocks the signal
    /// of [`InitOptions::tick_signal`](crate::InitOptions::tick_signal), which waits for it. They end when the thread takes the signal out of its mask;
    /// a thread's later calls do that.
    pub blocked: u32,
}

impl Inner {
    pub(super) fn usage(&self) -> Usage {
        let memory = self.memory().used();
        let set = self.lanes();
        let (mut calls, mut active, mut blocked) = (set.calls, 0, 0);
        for &lane in &set.lanes {
            // SAFETY: lanes in the list are this domain's; only atomics are used.
            let lane = unsafe { &*lane };
            calls += lane.calls();
            active += u32::from(lane.active());
            let this = lane.ticked.load(Ordering::Relaxed) == lane.sequence.load(Ordering::Relaxed);
            blocked += u32::from(lane.active() && this && lane.blocked.load(Ordering::Relaxed) != 0);
        }
        Usage {
            memory,
            linked: 0,
            modules: 0,
            calls,
            faults: self.faults.load(Ordering::Relaxed),
            processor_time: Duration::from_nanos(self.lanes.time_used.load(Ordering::Relaxed)),
            descriptors: self.policy.descriptors(),
            disk: self.policy.disk(),
            lanes: set.lanes.len() as u32,
            active,
            blocked,
            resets: self.resets.load(Ordering::Acquire),
        }
    }
}

impl Domain {
    /// Gives back the stacks of threads that have no call in progress: about 20 KiB and 8 mappings for each. Their next call makes
    /// them again, with fresh thread-local variables, as for a new thread. How many were given back.
    ///
    /// Heap that a pool keeps accessible for the next user goes, too. For domains that are to stay idle for some time.
    ///
    /// # Errors
    /// [`HostError`] if the system refuses.
    pub fn trim(&self) -> Result<usize, HostError> {
        let inner = &*self.0;
        let mut world = world::lock_plain();
        let mut set = inner.lanes();
        inner.memory().give_up_kept()?;
        // Whoever is on the way in sees the bit after it has announced itself, waits for the world, and starts again.
        for &lane in &set.lanes {
            // SAFETY: lanes in the list are this domain's.
            unsafe { (*lane).attention.fetch_or(attention::HOLD, Ordering::AcqRel) };
        }
        watchdog::barrier();
        // SAFETY: as above.
        let idle = |lane: &*mut Lane| unsafe {
            !(**lane).active() && (**lane).poisoned.load(Ordering::Acquire) == 0
        };
        for lane in set.lanes.iter().copied().filter(idle).collect::<Vec<_>>() {
            set.lanes.retain(|&l| l != lane);
            // SAFETY: as above; its thread is not in, and cannot come in by this lane any more.
            unsafe {
                set.calls += (*lane).calls();
                inner.lanes.call_credit.take_back(&(*lane).credit);
                set.free.push((*lane).slot);
                world::revoke(&mut world, inner.index, lane);
            }
        }
        let mut count = 0;
        if set.lanes.is_empty() && set.lost.is_empty() && !set.free.is_empty() {
            // All of the lanes' area at once: then its page tables go, too.
            let area = inner.base() + u64::from(window::LANES);
            // SAFETY: lanes' slots of the domain's own window, which nobody uses, and what is inaccessible above them.
            unsafe {
                sys::map_anonymous(
                    area,
                    window::SIZE - u64::from(window::LANES),
                    libc::PROT_NONE,
                    true,
                )?
            };
            for slot in std::mem::take(&mut set.free) {
                slot.unmap_control();
                set.empty.push(slot.number);
                count += 1;
            }
        }
        while let Some(slot) = set.free.pop() {
            if let Err(e) = slot.unmap(inner.base()) {
                set.free.push(slot);
                return Err(e);
            }
            set.empty.push(slot.number);
            count += 1;
        }
        Ok(count)
    }

    /// What the domain uses and has used. From any thread, at any time.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let modules = {
            let _world = world::lock_plain();
            self.0.added_bytes()
        };
        Usage {
            linked: self.linked_bytes().into(),
            modules,
            ..self.0.usage()
        }
    }
}
