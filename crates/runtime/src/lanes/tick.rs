//! The watchdog's signal, as it is sent and known again.

use std::mem::offset_of;
use std::sync::atomic::{AtomicI32, Ordering};

/// The watchdog's signal, unless the host chooses another before the handlers are installed.
static NUMBER: AtomicI32 = AtomicI32::new(libc::SIGURG);

/// The watchdog's signal.
pub(crate) fn number() -> i32 {
    NUMBER.load(Ordering::Relaxed)
}

/// Makes another signal the watchdog's. No handler is installed yet.
pub(crate) fn choose(signal: i32) {
    NUMBER.store(signal, Ordering::Relaxed);
}

/// What marks the signals as ours.
pub(crate) const MAGIC: usize = 0x5246_7761_7463_6821;

/// The fields of a queued signal, as the kernel lays them out.
#[repr(C)]
struct Queued {
    signo: i32,
    errno: i32,
    code: i32,
    pad: i32,
    pid: i32,
    uid: u32,
    value: usize,
    rest: [u64; 12],
}

const _: () = assert!(size_of::<Queued>() == size_of::<libc::siginfo_t>());
// The handler's entry knows these places.
const _: () = assert!(offset_of!(Queued, code) == 8 && offset_of!(Queued, value) == 24);

/// Sends a thread of this process a tick. Async-signal-safe.
pub(crate) fn send(tid: i32) {
    // SAFETY: sends a signal to a thread of this process; if it is gone, nothing happens.
    unsafe {
        let info = Queued {
            signo: number(),
            errno: 0,
            code: libc::SI_QUEUE,
            pad: 0,
            pid: libc::getpid(),
            uid: libc::getuid(),
            value: MAGIC,
            rest: [0; 12],
        };
        libc::syscall(
            libc::SYS_rt_tgsigqueueinfo,
            libc::getpid(),
            tid,
            number(),
            &raw const info,
        );
    }
}

/// Whether a signal is one of the watchdog's.
pub(crate) fn is_ours(info: &libc::siginfo_t) -> bool {
    // SAFETY: same size; for SI_QUEUE the kernel fills in these fields.
    let queued = unsafe { &*std::ptr::from_ref(info).cast::<Queued>() };
    queued.code == libc::SI_QUEUE && queued.value == MAGIC
}
