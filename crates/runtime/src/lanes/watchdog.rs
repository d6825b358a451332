//! The watchdog: ends calls that take too long or were interrupted.
//!
//! Gates only count calls. A thread of ours looks at the counts while calls with a limit are in progress: about once a
//! millisecond where time is limited, every four where only a word of the host's may end them. It sleeps otherwise; the
//! first call after that wakes it (`WAKE` sends it the slow way in). A call that has to end is marked; if the domain's own
//! code is running, a signal makes it leave; if not, the gate looks at the mark on the way back.

use crate::lanes::lane::{Lane, attention, looked_at};
use crate::lanes::set::Lanes;
use crate::lanes::{all, signal, tick};
use crate::os::lock::{Lock, Rank};
use crate::os::{clock, file};
use ringfence_core::error::HostError;
use ringfence_core::{Text, thread};
use std::fmt::Write;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const NONE: u32 = 0;
const RUNNING: u32 = 1;
const PARKED: u32 = 2;
/// Running, and to look once more before it waits.
const NUDGED: u32 = 3;

static STATE: AtomicU32 = AtomicU32::new(NONE);
static STARTING: Lock<()> = Lock::new(Rank::Watchdog, ());

const TICK_NS: u64 = 1_000_000;
/// The same where no lane has a limit of time or of processor time. Looks are what it costs: a wake-up takes some ten microseconds of a
/// processor, and a person or a protocol that cancels notices no four milliseconds.
const WORD_NS: u64 = 4_000_000;
/// How soon a signal that found the thread in a gate is sent again.
const AGAIN_NS: u64 = 100_000;
/// So many quiet ticks, and the watchdog goes to sleep.
const QUIET: u32 = 50;

/// Starts the watchdog or makes it look now.
pub(crate) fn wake() -> Result<(), HostError> {
    start()?;
    nudge();
    Ok(())
}

/// Makes the watchdog look now, if there is one: there is one if a domain has more than one lane, or a lane has a limit. Async-signal-safe.
pub(crate) fn nudge() {
    set_nudged(&STATE);
    futex_wake();
}

/// If it is looking, it may have passed what it is nudged for: it does not wait on this state.
fn set_nudged(state: &AtomicU32) {
    let _ = state.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |now| {
        (now != NONE).then_some(NUDGED)
    });
}

/// In a child: its watchdog did not come along.
pub(crate) fn forget() {
    STATE.store(NONE, Ordering::Release);
}

/// The lock, held until what is returned goes: for `fork`.
pub(crate) fn hold() -> Box<dyn std::any::Any> {
    Box::new(STARTING.lock())
}

/// Starts the watchdog, if it is not there.
pub(crate) fn start() -> Result<(), HostError> {
    if STATE.load(Ordering::Acquire) != NONE {
        return Ok(());
    }
    let _guard = STARTING.lock();
    if STATE.load(Ordering::Acquire) != NONE {
        return Ok(());
    }
    barrier();
    thread::start(c"ringfence-watch", 128 << 10, run).map_err(|source| HostError::Os {
        what: "starting the watchdog",
        source,
    })?;
    // Not before: whoever finds it running relies on it. It may have got further already.
    let _ = STATE.compare_exchange(NONE, RUNNING, Ordering::AcqRel, Ordering::Relaxed);
    Ok(())
}

/// How often the calling thread looks in the watchdog's place: some milliseconds.
const INSTEAD: u32 = 100;

/// Does the watchdog's work for a moment, if it cannot be started: calls that were marked end. Those that are out in the host look at
/// their marks on the way back.
pub(crate) fn instead() {
    // The mark is before the gate's look at it, or the gate's call before ours.
    barrier();
    for _ in 0..INSTEAD {
        let marked = all::all().any(|lane| lane.active() && lane.ending() != 0);
        if !marked || STATE.load(Ordering::Acquire) != NONE {
            return;
        }
        look(clock::now());
        std::thread::sleep(std::time::Duration::from_nanos(AGAIN_NS));
    }
}

fn run() {
    let _ = STATE.compare_exchange(NONE, RUNNING, Ordering::AcqRel, Ordering::Relaxed);
    // SAFETY: sets the calling thread's own timer slack.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 20_000u64, 0u64, 0u64, 0u64) };
    let mut quiet = 0;
    loop {
        // Before the look: a nudge from here on is not lost.
        STATE.swap(RUNNING, Ordering::AcqRel);
        let now = clock::now();
        let (busy, next) = look(now);
        if LOOKS.load(Ordering::Relaxed).is_multiple_of(64) {
            signal::check_installed_if_free();
        }
        quiet = if busy { 0 } else { quiet + 1 };
        if quiet > QUIET {
            STATE.store(PARKED, Ordering::SeqCst);
            if !park() {
                futex_wait(PARKED, None);
            }
            LAST.store(0, Ordering::Relaxed);
            LOOKS.fetch_add(1, Ordering::Relaxed);
            quiet = 0;
            continue;
        }
        futex_wait(RUNNING, Some(next.saturating_sub(now).max(1_000)));
    }
}

/// Makes the next call in every lane wake us; then looks once more. Whether a call is in progress.
fn park() -> bool {
    for lane in all::all() {
        if lane.watched() {
            lane.attention.fetch_or(attention::WAKE, Ordering::SeqCst);
        }
    }
    // The gate stores `host_sp` and then loads `attention`, without a fence between: this is the fence.
    barrier();
    look(clock::now()).0
}

/// A round of the watchdog.
#[derive(Clone, Copy)]
struct Look {
    number: u64,
    /// Nanoseconds since the one before; 0 if the watchdog has slept.
    since: u64,
}

/// When the watchdog looked last, 0 if it has slept since; and how often it has looked.
static LAST: AtomicU64 = AtomicU64::new(0);
static LOOKS: AtomicU64 = AtomicU64::new(1);

/// One round: who has to end, and when to look again. Whether anything has to be watched.
///
/// It waits for nobody: a signal handler may have interrupted whoever has a lock or the heap, and be in a call whose time is up.
fn look(now: u64) -> (bool, u64) {
    let this = Look {
        number: LOOKS.fetch_add(1, Ordering::Relaxed) + 1,
        since: match LAST.swap(now, Ordering::Relaxed) {
            0 => 0,
            last => now.saturating_sub(last),
        },
    };
    let next = all::all()
        .filter(|lane| lane.active())
        .filter_map(|lane| all::look(lane, |shared| look_at(lane, shared, now, this)).flatten())
        .min();
    (
        next.is_some(),
        next.unwrap_or(u64::MAX).min(now + pace(all::all())),
    )
}

/// How long to wait at most: of lanes without a call in progress, too, since theirs begin without a word to us. A lane that gets a limit
/// has `WAKE` set, so that its next call makes us look again, and find it.
fn pace<'a>(mut lanes: impl Iterator<Item = &'a Lane>) -> u64 {
    if lanes.any(Lane::is_timed) {
        TICK_NS
    } else {
        WORD_NS
    }
}

/// The same for one lane; `None` if nothing has to be watched there.
fn look_at(lane: &Lane, shared: &Lanes, now: u64, this: Look) -> Option<u64> {
    let mut next = None;
    let mut at = |time: u64| next = Some(next.map_or(time, |before: u64| before.min(time)));
    let sequence = lane.sequence.load(Ordering::Acquire);
    let limit = lane.limit.load(Ordering::Relaxed);
    if lane.looked_at.load(Ordering::Relaxed) != looked_at::NOT {
        at(now + WORD_NS);
        if shared.timed && charge(lane, shared, this) {
            mark(lane, sequence, attention::TIME);
        }
        if shared.is_cancelled() {
            mark(lane, sequence, attention::INTERRUPT);
        }
    }
    if limit != 0 {
        let Some(stood) = lane.stood_still(now) else {
            return Some(now + AGAIN_NS);
        };
        if lane.seen.load(Ordering::Relaxed) != sequence {
            lane.seen.store(sequence, Ordering::Relaxed);
            lane.since.store(now, Ordering::Relaxed);
            lane.waited_before.store(stood, Ordering::Relaxed);
        }
        let stood = stood.saturating_sub(lane.waited_before.load(Ordering::Relaxed));
        let alone = lane
            .since
            .load(Ordering::Relaxed)
            .saturating_add(limit)
            .saturating_add(stood);
        let deadline = match lane.deadline.load(Ordering::Relaxed) {
            0 => alone,
            together => alone.min(together),
        };
        if deadline <= now {
            mark(lane, sequence, attention::TIME);
            at(now + TICK_NS);
        } else {
            at(deadline);
        }
    }
    if lane.attention.load(Ordering::Acquire) & attention::ENDING != 0
        && lane.expired.load(Ordering::Acquire) == sequence
    {
        at(now + TICK_NS);
        // In the domain, or about to be; when it is out in the host the gate looks on the way back.
        if lane.top.load(Ordering::Acquire) == 0 {
            at(now + remind(lane, sequence));
        } else if let Some(callee) = along(lane) {
            // It waits for another domain, which has to end first.
            mark(callee, callee.sequence.load(Ordering::Acquire), attention::TIME);
            at(now + remind(callee, callee.sequence.load(Ordering::Acquire)));
        }
    }
    next
}

/// After so many ticks without effect we ask what becomes of them, and go slower.
const PATIENCE: u32 = 20;
/// How many looks apart.
const ASK: u32 = 16;

/// Sends the thread of a lane whose call has to end a tick; none while it has one pending, since others would queue behind it. In how many
/// nanoseconds to look again.
fn remind(lane: &Lane, sequence: u64) -> u64 {
    let tid = lane.tid.load(Ordering::Relaxed);
    if lane.ticked.swap(sequence, Ordering::Relaxed) != sequence {
        lane.ticks.store(0, Ordering::Relaxed);
        lane.pending.store(0, Ordering::Relaxed);
        lane.blocked.store(0, Ordering::Relaxed);
    }
    let looks = lane.ticks.fetch_add(1, Ordering::Relaxed);
    if looks < PATIENCE {
        tick::send(tid);
        return AGAIN_NS;
    }
    if looks.is_multiple_of(ASK) {
        let (pending, blocked) = waiting(tid);
        lane.blocked
            .store(u32::from(pending && blocked), Ordering::Relaxed);
        if pending && blocked {
            // The thread's next call takes the signal out of its mask.
            lane.attention.fetch_or(attention::WAKE, Ordering::AcqRel);
        }
        lane.pending.store(u32::from(pending), Ordering::Relaxed);
    }
    if lane.pending.load(Ordering::Relaxed) == 0 {
        tick::send(tid);
    }
    TICK_NS
}

/// Whether a tick waits for the thread, and whether the thread blocks it. Neither, if the system does not tell.
fn waiting(tid: i32) -> (bool, bool) {
    let mut path = Text::<64>::EMPTY;
    let _ = write!(path, "/proc/self/task/{tid}/status\0");
    let (mut pending, mut blocked) = (false, false);
    file::lines(path.as_str(), |line| {
        let has = |name: &[u8]| {
            let set = line.strip_prefix(name)?.trim_ascii();
            let set = u64::from_str_radix(std::str::from_utf8(set).ok()?, 16).ok()?;
            Some(set >> (tick::number() - 1) & 1 != 0)
        };
        pending = has(b"SigPnd:").unwrap_or(pending);
        blocked = has(b"SigBlk:").unwrap_or(blocked);
    });
    (pending, blocked)
}

/// The lane in which the thread of `lane` is now, if it got there by calls from domain to domain only: a limit holds for what
/// a domain has others do. What the host does in between ends when it returns.
fn along(lane: &Lane) -> Option<&Lane> {
    let tid = lane.tid.load(Ordering::Relaxed);
    let mut from = lane;
    loop {
        if from.in_callee.load(Ordering::Acquire) == 0 {
            return None;
        }
        let below = from.host_sp.load(Ordering::Acquire);
        // The next call in on the same stack, which grows down.
        let next = all::all()
            .filter(|l| l.tid.load(Ordering::Relaxed) == tid && l.active())
            .filter(|l| l.host_sp.load(Ordering::Acquire) < below)
            .max_by_key(|l| l.host_sp.load(Ordering::Acquire))?;
        if next.top.load(Ordering::Acquire) == 0 {
            return Some(next);
        }
        from = next;
    }
}

/// Charges the domain for the time since the last look if the thread is in the domain's own code now: over many looks each
/// gets its share. Whether the domain's time is used up.
fn charge(lane: &Lane, shared: &Lanes, look: Look) -> bool {
    let inside = lane.top.load(Ordering::Acquire) == 0;
    let used = clock::thread_time(lane.tid.load(Ordering::Relaxed));
    let before = lane.processor.swap(used, Ordering::Relaxed);
    let again = lane.looked.swap(look.number, Ordering::Relaxed) + 1 == look.number;
    let ran = match (inside, again) {
        (false, _) => 0,
        // The thread may have waited for a processor.
        (true, true) => used.saturating_sub(before).min(2 * TICK_NS),
        (true, false) => look.since.min(TICK_NS),
    };
    shared.charge(ran)
}

fn mark(lane: &Lane, sequence: u64, bit: u32) {
    lane.expired.store(sequence, Ordering::Release);
    lane.attention.fetch_or(bit, Ordering::AcqRel);
}

/// A full fence in every thread of the process: the other half of the gate's missing fence.
pub(crate) fn barrier() {
    const REGISTER: i32 = 1 << 4;
    const EXPEDITED: i32 = 1 << 3;
    // SAFETY: system calls without pointers.
    unsafe {
        if libc::syscall(libc::SYS_membarrier, EXPEDITED, 0, 0) != 0 {
            libc::syscall(libc::SYS_membarrier, REGISTER, 0, 0);
            if libc::syscall(libc::SYS_membarrier, EXPEDITED, 0, 0) != 0 {
                // The slow kind, known since Linux 4.3.
                libc::syscall(libc::SYS_membarrier, 1, 0, 0);
            }
        }
    }
}

/// A full fence and a serialising instruction in every thread of the process: from here on all of them fetch what was
/// written before.
pub(crate) fn serialise() -> Result<(), HostError> {
    const REGISTER: i32 = 1 << 6;
    const SYNC_CORE: i32 = 1 << 5;
    // SAFETY: system calls without pointers.
    unsafe {
        if libc::syscall(libc::SYS_membarrier, SYNC_CORE, 0, 0) != 0 {
            libc::syscall(libc::SYS_membarrier, REGISTER, 0, 0);
            if libc::syscall(libc::SYS_membarrier, SYNC_CORE, 0, 0) != 0 {
                return Err(HostError::last("serialising all threads (membarrier)"));
            }
        }
    }
    Ok(())
}

fn futex_wait(value: u32, timeout: Option<u64>) {
    let t = timeout.map(|ns| libc::timespec {
        tv_sec: (ns / 1_000_000_000) as i64,
        tv_nsec: (ns % 1_000_000_000) as i64,
    });
    let t = t.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let op = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word and the time outlive the call.
    unsafe { libc::syscall(libc::SYS_futex, STATE.as_ptr(), op, value, t, 0, 0) };
}

fn futex_wake() {
    let op = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word is static.
    unsafe { libc::syscall(libc::SYS_futex, STATE.as_ptr(), op, 1, 0, 0, 0) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::lane::tests::marked;

    #[test]
    fn looks_are_rare_where_no_time_is_limited() {
        let lanes: Vec<Box<Lane>> = (0..3).map(|_| marked(7, 6, 0)).collect();
        let now = || pace(lanes.iter().map(|lane| &**lane));
        assert_eq!(now(), WORD_NS);
        lanes[1].looked_at.store(looked_at::FOR_A_WORD, Ordering::Relaxed);
        assert_eq!(now(), WORD_NS);
        // Whether a call is in progress there or not.
        lanes[2].limit.store(u64::MAX, Ordering::Relaxed);
        assert_eq!(now(), TICK_NS);
        lanes[2].limit.store(0, Ordering::Relaxed);
        lanes[0].looked_at.store(looked_at::FOR_TIME, Ordering::Relaxed);
        assert_eq!(now(), TICK_NS);
    }

    #[test]
    fn nudges_are_not_lost() {
        for (before, after) in [
            (RUNNING, NUDGED),
            (PARKED, NUDGED),
            (NUDGED, NUDGED),
            (NONE, NONE),
        ] {
            let state = AtomicU32::new(before);
            set_nudged(&state);
            assert_eq!(state.into_inner(), after);
        }
    }
}
