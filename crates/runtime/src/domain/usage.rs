//! What a domain has used.

use super::{Domain, Inner, Usage};
use crate::lanes::lane::{Lane, attention};
use crate::lanes::{watchdog, world};
use crate::os::sys;
use ringfence_core::error::HostError;
use ringfence_isa::window;
use std::sync::atomic::Ordering;
use std::time::Duration;

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
        let mut usage = Usage::default();
        usage.memory = memory;
        usage.calls = calls;
        usage.faults = self.faults.load(Ordering::Relaxed);
        usage.processor_time = Duration::from_nanos(self.lanes.time_used.load(Ordering::Relaxed));
        usage.descriptors = self.policy.descriptors();
        usage.disk = self.policy.disk();
        usage.lanes = set.lanes.len() as u32;
        usage.active = active;
        usage.blocked = blocked;
        usage.resets = self.resets.load(Ordering::Acquire);
        usage
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
        let stacks = inner.shape().bytes();
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
            inner.lanes.remove(&mut set, lane);
            // SAFETY: as above; its thread is not in, and cannot come in by this lane any more.
            unsafe {
                set.calls += (*lane).calls();
                inner.lanes.call_credit.take_back(&(*lane).credit);
                set.free.push((*lane).berth);
                world::revoke(&mut world, inner.index, lane);
            }
        }
        if set.lanes.is_empty() && set.lost.is_empty() {
            inner.lanes.first.give_room_back();
        }
        let mut count = 0;
        if set.lanes.is_empty() && set.lost.is_empty() && !set.free.is_empty() {
            // All of the lanes' area at once: then its page tables go, too.
            let area = inner.base() + u64::from(window::LANES);
            // SAFETY: lanes' berths of the domain's own window, which nobody uses, and what is inaccessible above them.
            unsafe {
                sys::map_anonymous(
                    area,
                    window::SIZE - u64::from(window::LANES),
                    libc::PROT_NONE,
                    true,
                )?
            };
            for berth in std::mem::take(&mut set.free) {
                berth.unmap_control();
                inner.memory().discharge_stacks(stacks);
                set.empty.push(berth.number);
                count += 1;
            }
        }
        while let Some(berth) = set.free.pop() {
            if let Err(e) = berth.unmap(inner.base()) {
                set.free.push(berth);
                return Err(e);
            }
            inner.memory().discharge_stacks(stacks);
            set.empty.push(berth.number);
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
        let mut usage = self.0.usage();
        usage.code = self.code_bytes().into();
        usage.modules = modules;
        usage
    }
}
