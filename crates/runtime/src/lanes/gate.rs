//! What gates and handlers share in memory: words of a thread, frames on the stacks, and their numbers.
//!
//! The assembly in `gates` takes offsets and numbers from here.

use crate::lanes::lane::{Import, Lane, Target};
use crate::load::stubs;
use core::arch::asm;
use core::mem::offset_of;
use std::ffi::c_void;
use std::sync::atomic::AtomicPtr;

/// The runtime's words in the host's thread-local storage; `__rf_tls` in the assembly below.
#[repr(C)]
pub(crate) struct Tls {
    /// Where stubs jump.
    out: u64,
    /// The thread's lanes by domain index. Other threads take lanes away.
    pub lanes: *mut AtomicPtr<Lane>,
    /// The lane that was entered last.
    pub current: *mut Lane,
    /// Outcome of the last call in: 0, or a [`status`].
    pub status: u64,
    /// Where stack pointers are with which calls may begin, as far as one comparison tells: from the end of what must be free of the
    /// thread's stack up to the alternate stack, by way of the end of memory if that lies below. Elsewhere the gate looks at both.
    pub room: u64,
    pub room_size: u64,
    /// Whether fault signals are known not to be blocked.
    pub ready: u32,
    /// Not 0 while this thread has the world's lock in hand: see `world::lock`.
    pub locking: u32,
    /// What gates of this thread have set `gs`'s base to last. Another value there, while the thread is outside, is somebody
    /// else's: `gates::prepare::foreign_gs`.
    pub gs: u64,
    /// The lowest address of the thread's stack, and how much of it must be free for a call to begin; 0 until it has entered a domain.
    pub stack: u64,
    pub stack_reserve: u64,
    /// The alternate signal stack.
    pub alt: u64,
    /// Its size, 0 if there is none.
    pub alt_size: u64,
    /// Where the thread notes failures, `lanes::last_error`'s `Record`; null until it has entered a domain.
    pub record: *const c_void,
}

/// Values of [`Tls::status`].
pub(crate) mod status {
    /// The thread's cell tells.
    pub const CELL: u64 = 1;
    pub const FAULTED: u64 = 2;
    pub const GONE: u64 = 3;
    pub const INSIDE: u64 = 4;
    pub const SIGNAL_STACK: u64 = 5;
    /// The call that this one is nested in has to end.
    pub const ENDING: u64 = 6;
    pub const REVOKED: u64 = 7;
    /// The function was removed.
    pub const REMOVED: u64 = 8;
    /// The thread's record tells more; the word's other bits are those of `lanes::last_error`.
    pub const NOTED: u64 = 9;
    pub const NESTING: u64 = 10;
}

/// Bits of [`Target::flags`].
pub(crate) mod flag {
    /// No code in the window mentions vector registers.
    pub const NO_VECTORS: u32 = 1;
    /// The processor has AVX.
    pub const AVX: u32 = 2;
    /// `xmm0` to `xmm7` carry arguments.
    pub const KEEP_ARGUMENTS: u32 = 4;
}

/// Bits of [`Import::kind`](crate::lanes::lane::Import::kind); 0 is a plain call.
pub(crate) mod kind {
    pub const CLOSURE: u32 = 1;
    pub const X87: u32 = 2;
    /// The function is a thunk into another domain: look whether it failed.
    pub const DOMAIN: u32 = 4;
    /// The two stubs of frames.
    pub const JUMP: u32 = 8;
}

/// Values of [`Import::vectors`](crate::lanes::lane::Import::vectors): 0 leaves vector registers alone, 1 clears them all with AVX, else these bits.
pub(crate) mod vectors {
    pub const NONE: u32 = 0;
    pub const ZERO: u32 = 1;
    pub const GENERAL: u32 = 2;
    pub const KEEP_0: u32 = 4;
    pub const KEEP_1: u32 = 8;
    pub const AVX: u32 = 16;
    /// `xmm0` holds a `float`.
    pub const SINGLE: u32 = 32;
}

/// Why the gate out refused, for `__rf_out_refused`.
pub(crate) mod refused {
    pub const DATA_STACK: u64 = 0;
}

// What the stub of distances reads.
const _: () = assert!(offset_of!(Tls, current) == stubs::CURRENT as usize && offset_of!(Lane, host_sp) == 0);
const _: () = assert!(offset_of!(InFrame, top) == stubs::TOP as usize);
const _: () = assert!(size_of::<Tail>() + 16 == stubs::ABOVE as usize);

// The gate clears both in one store.
const _: () = assert!(offset_of!(Lane, in_callee) == offset_of!(Lane, call_status) + 4);
const _: () = assert!(offset_of!(Lane, call_status).is_multiple_of(8));

/// How many domains there can be: as many as windows fit into 47 bits.
pub(crate) const MAX_DOMAINS: usize = 1 << 15;

/// Arguments of [`call`], as the assembly reads them.
#[repr(C)]
pub(crate) struct RawCall {
    pub ints: *const [u64; 6],
    pub floats: *const [f64; 8],
    pub stack: *const u64,
    pub words: u64,
}

unsafe extern "C" {
    fn __rf_call(target: *const Target, call: *const RawCall, returned: *mut ringfence_core::Returned);
    /// Nothing to clear: no vector register is mentioned in the window.
    pub(crate) fn __rf_in_bare();
    /// No vector arguments: clears all, with AVX.
    pub(crate) fn __rf_in_zero();
    /// Whatever the target's flags say.
    pub(crate) fn __rf_in_full();
    /// The same, for windows whose code has x87 instructions.
    pub(crate) fn __rf_in_x87();
    static __rf_gate_begin: u8;
    static __rf_gate_end: u8;
    static __rf_fault_landing: u8;
    static __rf_call_status: u8;
}

/// Where the fault handler sends a thread whose domain faulted: `rsp` = the lane's `host_sp`, `r14` = the lane.
pub(crate) fn fault_landing() -> u64 {
    (&raw const __rf_fault_landing) as u64
}

/// What the stub `__rf_call_status` calls; only the gate out may.
pub(crate) fn call_status() -> u64 {
    (&raw const __rf_call_status) as u64
}

/// Whether `rip` is in gate code.
pub(crate) fn contains(rip: u64) -> bool {
    ((&raw const __rf_gate_begin) as u64..(&raw const __rf_gate_end) as u64).contains(&rip)
}

/// The thread pointer: identifies a thread.
#[inline]
pub(crate) fn thread_pointer() -> u64 {
    let fs: u64;
    // SAFETY: `fs:0` holds its own address on x86-64 Linux.
    unsafe {
        asm!("mov {}, qword ptr fs:[0]", out(reg) fs, options(readonly, nostack, preserves_flags, pure))
    };
    fs
}

/// The calling thread's words.
#[inline]
pub(crate) fn tls() -> *mut Tls {
    let at: u64;
    // SAFETY: computes an address from two constants of the thread.
    unsafe {
        asm!(
            "mov {0}, qword ptr [rip + __rf_tls@GOTTPOFF]",
            "add {0}, qword ptr fs:[0]",
            out(reg) at,
            options(readonly, nostack, pure)
        );
    }
    at as *mut Tls
}

/// Empties the x87 unit, as the host's code expects it where a call has come back.
pub(crate) fn empty_unit() {
    // SAFETY: compiled code keeps nothing in the unit across this.
    unsafe { asm!("fnclex", "emms", options(nomem, nostack)) };
}

/// What `lanes` is before a thread has any.
pub(crate) fn no_lanes() -> *mut AtomicPtr<Lane> {
    unsafe extern "C" {
        static mut __rf_no_lanes: [usize; MAX_DOMAINS];
    }
    (&raw mut __rf_no_lanes).cast()
}

/// What `current` is before a thread has any.
pub(crate) fn no_lane() -> *mut Lane {
    unsafe extern "C" {
        static mut __rf_no_lane: u8;
    }
    (&raw mut __rf_no_lane).cast()
}

/// Calls into a domain with everything in memory.
///
/// # Safety
/// `target` describes an entry of a live domain; `call.ints` and `call.floats` can be read; `call.stack` holds `call.words` words, as many as `target.words` says.
pub(crate) unsafe fn call(target: &Target, call: &RawCall) -> ringfence_core::Returned {
    let mut returned = ringfence_core::Returned::default();
    // SAFETY: the caller's promise.
    unsafe { __rf_call(target, call, &raw mut returned) };
    returned
}

/// The words of a call's frame at `host_sp`.
#[repr(C)]
pub(crate) struct InFrame {
    pub previous: u64,
    pub top: u64,
    pub target: u64,
    pub saved: [*const c_void; 6],
    pub return_address: u64,
}

/// What the gate out passes for the stubs of frames: registers of the domain, in and out.
#[repr(C)]
pub(crate) struct JumpFrame {
    /// `rbx rbp r12 r13 r15`.
    pub saved: [u64; 5],
    pub rdi: u64,
    pub rsi: u64,
    /// `rax rdx`.
    pub result: [u64; 2],
    /// Keeps the gate's frame aligned.
    _pad: u64,
}

/// The words of a call in, on the host's stack at the lane's `host_sp`. The return address follows.
#[repr(C)]
pub(crate) struct InWords {
    /// What the lane had before this call.
    pub host_sp: u64,
    pub top: u64,
    pub target: *const Target,
    /// `r15 r14 r13 r12 rbx rbp`.
    pub saved: [u64; 6],
}

/// The last words of the control stack, below the `top` that a call in began with.
#[repr(C)]
pub(crate) struct Tail {
    pub lane: *const Lane,
    /// Where the words of the call in are.
    pub host_sp: u64,
}

/// The words of a call out, below those of the call in.
#[repr(C)]
pub(crate) struct OutWords {
    pub data_top: u64,
    /// The domain's stack pointer; its return address stands there.
    pub top: u64,
    /// What is called; not written yet while the gate looks at the call.
    pub import: *const Import,
    /// The domain's `r15`.
    pub data: u64,
}

impl OutWords {
    /// Where calls that are nested in this one have the top of the data stack, as the gate computes it; `base` is the window's.
    pub(crate) fn data_top_for_calls(&self, base: u64) -> u64 {
        let low = u64::from(self.data as u32).wrapping_sub(ringfence_isa::window::RED_ZONE.into());
        (low & !15).wrapping_add(base)
    }
}
