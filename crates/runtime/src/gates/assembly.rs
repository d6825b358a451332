//! The gates: the code through which control crosses a domain's boundary.
//!
//! The order of the steps is the argument for their safety, because a host's signal handler may
//! run between any two instructions and may try to enter a domain itself:
//!
//! * A lane's `top` is 0 from the moment the thread commits to entering until it is back on the host's
//!   stack. While the current lane's top is 0, every gate in refuses this thread (`.Lin_slow` in `gate.s`).
//! * `gs` is compared and set after that moment, so nobody can change it between the check and the entry.
//! * On the way out nothing is written below the domain's `rsp` and `top` is set only once the host's stack is in use:
//!   a handler that enters the lane again pushes below `top`, where the domain's live frames end.
//!
//! Stack of a call in, at `host_sp`, low to high: previous `host_sp`, `top`, target, `r15 r14 r13 r12 rbx rbp`, return
//! address. On the control stack, below `top`: `host_sp`, lane. A call out adds, below `host_sp`, low to high: previous `data_top`,
//! `top`, import, the domain's `r15`.

use crate::domain::imports::OutFrame;
use crate::lanes::gate::{HAS_AVX, MAX_DOMAINS, RawCall, Tls, flag, kind, vectors};
use crate::lanes::lane::{Import, Lane, Target};
use core::arch::global_asm;
use core::mem::offset_of;

global_asm!(
    include_str!("gate.s"),
    t_lanes = const offset_of!(Tls, lanes),
    t_current = const offset_of!(Tls, current),
    t_status = const offset_of!(Tls, status),
    t_alt = const offset_of!(Tls, alt),
    t_alt_size = const offset_of!(Tls, alt_size),
    t_gs = const offset_of!(Tls, gs),
    t_room = const offset_of!(Tls, room),
    t_room_size = const offset_of!(Tls, room_size),
    t_stack = const offset_of!(Tls, stack),
    t_stack_reserve = const offset_of!(Tls, stack_reserve),
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
    l_in_callee = const offset_of!(Lane, in_callee),
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
    o_import = const offset_of!(OutFrame, origin),
    o_lane = const offset_of!(OutFrame, origin) + 8,
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
    w_deep = const crate::lanes::lane::attention::DEEP,
    w_counted = const crate::lanes::lane::attention::COUNTED,
    prepare = sym crate::gates::prepare::prepare,
    dispatch = sym crate::gates::dispatch::dispatch,
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
