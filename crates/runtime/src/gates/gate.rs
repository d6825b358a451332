//! The gates: the code through which control crosses a domain's boundary.
//!
//! The order of the steps is the argument for their safety, because a host's signal handler may
//! run between any two instructions and may try to enter a domain itself:
//!
//! * A lane's `top` is 0 from the moment the thread commits to entering until it is back on the host's
//!   stack. While the current lane's top is 0, every gate in refuses this thread ([`IN`](self), label 9).
//! * `gs` is compared and set after that moment, so nobody can change it between the check and the entry.
//! * On the way out nothing is written below the domain's `rsp` and `top` is set only once the host's stack is in use:
//!   a handler that enters the lane again pushes below `top`, where the domain's live frames end.
//!
//! Stack of a call in, at `host_sp`, low to high: previous `host_sp`, `top`, target, `r15 r14 r13 r12 rbx rbp`, return
//! address. On the control stack, below `top`: lane, `host_sp`. A call out adds, below `host_sp`: previous `data_top`,
//! `top`, import, `rax`.

use crate::domain::imports::OutFrame;
use crate::lanes::lane::{Import, Lane, Target};
use core::arch::{asm, global_asm};
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
    /// The alternate signal stack.
    pub alt: u64,
    /// Its size, 0 if there is none.
    pub alt_size: u64,
    /// Whether fault signals are known not to be blocked.
    pub ready: u64,
    /// Not 0 while this thread has the world's lock in hand: see `world::lock`.
    pub locking: u64,
}

/// Values of [`Tls::status`].
pub(crate) mod status {
    /// The thread's error slot tells.
    pub const SLOT: u64 = 1;
    pub const FAULTED: u64 = 2;
    pub const GONE: u64 = 3;
    pub const INSIDE: u64 = 4;
    pub const SIGNAL_STACK: u64 = 5;
    /// The call that this one is nested in has to end.
    pub const ENDING: u64 = 6;
    pub const REVOKED: u64 = 7;
    /// The function was unlinked.
    pub const UNLINKED: u64 = 8;
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

/// Bits of [`Import::kind`]; 0 is a plain call.
pub(crate) mod kind {
    pub const CLOSURE: u32 = 1;
    pub const X87: u32 = 2;
    /// The function is a thunk into another domain: look whether it failed.
    pub const DOMAIN: u32 = 4;
    /// `setjmp`, `longjmp`, and the two stubs of exceptions.
    pub const JUMP: u32 = 8;
}

/// Values of [`Import::vectors`]: 0 leaves vector registers alone, 1 clears them all with AVX, else these bits.
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
    pub const NESTING: u64 = 1;
}

// The gate clears both in one store.
const _: () = assert!(offset_of!(Lane, linked) == offset_of!(Lane, call_status) + 4);
const _: () = assert!(offset_of!(Lane, call_status).is_multiple_of(8));

/// Whether the processor has AVX, for code that has no target at hand. Set when the first domain is made.
pub(crate) static HAS_AVX: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);

/// How many domains there can be: as many as windows fit into 47 bits.
pub(crate) const MAX_DOMAINS: usize = 1 << 15;

global_asm!(
    include_str!("gate.s"),
    t_lanes = const offset_of!(Tls, lanes),
    t_current = const offset_of!(Tls, current),
    t_status = const offset_of!(Tls, status),
    t_alt = const offset_of!(Tls, alt),
    t_alt_size = const offset_of!(Tls, alt_size),
    l_top = const offset_of!(Lane, top),
    l_host_sp = const offset_of!(Lane, host_sp),
    l_data_top = const offset_of!(Lane, data_top),
    l_attention = const offset_of!(Lane, attention),
    l_depth = const offset_of!(Lane, depth),
    l_base = const offset_of!(Lane, base),
    l_thread = const offset_of!(Lane, thread),
    l_imports = const offset_of!(Lane, imports),
    l_import_count = const offset_of!(Lane, import_count),
    l_sequence = const offset_of!(Lane, sequence),
    l_again = const offset_of!(Lane, again),
    l_credit = const offset_of!(Lane, credit),
    l_data_low = const offset_of!(Lane, data_low),
    l_data_len = const offset_of!(Lane, data_len),
    l_saved = const offset_of!(Lane, saved),
    l_call_status = const offset_of!(Lane, call_status),
    l_linked = const offset_of!(Lane, linked),
    e_index = const offset_of!(Target, index),
    e_base = const offset_of!(Target, base),
    e_entry = const offset_of!(Target, entry),
    e_flags = const offset_of!(Target, flags),
    e_words = const offset_of!(Target, words),
    e_gate = const offset_of!(Target, gate),
    e_x87 = const offset_of!(Target, x87),
    i_function = const offset_of!(Import, function),
    i_kind = const offset_of!(Import, kind),
    i_vectors = const offset_of!(Import, vectors),
    i_rax = const offset_of!(Import, rax_mask),
    i_rdx = const offset_of!(Import, rdx_mask),
    i_x87 = const offset_of!(Import, x87),
    o_size = const size_of::<OutFrame>(),
    o_ints = const offset_of!(OutFrame, ints),
    o_rax = const offset_of!(OutFrame, rax),
    o_r10 = const offset_of!(OutFrame, r10),
    o_vectors = const offset_of!(OutFrame, vectors),
    o_result = const offset_of!(OutFrame, result),
    o_vector_result = const offset_of!(OutFrame, vector_result),
    o_stack = const offset_of!(OutFrame, stack),
    o_import = const offset_of!(OutFrame, import),
    o_lane = const offset_of!(OutFrame, lane),
    c_ints = const offset_of!(RawCall, ints),
    c_floats = const offset_of!(RawCall, floats),
    c_stack = const offset_of!(RawCall, stack),
    c_words = const offset_of!(RawCall, words),
    f_no_vectors = const flag::NO_VECTORS,
    f_avx = const flag::AVX,
    f_keep = const flag::KEEP_ARGUMENTS,
    k_closure = const kind::CLOSURE,
    k_x87 = const kind::X87,
    k_domain = const kind::DOMAIN,
    k_jump = const kind::JUMP,
    has_avx = sym HAS_AVX,
    v_zero = const vectors::ZERO,
    v_keep0 = const vectors::KEEP_0,
    v_keep1 = const vectors::KEEP_1,
    v_avx = const vectors::AVX,
    v_single = const vectors::SINGLE,
    max_nesting = const crate::domain::MAX_NESTING,
    red_zone = const ringfence_isa::window::RED_ZONE,
    max_domains = const MAX_DOMAINS,
    w_ignore = const crate::lanes::lane::attention::IGNORED_ON_RETURN,
    w_counted = const crate::lanes::lane::attention::COUNTED,
    prepare = sym crate::lanes::lane::prepare,
    dispatch = sym crate::domain::dispatch,
    refused = sym crate::gates::fault::refused,
    disorder = sym crate::gates::fault::disorder,
    attention = sym crate::gates::fault::attention,
    jump = sym crate::gates::jump::jump,
    unhook = sym crate::gates::jump::unhook,
    callee_failed = sym crate::gates::fault::callee_failed,
    landed = sym crate::gates::fault::landed,
    tsan = const cfg!(ringfence_tsan) as u32,
    tell_leaving = sym crate::lanes::lane::tell_leaving,
    options(att_syntax)
);

/// Arguments of [`call`], as the assembly reads them.
#[repr(C)]
pub(crate) struct RawCall {
    pub ints: [u64; 6],
    pub floats: [f64; 8],
    pub stack: *const u64,
    pub words: u64,
}

unsafe extern "C" {
    fn __rf_call(target: *const Target, call: *const RawCall, returned: *mut crate::domain::Returned);
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
    static __rf_hook: u8;
    static __rf_call_status: u8;
}

/// Where the fault handler sends a thread whose domain faulted: `rsp` = the lane's `host_sp`, `r14` = the lane.
pub(crate) fn fault_landing() -> u64 {
    (&raw const __rf_fault_landing) as u64
}

/// What stands in place of the return address of a function that has called `setjmp`.
pub(crate) fn hook() -> u64 {
    (&raw const __rf_hook) as u64
}

/// What the stub `__rf_call_status` calls; only the gate out may.
pub(crate) fn call_status() -> u64 {
    (&raw const __rf_call_status) as u64
}

/// Whether `rip` is in gate code.
pub(crate) fn contains(rip: u64) -> bool {
    ((&raw const __rf_gate_begin) as u64..(&raw const __rf_gate_end) as u64).contains(&rip)
}

/// Offset of the runtime's thread-local words from `fs`, the same for all threads.
pub(crate) fn tls_offset() -> i32 {
    let offset: i64;
    // SAFETY: reads a constant that the dynamic linker stored.
    unsafe {
        asm!("mov {}, qword ptr [rip + __rf_tls@GOTTPOFF]", out(reg) offset, options(nomem, nostack, preserves_flags, pure));
    }
    offset as i32
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
/// `target` describes an entry of a live domain; `call.stack` holds `call.words` words, as many as `target.words` says.
pub(crate) unsafe fn call(target: &Target, call: &RawCall) -> crate::domain::Returned {
    let mut returned = crate::domain::Returned::default();
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
