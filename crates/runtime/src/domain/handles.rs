//! What the host calls code by that may go while the domain lives: a piece that was added, or a module that was added.

use super::{Inner, Signature, Thunks};
use crate::domain::grant::Granted;
use crate::lanes::lane::{Target, gone};
use crate::lanes::thunk::Thunk;
use crate::lanes::world;
use crate::os::lock::{Lock, Locked, Rank};
use ringfence_core::error::HostError;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ffi::c_void;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

/// The code of the thunk that there is, or of a new one.
pub(super) fn code_of(
    thunks: &mut Thunks,
    function: (u64, Signature),
    make: impl FnOnce() -> Result<Thunk, HostError>,
) -> Result<*const c_void, HostError> {
    Ok(match thunks.entry(function) {
        Entry::Occupied(thunk) => thunk.get().code(),
        Entry::Vacant(place) => place.insert(make()?).code(),
    })
}

/// Everything that holds an address of such code outside of the domain.
pub(crate) struct Handles(Lock<Live>);

impl Default for Handles {
    fn default() -> Self {
        Self(Lock::new(Rank::Handles, Live::default()))
    }
}

#[derive(Default)]
struct Live {
    dead: bool,
    /// By entry and words of stack arguments.
    targets: BTreeMap<(u64, u32), Arc<Target>>,
    thunks: Thunks,
    /// What other domains were granted.
    grants: Vec<Weak<Granted>>,
}

impl Handles {
    fn live(&self) -> Locked<'_, Live> {
        self.0.lock()
    }

    /// The target for calls with so many words of stack arguments; one without an index once the code is gone.
    /// `None` in a signal handler that interrupted the runtime.
    pub(super) fn target(&self, domain: &Inner, entry: u64, words: u32) -> Option<Arc<Target>> {
        // A fork must not find the handles locked.
        let _world = world::lock()?;
        Some(self.target_locked(domain, entry, words))
    }

    /// As [`target`](Self::target), with the world locked.
    pub(super) fn target_locked(&self, domain: &Inner, entry: u64, words: u32) -> Arc<Target> {
        let mut live = self.live();
        let dead = live.dead;
        let target = live.targets.entry((entry, words)).or_insert_with(|| {
            let target = domain.target_of_words(entry, words, gone::REMOVED);
            if dead {
                target.index.store(0, Ordering::Relaxed);
            }
            Arc::new(target)
        });
        target.clone()
    }

    /// A plain function pointer. Once the code is gone, to a thunk that fails.
    pub(super) fn thunk(
        &self,
        entry: u64,
        signature: Signature,
        make: impl FnOnce(bool) -> Result<Thunk, HostError>,
    ) -> Result<*const c_void, HostError> {
        let mut live = self.live();
        let dead = live.dead;
        code_of(&mut live.thunks, (entry, signature), || make(!dead))
    }

    /// Notes that another domain may call it.
    pub(super) fn granted(&self, granted: &Arc<Granted>) {
        let mut live = self.live();
        live.grants.retain(|granted| granted.strong_count() > 0);
        live.grants.push(Arc::downgrade(granted));
        if live.dead {
            granted.sever();
        }
    }

    /// From now on the host's calls fail. Those that have looked at a target before look again: see
    /// [`HOLD`](crate::lanes::lane::attention::HOLD).
    pub(super) fn kill(&self) {
        let mut live = self.live();
        live.dead = true;
        for target in live.targets.values() {
            target.index.store(0, Ordering::Release);
        }
        for thunk in live.thunks.values() {
            thunk.disable(false);
        }
        for granted in live.grants.drain(..).filter_map(|granted| granted.upgrade()) {
            granted.sever();
        }
    }
}
