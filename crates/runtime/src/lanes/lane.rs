//! Lanes: what one host thread needs inside one domain.

use crate::lanes::raw_fault::RawFault;
use crate::lanes::set::Lanes;
use crate::os::looks::{self, Looks};
use crate::os::{host, sys};
use ringfence_core::error::HostError;
use ringfence_isa::window;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// Bits of [`Lane::attention`].
pub(crate) mod attention {
    /// The domain has faulted.
    pub const FAULTED: u32 = 1;
    /// The call whose number is in `expired` has run out of time.
    pub const TIME: u32 = 2;
    /// The watchdog sleeps and has to be woken.
    pub const WAKE: u32 = 4;
    /// The call whose number is in `expired` was interrupted.
    pub const INTERRUPT: u32 = 8;
    /// The call whose number is in `expired` has to go because another thread's call faulted.
    pub const ELSEWHERE: u32 = 16;
    /// The call whose number is in `expired` has to end.
    pub const ENDING: u32 = TIME | INTERRUPT | ELSEWHERE;
    /// A host signal handler needed the reserve of the control stack; the page before it is open.
    pub const RESERVE_OPEN: u32 = 32;
    /// Code is being removed or the domain reset, or code was removed since the last call in: wait for that to end, then look at the
    /// target again.
    pub const HOLD: u32 = 64;
    /// The domain's calls are limited: each that begins takes one from the lane's credit. For ever.
    pub const COUNTED: u32 = 128;
    /// As many calls out are in progress as may be, or were since the last call in: whoever enters has to look.
    pub const DEEP: u32 = 256;

    /// The clock of the call in progress stands still, or did when the last one was left: see [`pause`](crate::lanes::pause).
    pub const PAUSED: u32 = 512;

    /// The domain was reset since the last call in: look at the target again. Nobody has to be waited for, so that handlers do not either.
    pub const LOOK: u32 = 1024;

    /// What does not keep a host function from returning into the domain.
    pub const IGNORED_ON_RETURN: u32 = WAKE | RESERVE_OPEN | HOLD | COUNTED | DEEP | LOOK;
}

/// Values of [`Lane::looked_at`].
pub(crate) mod looked_at {
    pub const NOT: u32 = 0;
    /// A word of the host's may end calls.
    pub const FOR_A_WORD: u32 = 1;
    /// The domain's processor time is counted.
    pub const FOR_TIME: u32 = 2;
}

/// Values of [`Lane::poisoned`].
pub(crate) mod disorder {
    /// A host function came back out of order, or on another thread.
    pub const POISONED: u32 = 1;
    /// The domain or the thread has given the lane up, and frames on some stack of the host's still name it: host functions that were
    /// left for another fiber. It belongs to nobody any more, keeps its domain, and is never used again.
    pub const SPENT: u32 = 2;
}

/// One thread's presence in one domain. Never unmapped, and never given to another thread while its first owner lives:
/// `Tls::current` may point here long after the lane was given back.
#[repr(C, align(64))]
pub(crate) struct Lane {
    /// The innermost call in, on the host's stack; 0 if there is none. The first word: `load::stubs` reads it there.
    pub host_sp: AtomicU64,
    /// Top of the control stack for the next call in; 0 while the thread is inside; 1 when there is no lane here.
    pub top: AtomicU64,
    /// `r15` for the next call in.
    pub data_top: AtomicU64,
    /// Bits that send the fast path the slow way.
    pub attention: AtomicU32,
    /// Calls out in progress.
    pub depth: AtomicU32,
    pub base: u64,
    /// The owner's thread pointer.
    pub thread: AtomicU64,
    pub imports: *const Import,
    pub import_count: u64,
    /// Counts outermost calls.
    pub sequence: AtomicU64,
    /// How many of these went the slow way instead of beginning.
    pub again: AtomicU64,
    /// How many may begin before more have to be asked for, in a domain whose calls are limited. Below 0 for the moment in which a thread
    /// finds that there are none.
    pub credit: AtomicI64,
    /// Which of them has to end.
    pub expired: AtomicU64,
    /// Low half of the data stack's lowest address that a call out accepts, and the length from there.
    pub data_low: u32,
    pub data_len: u32,
    /// Scratch of the gate out.
    pub saved: u64,
    /// How the last call of another domain went: [`ringfence_isa::window::call_status`].
    pub call_status: AtomicU32,
    /// Whether the call out in progress is one of another domain. The gate clears it together with `call_status`.
    pub in_callee: AtomicU32,
    /// Time limit of a call in nanoseconds, 0 for none.
    pub limit: AtomicU64,
    /// When the calls that are begun now have to have ended, all together, by the watchdog's clock; 0 for none.
    pub deadline: AtomicU64,
    /// Whether the watchdog has to look at calls in this lane, for other reasons than a limit: one of [`looked_at`].
    pub looked_at: AtomicU32,
    /// The watchdog's own: in which round it found a call in progress last, and the thread's processor time then.
    pub looked: AtomicU64,
    pub processor: AtomicU64,
    /// The watchdog's own: which call it saw last, and since when.
    pub seen: AtomicU64,
    pub since: AtomicU64,
    /// Since when the call's clock stands still, 0 if it runs; and for how long, all calls together, it has. In nanoseconds.
    pub paused: AtomicU64,
    pub waited: AtomicU64,
    /// The watchdog's own: how much of that was before the call that it saw last.
    pub waited_before: AtomicU64,
    /// The watchdog's own: which call it has sent ticks to, how often it has looked at that since, and whether one was waiting for
    /// the thread the last time that it asked; and whether because the thread blocks the signal.
    pub ticked: AtomicU64,
    pub ticks: AtomicU32,
    pub pending: AtomicU32,
    pub blocked: AtomicU32,
    pub tid: AtomicI32,
    /// The last question whether the thread is in an access, and the last that it answered: see [`settle`](crate::lanes::settle).
    pub asked: AtomicU64,
    pub answered: AtomicU64,
    /// Not 0: one of [`disorder`]. The lane cannot be entered any more.
    pub poisoned: AtomicU32,
    /// The domain, an opaque address here; null while the lane is nobody's.
    pub domain: *const std::ffi::c_void,
    /// How often it was given to a thread and a domain.
    pub bound: AtomicU64,
    /// What it shares with the domain's other lanes. Alive while `domain` is not null.
    pub shared: *const Lanes,
    /// The same, for the watchdog, and the lane that was made before this one: see [`all`](crate::lanes::all).
    pub owner: AtomicPtr<Lanes>,
    pub before: AtomicPtr<Lane>,
    pub berth: Berth,
    pub fault: UnsafeCell<RawFault>,
}

/// What of a lane belongs to the domain and survives its thread.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Berth {
    /// Number of the berth in the window.
    pub number: u32,
    /// Lowest address of the control stack's mapping.
    pub control: u64,
    /// Size of the part that the domain may use.
    pub control_len: u64,
}

/// Values of [`Target::revoked`]: why a target without an index has none.
pub(crate) mod gone {
    /// The domain went.
    pub const DOMAIN: u32 = 0;
    /// The entry was revoked, or is none.
    pub const REVOKED: u32 = 1;
    /// The code was added to the living domain, and removed.
    pub const REMOVED: u32 = 2;
}

/// What a thunk knows of its entry.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Target {
    /// The domain's index times 8; 0 once the domain is gone.
    pub index: AtomicU64,
    pub base: u64,
    pub entry: u64,
    pub flags: u32,
    /// Stack arguments in words.
    pub words: u32,
    /// x87 results at most.
    pub x87: u32,
    /// Why the index is 0, if it is: one of [`gone`].
    pub revoked: AtomicU32,
    /// Which gate.
    pub gate: u64,
    /// The domain, an opaque address here.
    pub domain: *const std::ffi::c_void,
}

// SAFETY: read-only but for an atomic; the domain it points to is `Sync` and alive while the index is not 0.
unsafe impl Send for Target {}
// SAFETY: as above.
unsafe impl Sync for Target {}

impl Target {
    /// No function: calls through `gate` fail.
    pub(crate) fn nothing(gate: u64) -> Target {
        Target {
            index: AtomicU64::new(0),
            base: 0,
            entry: 0,
            flags: 0,
            words: 0,
            x87: 0,
            revoked: AtomicU32::new(gone::REVOKED),
            gate,
            domain: std::ptr::null(),
        }
    }
}

/// One entry of a domain's table of imports, by stub number.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct Import {
    /// Changes while domains run if it takes entries of others.
    pub function: AtomicU64,
    pub rax_mask: u64,
    pub rdx_mask: u64,
    pub kind: u32,
    pub vectors: u32,
    pub x87: u32,
    pub pad: u32,
}

/// Where a domain's lanes are, and how large their parts.
pub(crate) struct Shape {
    /// The window's base.
    pub base: u64,
    /// Bytes of a control stack that the domain may use.
    pub control_stack: u32,
    /// Bytes of a data stack.
    pub data_stack: u32,
    /// Bytes of a berth, from its start, that are mapped for the thread block.
    pub thread_area: u64,
}

/// Room below the domain's part of a control stack for host signal handlers that do not run on the alternate stack.
const RESERVE: u64 = 64 << 10;

/// Mappings that a lane needs at most.
pub(crate) const MAPPINGS: u64 = 8;

impl Shape {
    /// Bytes of the domain's that a lane has, stacks and thread block: they count as its memory as long as they are mapped.
    pub(crate) fn bytes(&self) -> u64 {
        u64::from(self.control_stack) + u64::from(self.data_stack) + self.thread_area
    }
}

impl Berth {
    pub(crate) fn start(&self, base: u64) -> u64 {
        base + u64::from(window::LANES) + u64::from(self.number) * u64::from(window::LANE_BERTH)
    }

    fn soft_guard(&self) -> u64 {
        self.control + sys::PAGE as u64 + RESERVE
    }

    /// Lowest address of the domain's part.
    pub(crate) fn control_low(&self) -> u64 {
        self.soft_guard() + sys::PAGE as u64
    }

    pub(crate) fn control_top(&self) -> u64 {
        self.control_low() + self.control_len
    }

    /// Whether `address` is in the page before the reserve.
    pub(crate) fn in_soft_guard(&self, address: u64) -> bool {
        (self.soft_guard()..self.control_low()).contains(&address)
    }

    /// Whether `address` is below the domain's part, in either guard or between.
    pub(crate) fn below_control(&self, address: u64) -> bool {
        (self.control..self.control_low()).contains(&address)
    }

    pub(crate) fn open_reserve(&self) -> bool {
        let rw = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the page is ours and nobody relies on its being inaccessible while a host handler runs.
        unsafe { libc::mprotect(self.soft_guard() as *mut _, sys::PAGE, rw) == 0 }
    }

    pub(crate) fn close_reserve(&self) {
        // SAFETY: as above; nothing live is in the page when the lane is about to be entered at its top, nor where `rsp` is above
        // it and no handler of the host runs.
        unsafe { libc::mprotect(self.soft_guard() as *mut _, sys::PAGE, libc::PROT_NONE) };
    }

    /// Maps the parts of a new berth.
    pub(crate) fn new(shape: &Shape, number: u32) -> Result<Berth, HostError> {
        host::take_mappings(MAPPINGS)?;
        let control_len = u64::from(shape.control_stack);
        let total = control_len + RESERVE + 2 * sys::PAGE as u64;
        let rw = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh mapping.
        let control = unsafe { sys::map_anonymous(0, total, rw, false) };
        let berth = Berth {
            number,
            control: control.inspect_err(|_| host::give_mappings(MAPPINGS))?,
            control_len,
        };
        berth.map(shape).inspect_err(|_| {
            // If this fails as well, the next one that gets the number maps over what is left there.
            // SAFETY: parts of our own window that nobody uses yet.
            let _ = unsafe {
                let len = window::LANE_BERTH.into();
                sys::map_anonymous(berth.start(shape.base), len, libc::PROT_NONE, true)
            };
            berth.unmap_control();
        })?;
        Ok(berth)
    }

    /// Makes the guards of a new berth, and maps what is in the window.
    fn map(&self, shape: &Shape) -> Result<(), HostError> {
        let rw = libc::PROT_READ | libc::PROT_WRITE;
        let start = self.start(shape.base);
        let data = u64::from(shape.data_stack);
        // SAFETY: the new mapping, and parts of our own window in which nothing is mapped yet.
        unsafe {
            sys::protect(self.control, sys::PAGE as u64, libc::PROT_NONE)?;
            sys::protect(self.soft_guard(), sys::PAGE as u64, libc::PROT_NONE)?;
            sys::map_anonymous(start, shape.thread_area, rw, true)?;
            sys::map_anonymous(start + u64::from(window::LANE_BERTH) - data, data, rw, true)?;
            // Nobody needs one huge page of a stack, and resets rely on it.
            looks::never_huge(start, window::LANE_BERTH.into())
        }
    }

    /// Gives the control stack back. The rest goes with the window.
    pub(crate) fn unmap_control(&self) {
        let total = self.control_len + RESERVE + 2 * sys::PAGE as u64;
        host::give_mappings(MAPPINGS);
        // SAFETY: the domain is gone, nobody is on this stack.
        unsafe { libc::munmap(self.control as *mut _, total as usize) };
    }

    /// Gives all of it back.
    pub(crate) fn unmap(&self, base: u64) -> Result<(), HostError> {
        // SAFETY: a berth of the domain's own window, which nobody uses.
        unsafe { sys::map_anonymous(self.start(base), window::LANE_BERTH.into(), libc::PROT_NONE, true)? };
        self.unmap_control();
        Ok(())
    }

    /// Zeroes stack and thread block, as they are when they are new. Nobody is in the lane.
    pub(crate) fn zero(&self, shape: &Shape, looks: &mut Looks) -> Result<(), HostError> {
        let start = self.start(shape.base);
        let data = u64::from(shape.data_stack);
        // SAFETY: nobody is in the lane.
        unsafe {
            looks.zero(start, shape.thread_area)?;
            looks.zero(start + u64::from(window::LANE_BERTH) - data, data)
        }
    }
}

impl Lane {
    /// Outermost calls that have begun.
    pub(crate) fn calls(&self) -> u64 {
        let again = self.again.load(Ordering::Relaxed);
        self.sequence.load(Ordering::Relaxed).saturating_sub(again)
    }

    /// Whether a call is in progress.
    pub(crate) fn active(&self) -> bool {
        self.host_sp.load(Ordering::Acquire) != 0
    }

    /// Whether frames of calls may be left on some stack of the host's.
    pub(crate) fn in_disorder(&self) -> bool {
        self.active() || self.poisoned.load(Ordering::Acquire) != 0
    }

    /// Attention bits for which the call in progress has to end; 0 if it need not.
    pub(crate) fn ending(&self) -> u32 {
        // In this order: who marks a call stores its number before the bit.
        let bits = self.attention.load(Ordering::Acquire);
        if self.is_marked() {
            bits & attention::ENDING
        } else {
            0
        }
    }

    /// Whether the call in progress has to end, or is about to be told so.
    fn is_marked(&self) -> bool {
        self.expired.load(Ordering::Acquire) == self.sequence.load(Ordering::Acquire)
    }

    /// Takes away the bits that earlier calls had to end for. One that comes for the call in progress meanwhile stays.
    pub(crate) fn forget_ending(&self) {
        if self.is_marked() {
            return;
        }
        let bits = self.attention.fetch_and(!attention::ENDING, Ordering::AcqRel);
        if self.is_marked() {
            self.attention
                .fetch_or(bits & attention::ENDING, Ordering::AcqRel);
        }
    }

    /// Whether the watchdog must be awake while a call is in progress.
    pub(crate) fn watched(&self) -> bool {
        self.limit.load(Ordering::Relaxed) != 0 || self.looked_at.load(Ordering::Relaxed) != looked_at::NOT
    }

    /// Whether it must look as often as time is counted.
    pub(crate) fn is_timed(&self) -> bool {
        self.limit.load(Ordering::Relaxed) != 0
            || self.looked_at.load(Ordering::Relaxed) == looked_at::FOR_TIME
    }

    /// What the lanes of its domain share.
    pub(crate) fn shared(&self) -> &Lanes {
        // SAFETY: a lane that somebody uses has a live domain.
        unsafe { &*self.shared }
    }

    /// Sets the tops for an empty lane.
    pub(crate) fn rewind(&self) {
        let end = self.berth.start(self.base) + u64::from(window::LANE_BERTH);
        self.data_top.store(end - 64, Ordering::Relaxed);
        self.depth.store(0, Ordering::Relaxed);
        self.call_status.store(0, Ordering::Relaxed);
        self.in_callee.store(0, Ordering::Relaxed);
        self.paused.store(0, Ordering::Relaxed);
        self.host_sp.store(0, Ordering::Relaxed);
        self.top.store(self.berth.control_top(), Ordering::Release);
    }
}

/// What gates do when a thread leaves a domain, once more as ThreadSanitizer sees it: all that it did there comes before what
/// others do when they have found that it is out. Called by the gates in that sanitizer's builds only.
pub(crate) unsafe extern "C" fn tell_leaving(lane: *const Lane) {
    // SAFETY: the gate passes its lane.
    unsafe { (*lane).host_sp.fetch_or(0, Ordering::Release) };
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A lane that is nobody's, as it is mapped, whose call `expired` was marked with `bits`.
    pub(crate) fn marked(sequence: u64, expired: u64, bits: u32) -> Box<Lane> {
        // SAFETY: lanes begin as zeroed memory.
        let lane: Box<Lane> = unsafe { Box::new_zeroed().assume_init() };
        lane.sequence.store(sequence, Ordering::Relaxed);
        lane.expired.store(expired, Ordering::Relaxed);
        lane.attention.store(bits, Ordering::Relaxed);
        lane
    }

    #[test]
    fn marks_are_of_one_call() {
        assert_eq!(marked(7, 7, attention::TIME).ending(), attention::TIME);
        assert_eq!(marked(7, 6, attention::TIME).ending(), 0);
        assert_eq!(marked(7, 7, attention::WAKE).ending(), 0);
    }

    #[test]
    fn what_is_forgotten_is_of_earlier_calls() {
        let lane = marked(7, 6, attention::TIME | attention::WAKE);
        lane.forget_ending();
        assert_eq!(lane.attention.load(Ordering::Relaxed), attention::WAKE);
        // The number has come, its bit is on the way, or there.
        let lane = marked(7, 7, attention::INTERRUPT);
        lane.forget_ending();
        assert_eq!(lane.ending(), attention::INTERRUPT);
    }
}
