//! Calling functions of a domain.

use super::handles::{Handles, code_of};
use super::{Call, Domain, Inner, MAX_STACK_WORDS, Returned, Signature, WeakDomain};
use crate::domain::grant::{Grant, Granted};
use crate::lanes::gate::{self, RawCall};
use crate::lanes::lane::{Target, gone};
use crate::lanes::last_error;
use crate::lanes::thunk::Thunk;
use crate::lanes::world;
use crate::load::stubs;
use ringfence_core::Reporting;
use ringfence_core::error::{CallError, GrantError, HostError};
use std::ffi::c_void;
use std::mem::offset_of;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A function of a domain.
#[derive(Clone)]
pub struct Entry {
    pub(super) domain: Domain,
    pub(super) target: Arc<Target>,
    /// Set if its code came to the living domain and may go again.
    pub(super) handles: Option<Arc<Handles>>,
}

impl Entry {
    /// The domain.
    #[must_use]
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// Address of the function.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.target.entry
    }

    /// Calls it.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn call(&self, call: &mut Call<'_>) -> Result<Returned, CallError> {
        if call.stack.len() > MAX_STACK_WORDS {
            return Err(CallError::Arguments {
                given: call.stack.len(),
                limit: MAX_STACK_WORDS,
            });
        }
        let words = call.stack.len() as u32;
        let raw = RawCall {
            // Not copies: the processor would wait, to read in pieces of 16 bytes what was just written in pieces of 8.
            ints: &raw const call.ints,
            floats: &raw const call.floats,
            stack: call.stack.as_ptr(),
            words: call.stack.len() as u64,
        };
        let returned = match &self.handles {
            // The gate must see the very target that removing code changes, not a copy. It looks at it again after it has
            // announced itself and found that something was removed.
            // SAFETY: the entry is one that the verifier knows, as long as the target has its index; the domain lives as long
            // as `self`.
            _ if words == 0 => unsafe { gate::call(&self.target, &raw) },
            None => {
                let target = self
                    .domain
                    .0
                    .target_of_words(self.target.entry, words, gone::DOMAIN);
                // SAFETY: as above.
                unsafe { gate::call(&target, &raw) }
            }
            Some(handles) => {
                let target = handles
                    .target(&self.domain.0, self.target.entry, words)
                    .ok_or(CallError::Inside)?;
                // SAFETY: as above.
                unsafe { gate::call(&target, &raw) }
            }
        };
        if last_status() == 0 {
            Ok(returned)
        } else {
            Err(take_error().unwrap_or(CallError::Gone))
        }
    }

    /// What callers are told once it is gone, unless the host took it away from them.
    fn gone(&self) -> u32 {
        if self.handles.is_some() {
            gone::REMOVED
        } else {
            gone::DOMAIN
        }
    }

    /// Makes it a function that another domain may call.
    pub(crate) fn grant(&self, signature: &Signature) -> Result<Grant, GrantError> {
        let inner = &self.domain.0;
        let target = inner.target_for(self.target.entry, signature, self.gone());
        let granted = Granted::new(target, signature, WeakDomain(Arc::downgrade(inner)))?;
        inner.remember(&granted);
        if let Some(handles) = &self.handles {
            handles.granted(&granted);
        }
        Ok(Grant(granted))
    }

    /// A plain C function pointer that calls this entry; arguments and results in C's own registers. When the call fails
    /// the result is 0, [`last_status`] is not 0, and [`take_error`] tells why.
    ///
    /// The pointer is good while the domain lives; afterwards it fails with [`CallError::Gone`].
    ///
    /// # Panics
    /// If there is no memory for another thunk: see [`try_thunk`](Self::try_thunk).
    #[must_use]
    pub fn thunk(&self, signature: Signature) -> *const c_void {
        self.try_thunk(signature).expect("memory for a thunk")
    }

    /// As [`thunk`](Self::thunk).
    ///
    /// # Errors
    /// [`HostError`] if the system has no memory for another thunk.
    pub fn try_thunk(&self, signature: Signature) -> Result<*const c_void, HostError> {
        let inner = &self.domain.0;
        let make = |alive: bool| {
            let target = inner.target_for(self.target.entry, &signature, self.gone());
            if !alive {
                target.index.store(0, Ordering::Relaxed);
            }
            Thunk::new(target, &signature)
        };
        if let Some(handles) = &self.handles {
            return handles.thunk(self.target.entry, signature, make);
        }
        code_of(&mut inner.thunks(), (self.target.entry, signature), || make(true))
    }
}

impl Inner {
    /// Notes that somebody may call a function of this domain.
    fn remember(&self, granted: &Arc<Granted>) {
        let mut all = self.granted.lock();
        if all.len() == all.capacity() {
            all.retain(|granted| granted.strong_count() > 0);
        }
        all.push(Arc::downgrade(granted));
    }
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry")
            .field("address", &format_args!("{:#x}", self.address()))
            .finish()
    }
}

/// The [tag](Domain::set_tag) of the innermost domain that has called out on this thread; 0 if none has.
#[must_use]
pub fn current_tag() -> u64 {
    // A lane with a call in progress has a domain that stays.
    let lane = world::innermost();
    let than = lane.map_or(u64::MAX, |lane| lane.host_sp.load(Ordering::Relaxed));
    let elsewhere = ringfence_core::calling::further_in(than);
    elsewhere.unwrap_or_else(|| lane.map_or(0, |lane| lane.domain().tag.load(Ordering::Relaxed)))
}

pub use last_error::{last_call, restore_call, save_call};

/// Whether the last call through a thunk on this thread failed: 0 means it succeeded.
#[inline]
#[must_use]
pub fn last_status() -> u64 {
    // SAFETY: the calling thread's own words.
    unsafe { (*gate::tls()).status }
}

/// How other back ends set what [`last_status`] and [`take_error`] tell.
#[must_use]
pub fn reporting() -> Reporting {
    Reporting {
        status: i64::from(stubs::tls_offset()) + offset_of!(gate::Tls, status) as i64,
        fail: last_error::set_error,
        take: last_error::take_error,
    }
}

/// Why the last failed call through a thunk on this thread failed; empties its cell.
#[must_use]
pub fn take_error() -> Option<CallError> {
    last_error::take_error()
}
