//! What a domain has used.

use std::time::Duration;

/// What a domain uses and has used. Reading it costs two locks and a look at each lane; calls pay nothing for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Bytes of heap, anonymous maps, host allocations, writable data of modules, and stacks of threads, now. Limit:
    /// [`DomainOptions::memory_limit`](crate::DomainOptions::memory_limit).
    pub memory: u64,
    /// Bytes of code added since the domain was made, now. Limit:
    /// [`DomainOptions::code_limit`](crate::DomainOptions::code_limit).
    pub code: u64,
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
    /// that ends calls, which waits for it. They end when the thread takes the signal out of its mask; a thread's later calls do that.
    pub blocked: u32,
}
