//! Limits of a domain.

use crate::error::DomainError;
use ringfence_isa::{PAGE, window};
use std::time::Duration;

/// Limits of a domain.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DomainOptions {
    /// Most bytes of heap, anonymous maps and host allocations together.
    pub heap_limit: u64,
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
    /// gates look after them from the beginning.
    pub linkable: bool,
    /// Most bytes of code that may be linked into the living domain; at most 16 MiB.
    pub link_limit: u32,
    /// Most processor time that the domain's own code may use in all its life. Calls that are in progress when it is used
    /// up, and all later ones, end with [`FaultKind::TimeLimit`](crate::FaultKind::TimeLimit) within some milliseconds. `None`: no limit, and the
    /// time is not counted; [`Duration::MAX`]: no limit, and it is.
    pub processor_time: Option<Duration>,
    /// After so many faults the domain cannot be reset any more. `None`: no limit.
    pub fault_limit: Option<u64>,
}

impl Default for DomainOptions {
    fn default() -> Self {
        DomainOptions {
            heap_limit: 1 << 30,
            data_stack: 8 << 20,
            control_stack: 1 << 20,
            time_limit: None,
            max_lanes: window::LANE_COUNT,
            processors: 1,
            linkable: false,
            link_limit: 1 << 20,
            processor_time: None,
            fault_limit: None,
        }
    }
}

impl DomainOptions {
    pub(super) fn check(&self) -> Result<(), DomainError> {
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
        if self.link_limit > window::IMAGES_END - window::LINKED {
            return bad("link_limit", "must be at most 16 MiB");
        }
        if self.time_limit.is_some_and(|t| t.is_zero()) {
            return bad("time_limit", "must not be zero");
        }
        Ok(())
    }
}
