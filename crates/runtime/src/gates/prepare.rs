//! The slow way in: makes lanes, and says why a call cannot begin.

use crate::domain::limits::LimitHit;
use crate::domain::stay::Stay;
use crate::domain::{Inner, MAX_NESTING};
use crate::lanes::gate::{self, status};
use crate::lanes::lane::{Berth, Lane, Target, attention, gone};
use crate::lanes::last_error::{self, set_error};
use crate::lanes::{signal, tick, watchdog, world};
use crate::os::looks::Looks;
use crate::place;
use core::arch::asm;
use ringfence_core::error::{CallError, HostError, MemoryError};
use ringfence_isa::window;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a call out must leave free on the data stack.
const DATA_MARGIN: u32 = 4096;

/// Why there is no lane.
enum Refusal {
    Error(CallError),
    /// As many threads as may be have one.
    Full(Stay),
    /// Its stacks do not fit under the domain's memory limit.
    Memory(Stay, MemoryError),
}

impl From<CallError> for Refusal {
    fn from(e: CallError) -> Self {
        Refusal::Error(e)
    }
}

/// The host may decide that there are more lanes. An error if it does not.
fn more_lanes(domain: &Inner) -> Result<(), CallError> {
    let limit = domain.max_lanes.load(Ordering::Relaxed);
    match domain.tell_limit(&LimitHit::Lanes { limit: limit.into() }) {
        Some(to) if limit < window::LANE_COUNT => {
            let to = to.min(window::LANE_COUNT.into()) as u32;
            domain.max_lanes.fetch_max(to, Ordering::Relaxed);
            Ok(())
        }
        _ => Err(CallError::NoLane { limit }),
    }
}

/// The host may decide that the domain may have more memory. An error if it does not.
fn more_memory(domain: &Inner, over: MemoryError) -> Result<(), CallError> {
    match over {
        MemoryError::Limit { wanted, used, limit } if domain.raise_memory(wanted, used, limit) => Ok(()),
        over => Err(CallError::Memory(over)),
    }
}

/// A call is about to begin in a domain whose calls are limited, and the lane has no credit. An error if there is none; `None` if
/// the domain is gone.
///
/// # Safety
/// The target is one that a gate was given.
unsafe fn more_calls(target: *const Target, lane: &Lane) -> Result<Option<()>, CallError> {
    let stay = {
        let world = world::lock().ok_or(CallError::Inside)?;
        // SAFETY: the caller's promise.
        let Some(domain) = (unsafe { alive(target, &world) }) else {
            return Ok(None);
        };
        // A lane that was taken from the thread meanwhile gets nothing: the gate makes a new one.
        if !std::ptr::eq(lane.domain.cast(), domain) || domain.lanes.replenish(lane) {
            return Ok(Some(()));
        }
        domain.stay()
    };
    let limit = stay.lanes.call_credit.limit();
    let Some(to) = stay.tell_limit(&LimitHit::Calls { limit }) else {
        return Err(CallError::Calls { limit });
    };
    // Another thread may have used it up before the gate starts again: then the host is asked once more.
    let _world = world::lock().ok_or(CallError::Inside)?;
    stay.lanes.call_credit.raise(to);
    Ok(Some(()))
}

/// Makes a lane for the calling thread in the target's domain; `None` if the domain is gone.
///
/// # Safety
/// The target is one that a gate was given.
unsafe fn create(target: *const Target) -> Result<Option<*mut Lane>, Refusal> {
    let mut world = world::lock().ok_or(CallError::Inside)?;
    // SAFETY: the caller's promise; see `alive` for the domain.
    let Some(domain) = (unsafe { alive(target, &world) }) else {
        return Ok(None);
    };
    let thread = world::this_thread(&mut world)?;
    let mut set = domain.lanes();
    if !set.lanes.is_empty() {
        // A call that faults ends those of other threads by the watchdog, and does not start it then.
        watchdog::start().map_err(|e| CallError::Lane(e.to_string()))?;
    }
    let berth = match set.free.pop() {
        Some(berth) => Ok((berth, true)),
        None if set.empty.is_empty() && set.next >= domain.max_lanes.load(Ordering::Relaxed) => {
            drop(set);
            return Err(Refusal::Full(domain.stay()));
        }
        None => {
            let (shape, mut memory) = (domain.shape(), domain.memory());
            if let Err(over) = memory.charge_stacks(shape.bytes()) {
                drop((memory, set));
                return Err(Refusal::Memory(domain.stay(), over));
            }
            let number = set.empty.pop().unwrap_or_else(|| {
                set.next += 1;
                set.next - 1
            });
            Berth::new(&shape, number)
                .inspect_err(|_| {
                    memory.discharge_stacks(shape.bytes());
                    set.empty.push(number);
                })
                .map(|berth| (berth, false))
        }
    }
    .and_then(|(berth, used)| {
        // A berth that is not clean waits for the next one who needs it.
        domain
            .refresh(&berth, used.then(Looks::default).as_mut())
            .inspect_err(|_| set.free.push(berth))?;
        Ok(berth)
    })
    .map_err(|e: HostError| CallError::Lane(e.to_string()))?;
    let lane = thread.blank_lane(&mut world);
    let low = (berth.start(domain.base()) as u32)
        .wrapping_add(window::LANE_BERTH)
        .wrapping_sub(domain.options.data_stack)
        .wrapping_add(DATA_MARGIN);
    let sequence = 0;
    // SAFETY: a blank lane is used by nobody but its owner, which is this thread, and the watchdog, which looks at
    // atomics only.
    unsafe {
        let l = &mut *lane;
        l.base = domain.base();
        l.thread = AtomicU64::new(gate::thread_pointer());
        l.tid.store(thread.tid(), Ordering::Relaxed);
        l.imports = domain.imports().as_ptr();
        l.import_count = domain.imports().len() as u64;
        l.sequence.store(sequence, Ordering::Relaxed);
        l.again.store(0, Ordering::Relaxed);
        l.credit.store(0, Ordering::Relaxed);
        l.expired.store(u64::MAX, Ordering::Relaxed);
        l.seen.store(u64::MAX, Ordering::Relaxed);
        l.looked_at.store(domain.lanes.looked_at(), Ordering::Relaxed);
        l.ticked.store(u64::MAX, Ordering::Relaxed);
        l.blocked.store(0, Ordering::Relaxed);
        l.looked.store(0, Ordering::Relaxed);
        l.data_low = low;
        l.data_len = domain.options.data_stack - DATA_MARGIN;
        l.domain = std::ptr::from_ref(domain).cast();
        l.shared = &raw const domain.lanes;
        l.berth = berth;
        l.bound.fetch_add(1, Ordering::Relaxed);
        l.poisoned.store(0, Ordering::Relaxed);
        let limit = domain.time_limit.load(Ordering::Relaxed);
        l.limit.store(limit, Ordering::Relaxed);
        let faulted = if domain.faulted() { attention::FAULTED } else { 0 };
        let counted = if domain.lanes.call_credit.is_limited() {
            attention::COUNTED
        } else {
            0
        };
        l.attention
            .store(faulted | counted | attention::WAKE, Ordering::Relaxed);
        l.rewind();
    }
    domain.lanes.first.prepare();
    domain.lanes.enter(&mut set, lane);
    if domain.faulted() {
        // Since the attention was set: who made it so may not have seen the lane.
        // SAFETY: as above.
        unsafe { (*lane).attention.fetch_or(attention::FAULTED, Ordering::AcqRel) };
    }
    thread.bind(domain.index, lane);
    Ok(Some(lane))
}

/// The domain of a target, unless it is gone. A raw thunk keeps its domain from nothing: another thread may close it at
/// any moment. That clears the target's index first and takes the world's lock then, so a domain whose index is found
/// under the lock stays until the lock is released.
///
/// # Safety
/// The target is one that a gate was given. What is returned is not used after the lock is released.
unsafe fn alive<'a>(target: *const Target, _world: &world::Guard) -> Option<&'a Inner> {
    // SAFETY: targets are never freed while they can be called; the domain lives while the lock is held, as said above.
    unsafe { ((*target).index.load(Ordering::Acquire) != 0).then(|| &*(*target).domain.cast::<Inner>()) }
}

/// Whether `gs` holds what is neither this thread's gates' work, nor a window of ours that the thread has inherited, nor nothing, when
/// the thread is about to enter the window at `base`: the host's own, or that of another copy of the runtime, in a domain of which
/// the thread was interrupted. The gate then puts it back when the call is over.
///
/// Called with the thread outside of all domains of this runtime, or refused soon: what windows of ours are found in `gs` are needed
/// by nobody on this thread, since gates set it after they have announced themselves.
fn foreign_gs(base: u64) -> bool {
    let now: u64;
    // SAFETY: reads a register; `host::check` has found the instruction before the first domain was made.
    unsafe { asm!("rdgsbase {}", out(reg) now, options(nomem, nostack, preserves_flags)) };
    // SAFETY: our own thread's words.
    let known = unsafe { &mut (*gate::tls()).gs };
    if now == base || now == *known {
        return false;
    }
    if now != 0 && !place::window::is_ours(now) {
        return true;
    }
    *known = now;
    false
}

/// The slow way in: finds out what is amiss. 1: try again; 2: the same, and `gs` is to be put back when the call
/// is over; 0: the call fails, status and the thread's cell tell why.
pub(crate) unsafe extern "C" fn prepare(target: *const Target, sp: u64) -> u32 {
    let tls = gate::tls();
    let fail = |code: u64| {
        // SAFETY: our own thread's words.
        unsafe { (*tls).status = code };
        0
    };
    let fail_with = |error: CallError| {
        set_error(error);
        fail(status::CELL)
    };
    // SAFETY: the thread's own words; the gate passes a target; lanes are never unmapped.
    unsafe {
        if (*(*tls).current).top.load(Ordering::Relaxed) == 0 {
            return fail(status::INSIDE);
        }
        if sp.wrapping_sub((*tls).alt) < (*tls).alt_size {
            return fail(status::SIGNAL_STACK);
        }
        let index = (*target).index.load(Ordering::Acquire);
        // Asked once the index is known to be 0: the reason is written first.
        let gone = || match (*target).revoked.load(Ordering::Acquire) {
            gone::DOMAIN => fail(status::GONE),
            gone::REMOVED => fail(status::REMOVED),
            _ => fail(status::REVOKED),
        };
        if index == 0 {
            return gone();
        }
        let place = &*(*tls).lanes.byte_add(index as usize);
        let mut lane = place.load(Ordering::Acquire);
        if lane.is_null() {
            lane = match create(target) {
                Ok(Some(lane)) => lane,
                Ok(None) => return gone(),
                Err(Refusal::Full(domain)) => match more_lanes(&domain) {
                    Ok(()) => return 1,
                    Err(e) => return fail_with(e),
                },
                Err(Refusal::Memory(domain, over)) => match more_memory(&domain, over) {
                    Ok(()) => return 1,
                    Err(e) => return fail_with(e),
                },
                Err(Refusal::Error(e)) => return fail_with(e),
            };
            // A handler of ours may have been replaced since; a new lane is the moment to look.
            signal::check_installed();
        }
        let lane = &*lane;
        let shallow = sp.wrapping_sub((*tls).stack) >= (*tls).stack_reserve;
        if !shallow || lane.depth.load(Ordering::Relaxed) >= MAX_NESTING {
            return fail(status::NESTING);
        }
        let bits = lane.attention.load(Ordering::Acquire);
        if bits & attention::DEEP != 0 {
            lane.attention.fetch_and(!attention::DEEP, Ordering::AcqRel);
        }
        if bits & attention::PAUSED != 0 {
            lane.resume();
        }
        if bits & attention::LOOK != 0 {
            // What was removed before the bit was set is seen behind this: the gate starts again, and reads its target once more.
            lane.attention.fetch_and(!attention::LOOK, Ordering::AcqRel);
            return 1;
        }
        if bits & attention::HOLD != 0 {
            // Whoever unlinks or resets holds the world. Afterwards the gate starts again, and finds out whether its target still is one.
            let Some(_world) = world::lock() else {
                return fail(status::INSIDE);
            };
            // With the lock: whoever takes it next may set the bit again, for what this thread must not miss. The lane may not
            // be this thread's any more.
            if std::ptr::eq(place.load(Ordering::Acquire), lane) {
                lane.attention.fetch_and(!attention::HOLD, Ordering::AcqRel);
            }
            return 1;
        }
        if bits & attention::FAULTED != 0 {
            last_error::refuse(lane);
            return 0;
        }
        if bits & attention::ENDING != 0 {
            if !lane.active() {
                lane.attention.fetch_and(!attention::ENDING, Ordering::AcqRel);
            } else if lane.ending() != 0 {
                return fail(status::ENDING);
            } else {
                lane.forget_ending();
            }
        }
        if bits & attention::RESERVE_OPEN != 0 {
            let Some(world) = world::lock() else {
                return fail(status::INSIDE);
            };
            if alive(target, &world).is_none() {
                return gone(); // and the stack with its reserve is unmapped
            }
            lane.attention
                .fetch_and(!attention::RESERVE_OPEN, Ordering::AcqRel);
            lane.berth.close_reserve();
        }
        if bits & attention::WAKE != 0 {
            lane.attention.fetch_and(!attention::WAKE, Ordering::AcqRel);
            if lane.watched() {
                // The host may have blocked the tick since, by a mask that `siglongjmp` has put back for instance.
                signal::unblock();
                if !tick::can_send(lane.tid.load(Ordering::Relaxed)) {
                    let why = "the system lets no thread be sent a signal, by rt_tgsigqueueinfo or tgkill, so no limit would end the call";
                    lane.attention.fetch_or(attention::WAKE, Ordering::AcqRel);
                    return fail_with(CallError::Lane(why.into()));
                }
            }
            if lane.watched()
                && let Err(e) = watchdog::wake()
            {
                // The next call tries it again: without a watchdog none may begin.
                lane.attention.fetch_or(attention::WAKE, Ordering::AcqRel);
                return fail_with(CallError::Lane(e.to_string()));
            }
        }
        if lane.top.load(Ordering::Relaxed) == 0 {
            return fail(status::INSIDE);
        }
        if bits & attention::COUNTED != 0 && !lane.active() && lane.credit.load(Ordering::Relaxed) <= 0 {
            match more_calls(target, lane) {
                Ok(Some(())) => {}
                Ok(None) => return gone(),
                Err(e) => return fail_with(e),
            }
        }
        if foreign_gs((*target).base) {
            return 2;
        }
    }
    1
}
