//! What all domains and threads share: who has which index, which thread has which lanes.

use crate::lanes::all;
use crate::lanes::gate::{self, MAX_DOMAINS};
use crate::lanes::lane::{Lane, disorder, looked_at};
use crate::lanes::last_error::Record;
use crate::lanes::{own_stack, signal, tick};
use crate::os::lock::{Lock, Locked, Rank};
use crate::os::sys;
use ringfence_core::error::{CallError, HostError};
use ringfence_core::local;
use std::cell::RefCell;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering, compiler_fence};

pub(crate) struct World {
    /// Free domain indices below `next`.
    free: Vec<u32>,
    next: u32,
    /// Lanes whose first owner is gone: may be given to anybody.
    pub(crate) orphans: Vec<*mut Lane>,
}

// SAFETY: the pointers are to memory that is never unmapped, and used under the lock.
unsafe impl Send for World {}

static WORLD: Lock<World> = Lock::new(
    Rank::World,
    World {
        free: Vec::new(),
        next: 1,
        orphans: Vec::new(),
    },
);

/// `World::next`, for those who do not take the lock.
static INDICES: AtomicU32 = AtomicU32::new(1);

/// All indices that domains have, or had, are below this. Async-signal-safe.
pub(crate) fn indices() -> u32 {
    INDICES.load(Ordering::Acquire)
}

/// `None` only while it is dropped.
pub(crate) struct Guard(Option<Locked<'static, World>>);

impl std::ops::Deref for Guard {
    type Target = World;
    fn deref(&self) -> &World {
        self.0.as_ref().expect("there until the guard is dropped")
    }
}

impl std::ops::DerefMut for Guard {
    fn deref_mut(&mut self) -> &mut World {
        self.0.as_mut().expect("there until the guard is dropped")
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.0 = None;
        set_locking(false);
    }
}

/// Notes for the thread's signal handlers that it holds the lock, is about to, or has only just given it back.
fn set_locking(locking: bool) {
    compiler_fence(Ordering::SeqCst);
    // SAFETY: our own thread's words.
    unsafe { (&raw mut (*gate::tls()).locking).write_volatile(locking.into()) };
    compiler_fence(Ordering::SeqCst);
}

/// The lock, or `None` if this very thread has it in hand, in the code that a signal handler interrupted: that must not wait
/// for itself.
pub(crate) fn lock() -> Option<Guard> {
    // SAFETY: our own thread's words.
    if unsafe { (&raw const (*gate::tls()).locking).read_volatile() } != 0 {
        return None;
    }
    set_locking(true);
    Some(Guard(Some(WORLD.lock())))
}

/// The lock, for callers that are never in a signal handler.
pub(crate) fn lock_plain() -> Guard {
    lock().expect("domains are not made or dropped from signal handlers")
}

impl World {
    pub(crate) fn take_index(&mut self) -> Result<u32, HostError> {
        if let Some(index) = self.free.pop() {
            return Ok(index);
        }
        if self.next as usize >= MAX_DOMAINS {
            return Err(HostError::NoWindow { live: MAX_DOMAINS });
        }
        self.next += 1;
        INDICES.store(self.next, Ordering::Release);
        Ok(self.next - 1)
    }

    pub(crate) fn give_index(&mut self, index: u32) {
        self.free.push(index);
    }
}

/// What a thread that entered a domain once has.
pub(crate) struct Thread {
    /// Its lanes by domain index, as the gate reads them.
    table: *mut AtomicPtr<Lane>,
    /// Lanes that it had and gave back.
    blank: Vec<*mut Lane>,
    tid: i32,
    _record: Box<Record>,
    _stack: Option<signal::AltStack>,
}

impl Thread {
    fn new() -> Result<Thread, CallError> {
        let os = |e: HostError| CallError::Lane(e.to_string());
        let stack = signal::prepare_thread()?;
        let bytes = (MAX_DOMAINS * size_of::<usize>()) as u64;
        // SAFETY: a fresh mapping.
        let table = unsafe { sys::map_anonymous(0, bytes, libc::PROT_READ | libc::PROT_WRITE, false) }
            .map_err(os)? as *mut _;
        signal::install().map_err(os)?;
        let record = Record::new();
        // SAFETY: our own thread's words; table and record stay until the thread ends.
        unsafe { ((*gate::tls()).lanes, (*gate::tls()).record) = (table, (&raw const *record).cast()) };
        let (own, reserve) = own_stack::find();
        // SAFETY: our own thread's words.
        unsafe {
            let tls = &mut *gate::tls();
            (tls.stack, tls.stack_reserve) = (own, reserve);
            (tls.room, tls.room_size) = room((own, reserve), (tls.alt, tls.alt_size));
        }
        let tid = tick::own_tid().ok_or_else(|| {
            let why = "the system tells no thread its number: neither gettid nor /proc/thread-self works";
            CallError::Lane(why.into())
        })?;
        Ok(Thread {
            table,
            blank: Vec::new(),
            tid,
            _record: record,
            _stack: stack,
        })
    }
}

/// See `gate::Tls::room`. Both stacks by address and size.
fn room((own, reserve): (u64, u64), (alt, alt_size): (u64, u64)) -> (u64, u64) {
    if reserve == 0 {
        return (alt + alt_size, alt_size.wrapping_neg());
    }
    let (end, alt_end) = (own + reserve, alt + alt_size);
    if own < alt_end && alt < end {
        return (0, 0); // a host that has put the one into the other
    }
    (end, alt.wrapping_sub(end))
}

/// Access to the calling thread's state, with the world locked.
pub(crate) struct ThisThread(*mut Thread);

impl ThisThread {
    #[allow(
        clippy::mut_from_ref,
        reason = "the world's lock, not the handle, makes the access exclusive"
    )]
    fn get(&self) -> &mut Thread {
        // SAFETY: the thread's own state, which lives until the thread ends, used under the world's lock and never
        // held across a call that gets it again.
        unsafe { &mut *self.0 }
    }

    pub(crate) fn tid(&self) -> i32 {
        self.get().tid
    }

    /// A lane that is in use nowhere.
    pub(crate) fn blank_lane(&self, world: &mut World) -> *mut Lane {
        if let Some(lane) = self.get().blank.pop().or_else(|| world.orphans.pop()) {
            return lane;
        }
        let lane = Box::into_raw(Box::new(std::mem::MaybeUninit::<Lane>::zeroed())).cast::<Lane>();
        // All-zero is valid for a lane: integers, null pointers, atomics.
        // SAFETY: just made, and never unmapped. The world is locked.
        all::add(unsafe { &*lane });
        lane
    }

    pub(crate) fn bind(&self, index: u32, lane: *mut Lane) {
        // SAFETY: indices are below the table's length.
        unsafe { (*self.get().table.add(index as usize)).store(lane, Ordering::Release) };
    }
}

#[derive(Default)]
struct ThreadCell(RefCell<Option<Box<Thread>>>);

impl Drop for ThreadCell {
    fn drop(&mut self) {
        let Some(thread) = self.0.borrow_mut().take() else {
            return;
        };
        let mut world = lock_plain();
        let me = &raw const *thread;
        THREADS.lock().retain(|e| e.0.cast_const() != me);
        let tls = gate::tls();
        // SAFETY: our own thread's words and table. From here on the thread has no lanes.
        unsafe {
            (*tls).lanes = gate::no_lanes();
            (*tls).current = gate::no_lane();
            (*tls).record = std::ptr::null();
            (*tls).alt_size = 0;
            let used = world.next;
            for index in 1..used {
                let lane = (*thread.table.add(index as usize)).load(Ordering::Acquire);
                if !lane.is_null() && release(lane, true) {
                    world.orphans.push(lane);
                }
            }
            world.orphans.extend(thread.blank.iter());
            libc::munmap(thread.table.cast(), MAX_DOMAINS * size_of::<usize>());
        }
    }
}

/// Gives a lane's berth back to its domain. Whether the lane may be used again: `stacks` tells that the thread's stacks
/// may be left, and then it may not if there are frames of its calls on them.
///
/// # Safety
/// The lane has a live domain, and its thread is not inside. The world is locked.
unsafe fn release(lane: *mut Lane, stacks: bool) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        let shared = (*lane).shared();
        let mut set = shared.lock();
        shared.remove(&mut set, lane);
        set.calls += (*lane).calls();
        shared.call_credit.take_back(&(*lane).credit);
        if !(*lane).in_disorder() {
            set.free.push((*lane).berth);
            blank(lane);
            return true;
        }
        set.lost.push((*lane).berth);
        if stacks {
            spend(lane);
            return false;
        }
        blank(lane);
        true
    }
}

/// Marks a lane as nobody's.
unsafe fn blank(lane: *mut Lane) {
    // SAFETY: the caller owns the lane.
    unsafe {
        all::take_away(&*lane);
        (*lane).limit.store(0, Ordering::Relaxed);
        (*lane).deadline.store(0, Ordering::Relaxed);
        (*lane).looked_at.store(looked_at::NOT, Ordering::Relaxed);
        (*lane).host_sp.store(0, Ordering::Relaxed);
        (*lane).top.store(1, Ordering::Release);
        (*lane).domain = std::ptr::null();
        (*lane).shared = std::ptr::null();
    }
}

/// Marks a lane as nobody's for ever: host functions that it has called may still come back.
unsafe fn spend(lane: *mut Lane) {
    // SAFETY: the caller owns the lane.
    unsafe {
        let (domain, shared) = ((*lane).domain, (*lane).shared);
        blank(lane);
        ((*lane).domain, (*lane).shared) = (domain, shared);
        (*lane).poisoned.store(disorder::SPENT, Ordering::Release);
    }
}

/// Takes a lane from its thread: the domain goes, or abandons it. The lane's memory is kept for that thread.
///
/// # Safety
/// The thread is not inside, and does not enter the domain any more. The world is locked.
pub(crate) unsafe fn revoke(world: &mut World, index: u32, lane: *mut Lane) {
    // SAFETY: the caller's promise.
    let spent = unsafe { (*lane).in_disorder() };
    let mut threads = THREADS.lock();
    // SAFETY: threads in the list are alive: they leave it, under the world's lock, before they end.
    unsafe {
        for thread in threads.iter_mut() {
            let place = &*(*thread.0).table.add(index as usize);
            if place.load(Ordering::Acquire) == lane {
                place.store(std::ptr::null_mut(), Ordering::Release);
                if spent {
                    break;
                }
                blank(lane);
                (*thread.0).blank.push(lane);
                return;
            }
        }
        if spent {
            return spend(lane);
        }
        blank(lane);
        world.orphans.push(lane);
    }
}

struct Entry(*mut Thread);
// SAFETY: used under the world's lock only.
unsafe impl Send for Entry {}

static THREADS: Lock<Vec<Entry>> = Lock::new(Rank::Threads, Vec::new());

local!(static THREAD: ThreadCell);

/// The calling thread's state, made when it is first needed.
pub(crate) fn this_thread(_world: &mut World) -> Result<ThisThread, CallError> {
    THREAD
        .with(|cell| {
            let mut cell = cell.0.try_borrow_mut().map_err(|_| CallError::Inside)?;
            if cell.is_none() {
                let thread = Box::new(Thread::new()?);
                let thread = cell.insert(thread);
                THREADS.lock().push(Entry(&raw mut **thread));
            }
            Ok(ThisThread(&raw mut **cell.as_mut().expect("made above")))
        })
        .unwrap_or_else(|| {
            let why = "the thread is ending, or the system has no memory for what it needs";
            Err(CallError::Lane(why.into()))
        })
}

/// The calling thread's lane whose call out is the innermost: the last one on the host's stack.
pub(crate) fn innermost() -> Option<&'static Lane> {
    let used = lock()?.next;
    let in_progress = |cell: &ThreadCell| {
        let thread = cell.0.try_borrow().ok()?;
        let table = thread.as_ref()?.table;
        (1..used)
            // SAFETY: the thread's own table; indices are below its length; lanes are never unmapped.
            .filter_map(|i| unsafe { (*table.add(i as usize)).load(Ordering::Relaxed).as_ref() })
            .filter(|l| l.active() && l.depth.load(Ordering::Relaxed) > 0)
            .min_by_key(|l| l.host_sp.load(Ordering::Relaxed))
    };
    THREAD.look(in_progress).flatten()
}

/// In a forked child: only the calling thread is left.
pub(crate) fn after_fork(world: &mut World) {
    let me = gate::thread_pointer();
    let tid = tick::own_tid().unwrap_or(0);
    let mut mine = std::ptr::null_mut();
    THREAD.look(|cell| {
        if let Ok(mut cell) = cell.0.try_borrow_mut()
            && let Some(thread) = cell.as_mut()
        {
            thread.tid = tid;
            mine = &raw mut **thread;
        }
    });
    // The others' tables are left to lie: nobody will ever look at them again.
    if let Some(mut threads) = THREADS.try_lock() {
        threads.retain(|e| e.0 == mine);
    }
    all::forget();
    for lane in all::all() {
        // SAFETY: lanes that somebody uses have a live domain.
        if let Some(shared) = unsafe { lane.shared.as_ref() } {
            shared.free();
        }
    }
    for lane in all::all() {
        let lane = std::ptr::from_ref(lane).cast_mut();
        // SAFETY: lanes are never unmapped; their threads are gone, but for ours.
        unsafe {
            if (*lane).domain.is_null() || (*lane).poisoned.load(Ordering::Relaxed) == disorder::SPENT {
                continue;
            }
            if (*lane).thread.load(Ordering::Relaxed) == me {
                (*lane).tid.store(tid, Ordering::Relaxed);
                (*lane)
                    .attention
                    .fetch_or(crate::lanes::lane::attention::WAKE, Ordering::AcqRel);
            } else {
                // The stacks of the others are nobody's here.
                release(lane, false);
                world.orphans.push(lane);
            }
        }
    }
}
