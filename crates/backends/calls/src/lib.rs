//! C calls of functions whose types are known at run time, for back ends that have no gates of their own.
//!
//! * [`Pointer::stub`]: a C function pointer that hands its caller's registers to a closure.
//! * [`Pointer::thunk`]: a C function pointer that calls another C function with the registers as they are, so that the call can be
//!   given up from a stub further in, as `longjmp` does.
//! * [`call`]: a C function called with registers from memory.
//!
//! [`peer`] reads and writes another process's memory, or one's own without crashing.

mod pages;
pub mod peer;

use pages::Place;
use ringfence_core::{CallError, HostError, OutFrame, Reporting, Returned};
use std::arch::{asm, global_asm};
use std::ffi::c_void;
use std::mem::offset_of;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

global_asm!(
    include_str!("calls.s"),
    frame = const size_of::<OutFrame>().next_multiple_of(16),
    ints = const offset_of!(OutFrame, ints),
    rax = const offset_of!(OutFrame, rax),
    r10 = const offset_of!(OutFrame, r10),
    vectors = const offset_of!(OutFrame, vectors),
    result = const offset_of!(OutFrame, result),
    vector_result = const offset_of!(OutFrame, vector_result),
    stack = const offset_of!(OutFrame, stack),
    origin = const offset_of!(OutFrame, origin),
    closed = const offset_of!(Record, closed),
    words = const offset_of!(Record, words),
    function = const offset_of!(Record, function),
    status = const offset_of!(Record, status),
    rax_result = const offset_of!(Returned, rax),
    rdx_result = const offset_of!(Returned, rdx),
    xmm0_result = const offset_of!(Returned, xmm0),
    xmm1_result = const offset_of!(Returned, xmm1),
    st0_result = const offset_of!(Returned, st0),
    arrived = sym arrived,
    options(att_syntax)
);

unsafe extern "C" {
    fn __rf_calls_arrive();
    fn __rf_calls_enter();
    fn __rf_calls_leave(
        function: u64,
        frame: *const c_void,
        words: *const u64,
        count: u64,
        returned: *mut Returned,
    );
}

/// What becomes of a call that arrived at a stub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It returns, with the frame's results.
    Return,
    /// The innermost call through a [thunk](Pointer::thunk) on this thread returns in its place, with results 0. Functions in
    /// between are given up where they are. Only if there is such a call, and no Rust function in between.
    GiveUp,
}

/// What a stub calls.
pub type Arrival = dyn Fn(&mut OutFrame) -> Then + Send + Sync;

/// What a pointer's code finds.
#[repr(C)]
struct Record {
    /// What a thunk calls.
    function: u64,
    /// How many words of arguments on the stack it has.
    words: u64,
    /// Where the thread's status is, from `fs` on.
    status: i64,
    /// A thunk's calls go to `arrival` while this is true.
    closed: *const AtomicBool,
    /// Keeps `closed`.
    _closed: Option<Arc<AtomicBool>>,
    arrival: Arc<Arrival>,
}

// SAFETY: plain numbers, and a pointer into what `_closed` keeps, of which only atomics are used.
unsafe impl Send for Record {}
// SAFETY: as above; nothing in it changes.
unsafe impl Sync for Record {}

/// Where freed pointers say that they are gone.
static REPORTING: std::sync::OnceLock<Reporting> = std::sync::OnceLock::new();

/// A stub was called, or a thunk that is closed, or one that is gone.
unsafe extern "C" fn arrived(record: *const Record, frame: *mut OutFrame) -> u32 {
    // SAFETY: null, or the record of a live pointer; or one that is kept for a long time.
    let Some(record) = (unsafe { record.as_ref() }) else {
        if let Some(reporting) = REPORTING.get() {
            (reporting.fail)(CallError::Gone);
        }
        return 0;
    };
    // SAFETY: made by the assembly on this thread's stack; the arrival sets the space before it shows the frame to anybody.
    let frame = unsafe { &mut *frame };
    u32::from((record.arrival)(frame) == Then::GiveUp)
}

/// A C function pointer. Its code stays for ever; when this is dropped, calls of it fail with [`CallError::Gone`].
pub struct Pointer(Place);

impl Pointer {
    /// One that calls `arrival` with a frame whose space is not set yet.
    ///
    /// # Errors
    /// [`HostError`]: no memory for code.
    pub fn stub(reporting: Reporting, arrival: Arc<Arrival>) -> Result<Pointer, HostError> {
        Self::new(
            reporting,
            __rf_calls_arrive,
            Record {
                function: 0,
                words: 0,
                status: 0,
                closed: std::ptr::null(),
                _closed: None,
                arrival,
            },
        )
    }

    /// One that calls the function at `function`, which takes `words` words of arguments on the stack, and clears the thread's status
    /// when it returns. While `closed` is true, `refusal` is called in its place.
    ///
    /// # Safety
    /// A C function is there for as long as this lives, and may be called with whatever the pointer's callers pass.
    ///
    /// # Errors
    /// [`HostError`]: no memory for code.
    pub unsafe fn thunk(
        reporting: Reporting,
        function: u64,
        words: u8,
        closed: Arc<AtomicBool>,
        refusal: Arc<Arrival>,
    ) -> Result<Pointer, HostError> {
        Self::new(
            reporting,
            __rf_calls_enter,
            Record {
                function,
                words: words.into(),
                status: reporting.status,
                closed: Arc::as_ptr(&closed),
                _closed: Some(closed),
                arrival: refusal,
            },
        )
    }

    fn new(reporting: Reporting, way: unsafe extern "C" fn(), record: Record) -> Result<Pointer, HostError> {
        let _ = REPORTING.set(reporting);
        Place::take(way as *const () as u64, Box::new(record)).map(Pointer)
    }

    /// The function pointer.
    #[must_use]
    pub fn code(&self) -> *const c_void {
        self.0.code() as *const c_void
    }
}

/// Whether a call through a [thunk](Pointer::thunk) is in progress on this thread, so that it can be given up.
#[must_use]
pub fn in_call() -> bool {
    let inner: u64;
    // SAFETY: reads the calling thread's own word.
    unsafe {
        asm!(
            "mov {0}, qword ptr [rip + __rf_calls_inner@GOTTPOFF]",
            "mov {0}, qword ptr fs:[{0}]",
            out(reg) inner,
            options(readonly, nostack, preserves_flags)
        );
    }
    inner != 0
}

/// Calls a C function with the frame's argument registers and these words on the stack.
///
/// # Safety
/// A C function is at `function` that may be called with these arguments.
pub unsafe fn call(function: *const c_void, frame: &OutFrame, words: &[u64]) -> Returned {
    let mut returned = Returned::default();
    // SAFETY: the caller's promise; everything else is ours.
    unsafe {
        __rf_calls_leave(
            function as u64,
            std::ptr::from_ref(frame).cast(),
            words.as_ptr(),
            words.len() as u64,
            &raw mut returned,
        );
    }
    returned
}
