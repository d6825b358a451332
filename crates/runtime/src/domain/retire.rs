//! The end of a domain, with its last handle.

use super::{Domain, Inner};
use crate::lanes::lane::attention;
use crate::lanes::{watchdog, world};
use crate::load::stubs;
use crate::os::host;
use ringfence_isa::window;
use std::mem::ManuallyDrop;
use std::sync::Weak;
use std::sync::atomic::Ordering;

/// What the handles of a domain share. A host function may drop the last handle while the call that it serves goes on
/// (raw thunks hold none): then the gate still needs the domain, and it stays for ever.
pub(crate) struct Shared(pub(super) ManuallyDrop<Box<Inner>>);

impl std::ops::Deref for Shared {
    type Target = Inner;
    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if self.0.retire() {
            // SAFETY: dropped once, here; nobody is inside, and nobody can enter any more.
            unsafe { ManuallyDrop::drop(&mut self.0) };
        }
    }
}

/// A handle that does not keep its domain alive.
#[derive(Clone)]
pub(crate) struct WeakDomain(pub(super) Weak<Shared>);

impl WeakDomain {
    pub(crate) fn upgrade(&self) -> Option<Domain> {
        self.0.upgrade().map(Domain::of)
    }
}

impl Domain {
    /// Sends all threads that are about to enter the slow way, where they look at their target again.
    pub(crate) fn divert(&self) {
        for &lane in &self.0.lanes().lanes {
            // SAFETY: lanes in the list are this domain's.
            unsafe { (*lane).attention.fetch_or(attention::WAKE, Ordering::AcqRel) };
        }
        watchdog::barrier();
    }
}

impl Inner {
    /// Whether the header's mapping is as every window with few imports has it.
    fn has_plain_header(&mut self) -> bool {
        let few = stubs::start(self.used.len()) == window::STUBS_END - stubs::LEAD;
        few && self.words.is_none() && !self.family.get_mut().has_header()
    }

    /// Gives back what is shared with other domains. False if a thread is inside.
    fn retire(&mut self) -> bool {
        for thunk in self.thunks.get_mut().values() {
            thunk.disable(false);
        }
        for granted in self.grants_of_it() {
            granted.sever();
        }
        self.kill_code();
        let added = self.kill_added();
        super::regions::forget(self.base());
        let mut world = world::lock_plain();
        let set = std::mem::take(&mut *self.lanes());
        if !set.lanes.is_empty() {
            // A thread may be in a gate, past the look at its thunk. First nobody can get further, then nobody is in.
            for &lane in &set.lanes {
                // SAFETY: lanes in the list are this domain's.
                unsafe { (*lane).attention.fetch_or(attention::FAULTED, Ordering::AcqRel) };
            }
            watchdog::barrier();
        }
        let inside = set.lanes.iter().any(|&l| {
            // SAFETY: lanes in the list are this domain's.
            unsafe { (*l).in_disorder() }
        });
        // Host functions that never came back may do so, and look at the domain.
        let inside = inside || !set.lost.is_empty();
        // A thread that tells the host of a limit looks at the domain still.
        let inside = inside || self.stays.load(Ordering::Acquire) != 0;
        if inside {
            // A thread is inside although nobody owns the domain any more. Nothing is unmapped or freed.
            return false;
        }
        for &lane in &set.lanes {
            // SAFETY: nobody is inside, and nobody enters: there is no owner.
            unsafe {
                let berth = (*lane).berth;
                world::revoke(&mut world, self.index, lane);
                berth.unmap_control();
            }
        }
        for berth in &set.free {
            berth.unmap_control();
        }
        if self.has_plain_header() {
            self.window.keep_header();
        }
        world.give_index(self.index);
        drop(world);
        host::give_mappings(self.mappings + added);
        // SAFETY: dropped once, here; nobody is inside.
        unsafe { ManuallyDrop::drop(&mut self.window) };
        true
    }
}
