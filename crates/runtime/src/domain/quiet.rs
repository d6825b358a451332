//! Moments in which no other thread is in a domain, for code to be taken away.

use super::Inner;
use crate::lanes::gate;
use crate::lanes::lane::{Lane, attention};
use crate::lanes::watchdog;
use crate::os::clock;
use ringfence_core::error::InUse;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many nanoseconds to wait for other threads to leave the domain.
const PATIENCE: u64 = 100_000;

/// Waits until no other thread is in the domain and sees to it that nobody enters while the world is locked, which it is. The
/// calling thread's own lane, if it has a call in progress; an error with the number of others that stay inside.
fn quiet(domain: &Inner) -> Result<Option<&Lane>, usize> {
    let set = domain.lanes();
    for &lane in &set.lanes {
        // SAFETY: lanes in the list are this domain's.
        unsafe { (*lane).attention.fetch_or(attention::HOLD, Ordering::AcqRel) };
    }
    // Whoever has not announced a call yet will see the bit, and wait for the world.
    watchdog::barrier();
    let me = gate::thread_pointer();
    let deadline = clock::now() + PATIENCE;
    loop {
        let (mut own, mut others) = (None, 0);
        for &lane in &set.lanes {
            // SAFETY: as above; lanes live as long as the domain has them.
            let lane: &Lane = unsafe { &*lane };
            if !lane.active() {
                continue;
            }
            // With a top of 0 this thread has interrupted the domain: it is in a signal handler.
            if lane.thread.load(Ordering::Relaxed) == me && lane.top.load(Ordering::Relaxed) != 0 {
                own = Some(lane);
            } else {
                others += 1;
            }
        }
        if others == 0 {
            return Ok(own);
        }
        if clock::now() >= deadline {
            return Err(others);
        }
        std::thread::yield_now();
    }
}

/// Whether a frame on the lane, which is the calling thread's own and out in a host function, returns to one of certain
/// offsets in the window.
fn on_stack(domain: &Inner, lane: &Lane, contains: impl Fn(u64) -> bool) -> bool {
    let top = lane.top.load(Ordering::Relaxed);
    // The words include registers that were pushed: one that looks like an address behind a call keeps the code in place.
    (top..lane.berth.control_top()).step_by(8).any(|at| {
        // SAFETY: the used part of the lane's control stack.
        let word = unsafe { &*(at as *const AtomicU64) }.load(Ordering::Relaxed);
        contains(word.wrapping_sub(domain.base()))
    })
}

/// Whether no call is in what `contains` tells, so that it can go now. The calling thread's lane, if it has a call in progress
/// elsewhere in the domain.
pub(super) fn may_go<'a>(
    domain: &'a Inner,
    name: &str,
    contains: impl Fn(u64) -> bool,
) -> Result<Option<&'a Lane>, InUse> {
    let own = quiet(domain).map_err(|lanes| InUse::Busy {
        name: name.into(),
        lanes,
    })?;
    match own {
        Some(lane) if on_stack(domain, lane, contains) => Err(InUse::OnStack { name: name.into() }),
        _ => Ok(own),
    }
}

/// Something whose place has to wait until calls that were in progress have ended.
pub(super) struct Grave<T> {
    pub what: T,
    calls: Vec<(*const Lane, u64)>,
}

// SAFETY: lanes are never unmapped; only their atomics are used.
unsafe impl<T: Send> Send for Grave<T> {}

impl<T> Grave<T> {
    /// Waits for the present call on the lane.
    pub(super) fn new(what: T, lane: &Lane) -> Grave<T> {
        Grave {
            what,
            calls: vec![(lane, lane.sequence.load(Ordering::Acquire))],
        }
    }

    /// Waits for all present calls in the domain. Calls that begin from now on must not be able to reach it.
    pub(super) fn of_all(what: T, domain: &Inner) -> Grave<T> {
        // SAFETY: lanes in the list are this domain's; only atomics are used.
        let lanes = domain
            .lanes()
            .lanes
            .iter()
            .map(|&l| unsafe { &*l })
            .collect::<Vec<_>>();
        // Whoever has not announced a call yet comes later.
        watchdog::barrier();
        let active = lanes.into_iter().filter(|l| l.active());
        let calls = active
            .map(|l| (std::ptr::from_ref(l), l.sequence.load(Ordering::Acquire)))
            .collect();
        Grave { what, calls }
    }

    /// Whether one of those calls goes on.
    pub(super) fn waits(&self) -> bool {
        self.calls.iter().any(|&(lane, sequence)| {
            // SAFETY: lanes are never unmapped.
            let lane = unsafe { &*lane };
            lane.active() && lane.sequence.load(Ordering::Acquire) == sequence
        })
    }
}
