//! The watchdog's signal, as it is sent and known again.

use std::mem::offset_of;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

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

/// Whether ticks were sent that carry no mark, because the system refuses marked ones. For ever.
static UNMARKED: AtomicBool = AtomicBool::new(false);

/// Sends a thread of this process a signal, or none if that is 0, to find out whether the system lets it: marked as ours if that is
/// possible.
fn to_thread(tid: i32, signal: i32) -> bool {
    // SAFETY: sends a signal to a thread of this process; if it is gone, nothing happens.
    unsafe {
        let pid = libc::getpid();
        let info = Queued {
            signo: signal,
            errno: 0,
            code: libc::SI_QUEUE,
            pad: 0,
            pid,
            uid: libc::getuid(),
            value: MAGIC,
            rest: [0; 12],
        };
        if libc::syscall(libc::SYS_rt_tgsigqueueinfo, pid, tid, signal, &raw const info) == 0 {
            return true;
        }
        // A filter of system calls, or too many signals are queued.
        UNMARKED.store(true, Ordering::Relaxed);
        libc::syscall(libc::SYS_tgkill, pid, tid, signal) == 0
    }
}

/// Sends a thread of this process a tick. Async-signal-safe.
pub(crate) fn send(tid: i32) {
    to_thread(tid, number());
}

/// Whether the system lets this process send a thread of its own a signal.
pub(crate) fn can_send(tid: i32) -> bool {
    to_thread(tid, 0)
}

/// What is known of a signal of the watchdog's number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    Ours,
    /// It carries no mark. The kernel drops what a signal carries when no more may be queued (`RLIMIT_SIGPENDING`).
    Unmarked,
    Others,
}

/// Whose a signal is.
pub(crate) fn origin(info: &libc::siginfo_t) -> Origin {
    // SAFETY: same size; for these codes the kernel fills in these fields.
    let queued = unsafe { &*std::ptr::from_ref(info).cast::<Queued>() };
    // SAFETY: asks for a number.
    let own = || queued.pid == unsafe { libc::getpid() };
    match queued.code {
        libc::SI_QUEUE if queued.value == MAGIC => Origin::Ours,
        libc::SI_USER if queued.pid == 0 && queued.uid == 0 => Origin::Unmarked,
        libc::SI_TKILL if UNMARKED.load(Ordering::Relaxed) && own() => Origin::Unmarked,
        _ => Origin::Others,
    }
}

/// The calling thread's number; `None` if the system does not tell.
pub(crate) fn own_tid() -> Option<i32> {
    // SAFETY: asks for a number.
    let tid = unsafe { libc::gettid() };
    if tid > 0 {
        return Some(tid);
    }
    // A filter of system calls refuses it: "PID/task/TID".
    let path = std::fs::read_link("/proc/thread-self").ok()?;
    path.file_name()?.to_str()?.parse().ok()
}
