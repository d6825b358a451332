//! What all lanes of a domain share.

use crate::lanes::credit::CallCredit;
use crate::lanes::first::First;
use crate::lanes::lane::{Berth, Lane, looked_at};
use crate::lanes::touch::Fresh;
use crate::os::lock::{Lock, Locked, Rank};
use ringfence_core::Cancel;
use ringfence_isa::window;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Lanes and what is left of lanes.
#[derive(Default)]
pub(crate) struct LaneSet {
    pub lanes: Vec<*mut Lane>,
    /// Berths without a lane, used before.
    pub free: Vec<Berth>,
    /// Berths of lanes that were left in disorder: not used again, but cleaned by resets.
    pub lost: Vec<Berth>,
    /// Numbers of berths below `next` of which nothing is mapped.
    pub empty: Vec<u32>,
    /// Calls on lanes that are gone.
    pub calls: u64,
    /// Berths below this number were used.
    pub next: u32,
}

// SAFETY: lanes are never unmapped; what is not atomic in them is written by their owner under the world's lock.
unsafe impl Send for LaneSet {}

impl LaneSet {
    /// The credits of all lanes.
    pub(crate) fn credits(&self) -> impl Iterator<Item = &AtomicI64> {
        // SAFETY: lanes are never unmapped, and only this atomic is used.
        self.lanes.iter().map(|&lane| unsafe { &(*lane).credit })
    }
}

/// What lanes need of their domain.
pub(crate) struct Lanes {
    set: Lock<LaneSet>,
    /// The set's lanes once more, by the number of their berths, for those who do not wait for its lock: a call that fails.
    table: [AtomicPtr<Lane>; window::LANE_COUNT as usize],
    /// All that were ever entered there lie below this.
    filled: AtomicUsize,
    /// How many threads are looking at the table.
    looking: AtomicU32,
    /// Why the domain is of no use, if it is not.
    pub first: First,
    /// How many calls it may get.
    pub call_credit: CallCredit,
    /// Nanoseconds in the domain's code, as sampled, and how many there may be.
    pub time_used: AtomicU64,
    pub time_budget: AtomicU64,
    /// Whether that time is counted.
    pub timed: bool,
    cancel: Option<Cancel>,
    /// Who knows which words of the domain's own objects were written, if it has a checked heap.
    pub fresh: Option<Arc<dyn Fresh>>,
}

impl Lanes {
    /// No lane yet. No limit of calls is `None`; `time` in nanoseconds, if it is counted.
    pub(crate) fn new(calls: Option<u64>, time: Option<u64>, cancel: Option<Cancel>) -> Lanes {
        Lanes {
            set: Lock::new(Rank::Lanes, LaneSet::default()),
            table: [const { AtomicPtr::new(null_mut()) }; _],
            filled: AtomicUsize::new(0),
            looking: AtomicU32::new(0),
            first: First::default(),
            call_credit: CallCredit::new(calls),
            time_used: AtomicU64::new(0),
            time_budget: AtomicU64::new(time.unwrap_or(u64::MAX)),
            timed: time.is_some(),
            cancel,
            fresh: None,
        }
    }

    /// With a checked heap.
    pub(crate) fn with_fresh(self, fresh: Option<Arc<dyn Fresh>>) -> Lanes {
        Lanes { fresh, ..self }
    }

    pub(crate) fn lock(&self) -> Locked<'_, LaneSet> {
        self.set.lock()
    }

    /// The same, for a thread that forks and holds those of other domains.
    pub(crate) fn lock_with_peers(&self) -> Locked<'_, LaneSet> {
        self.set.lock_with_peers()
    }

    /// Adds a lane to the set, which is locked. From now on [`each`](Self::each) has it.
    pub(crate) fn enter(&self, set: &mut LaneSet, lane: *mut Lane) {
        set.lanes.push(lane);
        // SAFETY: the caller's own lane.
        let number = unsafe { (*lane).berth.number } as usize;
        // SAFETY: as above.
        unsafe { &(*lane).owner }.store(std::ptr::from_ref(self).cast_mut(), Ordering::SeqCst);
        self.filled.fetch_max(number + 1, Ordering::SeqCst);
        self.table[number].store(lane, Ordering::SeqCst);
    }

    /// Takes a lane out of the set, which is locked, and waits until nobody is looking at it any more.
    pub(crate) fn remove(&self, set: &mut LaneSet, lane: *mut Lane) {
        set.lanes.retain(|&l| l != lane);
        // SAFETY: lanes are never unmapped; this one has its berth still.
        let number = unsafe { (*lane).berth.number };
        self.table[number as usize].store(null_mut(), Ordering::SeqCst);
        // Who looks waits for nothing, so this ends.
        while self.looking.load(Ordering::SeqCst) != 0 {
            std::thread::yield_now();
        }
    }

    /// Lets `f` see all lanes, without waiting. `f` neither waits nor allocates.
    pub(crate) fn each(&self, mut f: impl FnMut(&Lane)) {
        self.looking.fetch_add(1, Ordering::SeqCst);
        for lane in &self.table[..self.filled.load(Ordering::SeqCst)] {
            // SAFETY: null, or a lane of this domain, and of no other one as long as we are looking.
            if let Some(lane) = unsafe { lane.load(Ordering::SeqCst).as_ref() } {
                f(lane);
            }
        }
        self.looking.fetch_sub(1, Ordering::SeqCst);
    }

    /// In a forked child: those who were looking, or noting a failure, are not there.
    pub(crate) fn free(&self) {
        self.looking.store(0, Ordering::SeqCst);
        self.first.free();
    }

    /// Whether the watchdog has to look at calls for other reasons than their limit: one of [`looked_at`].
    pub(crate) fn looked_at(&self) -> u32 {
        match (self.timed, &self.cancel) {
            (true, _) => looked_at::FOR_TIME,
            (false, Some(_)) => looked_at::FOR_A_WORD,
            (false, None) => looked_at::NOT,
        }
    }

    /// Whether the host's word ends calls now.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.as_ref().is_some_and(Cancel::is_set)
    }

    /// Notes that the domain's code has run for some time. Whether that was too much.
    pub(crate) fn charge(&self, nanoseconds: u64) -> bool {
        let before = self.time_used.fetch_add(nanoseconds, Ordering::Relaxed);
        before.saturating_add(nanoseconds) > self.time_budget.load(Ordering::Relaxed)
    }

    /// A lane has no credit left. With the world locked; false if nobody has.
    pub(crate) fn replenish(&self, lane: &Lane) -> bool {
        self.call_credit.hand_out(self.lock().credits(), &lane.credit)
    }
}
