//! Limits of a domain.

use crate::cancel::Cancel;
use crate::error::DomainError;
use ringfence_isa::{PAGE, window};
use std::time::Duration;

/// Limits of a domain.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DomainOptions {
    /// Most bytes of modules' writable data, heap, anonymous maps and host allocations together. Stacks have their own bound: `max_lanes`
    /// times `data_stack`, `control_stack` and the modules' thread-local variables.
    pub memory_limit: u64,
    /// Bytes of data stack a lane has; at most 15 MiB.
    pub data_stack: u32,
    /// Bytes of control stack a lane has.
    pub control_stack: u32,
    /// How long a call may take, time in host functions included. `None`: for ever.
    pub time_limit: Option<Duration>,
    /// How many threads may be in the domain, at most 63.
    pub max_lanes: u32,
    /// How many processors the domain is told of.
    pub processors: u32,
    /// Whether code linked later may use vector registers although no module that the domain starts with does: then
    /// gates look after them from the beginning. And whether modules added later may import any host
    /// function that the domain is made with, needed so far or not.
    pub extensible: bool,
    /// Most bytes of code that may be linked into the living domain; at most 16 MiB.
    pub code_limit: u32,
    /// Most bytes of images of modules that may be added to the living domain. Their writable data counts
    /// as memory as well, see `memory_limit`.
    pub module_limit: u64,
    /// Bytes that lanes keep for thread-local variables of such modules, at most 1 MiB; at least 8 KiB if `extensible` is set. A module with
    /// the C or C++ library has about 2,400.
    pub thread_local_reserve: u32,
    /// Most processor time that the domain's own code may use in all its life. Calls that are in progress when it is used
    /// up, and all later ones, end with [`FaultKind::TimeLimit`](crate::FaultKind::TimeLimit) within some milliseconds. `None`: no limit, and the
    /// time is not counted; [`Duration::MAX`]: no limit, and it is.
    pub processor_time: Option<Duration>,
    /// Most calls from outside that the domain may get ([`Usage::calls`](crate::Usage), constructors and what other domains call included);
    /// all later ones fail with [`CallError::Calls`](crate::CallError::Calls). It holds exactly, for all threads together. A pool's next
    /// user has them anew. `None`: no limit, and calls cost some nanoseconds less.
    pub call_limit: Option<u64>,
    /// After so many faults the domain cannot be reset any more. `None`: no limit.
    pub fault_limit: Option<u64>,
    /// A word of the host's that ends calls while it is not 0: with [`FaultKind::Interrupted`](crate::FaultKind::Interrupted), within some
    /// milliseconds. `None`: there is none.
    pub cancel: Option<Cancel>,
}

impl Default for DomainOptions {
    fn default() -> Self {
        DomainOptions {
            memory_limit: 1 << 30,
            data_stack: 8 << 20,
            control_stack: 1 << 20,
            time_limit: None,
            max_lanes: window::LANE_COUNT,
            processors: 1,
            extensible: false,
            code_limit: 1 << 20,
            module_limit: 64 << 20,
            thread_local_reserve: 1 << 10,
            processor_time: None,
            call_limit: None,
            fault_limit: None,
            cancel: None,
        }
    }
}

impl DomainOptions {
    /// What lanes keep for thread-local variables of modules that come later.
    pub fn thread_local_room(&self) -> u32 {
        let least = if self.extensible { 8 << 10 } else { 0 };
        self.thread_local_reserve.max(least)
    }

    /// Whether all values can work.
    ///
    /// # Errors
    /// [`DomainError::Option`] names the first that cannot.
    pub fn check(&self) -> Result<(), DomainError> {
        let bad = |option, reason: &str| {
            Err(DomainError::Option {
                option,
                reason: reason.into(),
            })
        };
        if !(1..=window::LANE_COUNT).contains(&self.max_lanes) {
            return bad("max_lanes", "must be 1 to 63");
        }
        if !(64 << 10..=15 << 20).contains(&self.data_stack) || !self.data_stack.is_multiple_of(PAGE as u32) {
            return bad("data_stack", "must be whole pages, 64 KiB to 15 MiB");
        }
        if !(16 << 10..=1 << 30).contains(&self.control_stack)
            || !self.control_stack.is_multiple_of(PAGE as u32)
        {
            return bad("control_stack", "must be whole pages, 16 KiB to 1 GiB");
        }
        if self.code_limit > window::IMAGES_END - window::LINKED {
            return bad("code_limit", "must be at most 16 MiB");
        }
        if self.thread_local_reserve > 1 << 20 {
            return bad("thread_local_reserve", "must be at most 1 MiB");
        }
        if self.call_limit == Some(0) {
            return bad("call_limit", "must not be zero");
        }
        if self.time_limit.is_some_and(|t| t.is_zero()) {
            return bad("time_limit", "must not be zero");
        }
        Ok(())
    }
}
