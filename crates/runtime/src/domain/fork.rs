//! Children: a forked child has private copies of all windows, one thread, and no watchdog.

use crate::domain::{Inner, Thunks};
use crate::lanes::all;
use crate::lanes::set::LaneSet;
use crate::lanes::world::{self, Guard};
use crate::lanes::{signal, thunk, watchdog};
use crate::load::labels;
use crate::os::lock::{Lock, Locked, Rank};
use crate::place::memory::Memory;
use crate::place::window;
use crate::words::views;
use ringfence_core::error::HostError;
use std::any::Any;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering};

/// Locks held across `fork`, so that the child finds them free and what they guard consistent. The last field first: the
/// order of dropping is the reverse of that of taking.
struct Locks {
    views: views::Views,
    /// Those under which no other of ours is taken.
    _leaves: [Box<dyn Any>; 5],
    _thunks: Vec<Locked<'static, Thunks>>,
    _memories: Vec<Locked<'static, Memory>>,
    _lanes: Vec<Locked<'static, LaneSet>>,
    world: Guard,
}

struct Held(UnsafeCell<Option<Locks>>);
// SAFETY: touched by the thread that forks, which holds the locks meanwhile.
unsafe impl Sync for Held {}

static HELD: Held = Held(UnsafeCell::new(None));

/// Registers for `fork`, once.
pub(crate) fn install() -> Result<(), HostError> {
    static INSTALLED: AtomicBool = AtomicBool::new(false);
    static INSTALLING: Lock<()> = Lock::new(Rank::Fork, ());
    if INSTALLED.load(Ordering::Acquire) {
        return Ok(());
    }
    let _guard = INSTALLING.lock();
    if INSTALLED.load(Ordering::Acquire) {
        return Ok(());
    }
    // SAFETY: registers three functions that stay.
    let e = unsafe { libc::pthread_atfork(Some(prepare), Some(parent), Some(child)) };
    if e != 0 {
        let source = std::io::Error::from_raw_os_error(e);
        return Err(HostError::Os {
            what: "registering for fork",
            source,
        });
    }
    INSTALLED.store(true, Ordering::Release);
    Ok(())
}

unsafe extern "C" fn prepare() {
    let world = world::lock();
    crate::place::arena::freeze();
    let Some(world) = world else { return };
    let mut domains: Vec<*const Inner> = all::all()
        // A lane's domain changes under the world's lock only.
        .map(|lane| lane.domain.cast::<Inner>())
        .filter(|domain| !domain.is_null())
        .collect();
    domains.sort_unstable();
    domains.dedup();
    // SAFETY: a domain with a lane lives; it cannot go while the world is locked, which it is until the guards go.
    let domains: Vec<&'static Inner> = domains.into_iter().map(|d| unsafe { &*d }).collect();
    let lanes = domains.iter().map(|d| d.lanes.lock_with_peers()).collect();
    let memories = domains.iter().map(|d| d.memory.lock_with_peers()).collect();
    let thunks = domains.iter().map(|d| d.thunks.lock_with_peers()).collect();
    let leaves = [
        watchdog::hold(),
        signal::hold(),
        window::hold(),
        labels::hold(),
        thunk::hold(),
    ];
    // SAFETY: we hold the world's lock.
    unsafe {
        *HELD.0.get() = Some(Locks {
            views: views::hold(),
            _leaves: leaves,
            _thunks: thunks,
            _memories: memories,
            _lanes: lanes,
            world,
        })
    };
}

unsafe extern "C" fn parent() {
    // SAFETY: set by this thread in `prepare`.
    drop(unsafe { (*HELD.0.get()).take() });
}

unsafe extern "C" fn child() {
    // SAFETY: as above.
    let held = unsafe { (*HELD.0.get()).take() };
    // What is shared with the parent, child's domains do not have.
    if held.as_ref().is_some_and(|held| !held.views.part()) {
        // Rather no child than one that shares memory it should not.
        std::process::abort();
    }
    crate::lanes::watchdog::forget();
    if let Some(Locks {
        views,
        _leaves: leaves,
        _thunks: thunks,
        _memories: memories,
        _lanes: lanes,
        mut world,
    }) = held
    {
        drop((views, leaves));
        drop((thunks, memories, lanes));
        world::after_fork(&mut world);
    }
}
