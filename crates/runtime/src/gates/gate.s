// The gates. Read gate.rs first: what must hold at each step is said there.
.pushsection .text.__rf_gate,"ax",@progbits
.hidden __rf_gate_begin
.globl __rf_gate_begin
.hidden __rf_gate_end
.globl __rf_gate_end
__rf_gate_begin:

.macro RF_SSE_0_1
    xorps %xmm0, %xmm0
    xorps %xmm1, %xmm1
.endm
.macro RF_SSE_2_7
    xorps %xmm2, %xmm2
    xorps %xmm3, %xmm3
    xorps %xmm4, %xmm4
    xorps %xmm5, %xmm5
    xorps %xmm6, %xmm6
    xorps %xmm7, %xmm7
.endm
.macro RF_SSE_8_15
    xorps %xmm8, %xmm8
    xorps %xmm9, %xmm9
    xorps %xmm10, %xmm10
    xorps %xmm11, %xmm11
    xorps %xmm12, %xmm12
    xorps %xmm13, %xmm13
    xorps %xmm14, %xmm14
    xorps %xmm15, %xmm15
.endm

// All vector registers. vzeroall alone does the same, but is microcode on Intel processors: with it a null call took 9.8 ns where
// it takes 6.1 this way, which is a cheap instruction and 16 that are done when registers are renamed.
.macro RF_VECTORS_ZERO
    vzeroupper
    RF_SSE_0_1
    RF_SSE_2_7
    RF_SSE_8_15
.endm

// No exception is noted; what was is at \at. fnclex is microcode, sixty cycles on an AMD Zen 5, and there is rarely one.
.macro RF_X87_NO_EXCEPTIONS at
    fnstsw \at
    testw $0x80FF, \at                  // the flags, and those that fnclex clears with them
    jz .Lno_exceptions_\@
    fnclex
.Lno_exceptions_\@:
.endm

// What a domain finds in the x87 unit. fxam tells the sign of a register even if it is empty, so they all become +0;
// fnstsw tells flags and condition codes, so there are none, and those of 0 compared with 0.
.macro RF_X87_FRESH at
    RF_X87_NO_EXCEPTIONS \at
    emms
    .rept 8
    fldz
    .endr
    ftst
    emms
.endm

// ThreadSanitizer does not see what gates store: in its builds this tells it of a thread that leaves a domain, by the lane in
// \lane, before those stores that others look at. Keeps the results and r10, r11, r14. rsp is a multiple of 16.
.macro RF_TELL_LEAVING lane
.if {tsan}
    pushq %rax
    pushq %rdx
    pushq %r10
    pushq %r11
    subq $32, %rsp
    movups %xmm0, (%rsp)
    movups %xmm1, 16(%rsp)
    movq \lane, %rdi
    callq {tell_leaving}
    movups (%rsp), %xmm0
    movups 16(%rsp), %xmm1
    addq $32, %rsp
    popq %r11
    popq %r10
    popq %rdx
    popq %rax
.endif
.endm

// In. r11 = target; everything else as the caller of a C function left it.
// mode 0: nothing to clear among the vector registers; 1: all of them, with AVX; 2: by flags, with stack arguments.
.macro RF_IN name, mode
.p2align 6
.hidden \name
.globl \name
.type \name,@function
\name:
    .cfi_startproc
.if \mode == 2
    leaq 8(%rsp), %r10
.hidden \name\()_from
.globl \name\()_from
\name\()_from:                          // r10 = the caller's stack arguments
.endif
.Lin_again_\name:
    pushq %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbp, 0
    pushq %rbx
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbx, 0
    pushq %r12
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %r12, 0
    pushq %r13
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %r13, 0
    pushq %r14
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %r14, 0
    pushq %r15
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %r15, 0
.Lin_find_lane_\name:
    movq __rf_tls@gottpoff(%rip), %rbx
    movq %fs:{t_lanes}(%rbx), %r15
    movq {e_index}(%r11), %r14
    movq (%r15,%r14), %r12              // the thread's lane
    testq %r12, %r12
    jz .Lin_slow_\name
    movq {l_top}(%r12), %r13
    testq %r13, %r13
    jz .Lin_slow_\name
    movq %fs:{t_current}(%rbx), %r14
    cmpq $0, {l_top}(%r14)              // is this thread inside any domain?
    je .Lin_slow_\name
    movq %rsp, %r14
    subq %fs:{t_room}(%rbx), %r14
    cmpq %fs:{t_room_size}(%rbx), %r14
    jae .Lin_other_stack_\name
.Lin_stack_\name:
    movq {l_host_sp}(%r12), %rbp
    pushq %r11
    .cfi_adjust_cfa_offset 8
    pushq %r13
    .cfi_adjust_cfa_offset 8
    pushq %rbp
    .cfi_adjust_cfa_offset 8
    cmpq $1, %rbp                       // the outermost call counts
    adcq $0, {l_sequence}(%r12)
    movq %rsp, {l_host_sp}(%r12)        // stored before attention is loaded: see watchdog::barrier
    cmpl $0, {l_attention}(%r12)
    jne .Lin_attention_\name
.Lin_counted_\name:
    // Since they were read, a handler's call may have answered the bit that told of a change: whoever makes one from here on sees the call.
    movq {e_index}(%r11), %r14
    movq %fs:{t_lanes}(%rbx), %r15
    cmpq %r12, (%r15,%r14)
    jne .Lin_changed_\name
    cmpq %r13, {l_top}(%r12)
    jne .Lin_changed_\name
    movq $0, {l_top}(%r12)
    movq %r12, %fs:{t_current}(%rbx)    // from here on no handler can enter a domain
    movq %r12, {y_lane}-{y_size}(%r13)
    movq %rsp, {y_host_sp}-{y_size}(%r13)
    movq {e_base}(%r11), %r14
    rdgsbase %rbp
    cmpq %r14, %rbp
    jne .Lin_other_window_\name
.Lin_enter_\name:
    movq {l_data_top}(%r12), %r15
    leaq -{y_size}(%r13), %rsp
    // CFA = the host_sp that stands on the control stack + 80
    .cfi_remember_state
    .cfi_escape 0x0f, 5, 0x77, 8, 0x06, 0x23, 80
.if \mode == 2
    movl {e_words}(%r11), %ebp
    testl %ebp, %ebp
    jz .Lin_clear_\name
    leaq 15(,%rbp,8), %rbx
    andq $-16, %rbx
    subq %rbx, %r15
.Lin_copy_stack_\name:
    movq -8(%r10,%rbp,8), %rbx
    movq %rbx, -8(%r15,%rbp,8)
    decl %ebp
    jnz .Lin_copy_stack_\name
.Lin_clear_\name:
    movl {e_flags}(%r11), %ebx
    testl ${f_no_vectors}, %ebx
    jnz .Lin_cleared_\name
    testl ${f_keep}, %ebx
    jnz .Lin_keep_arguments_\name
    testl ${f_avx}, %ebx
    jz .Lin_clear_all_\name
    vzeroupper
.Lin_clear_all_\name:
    RF_SSE_0_1
    RF_SSE_2_7
    RF_SSE_8_15
    jmp .Lin_cleared_\name
.Lin_keep_arguments_\name:
    testl ${f_avx}, %ebx
    jz .Lin_clear_others_\name
    vzeroupper
.Lin_clear_others_\name:
    RF_SSE_8_15
.Lin_cleared_\name:
    movzbl %al, %eax
.else
.if \mode == 1
    RF_VECTORS_ZERO
.endif
    xorl %eax, %eax
.endif
    movq {e_entry}(%r11), %r11
    xorl %ebx, %ebx
    xorl %ebp, %ebp
    xorl %r10d, %r10d
    xorl %r12d, %r12d
    xorl %r13d, %r13d
    callq *%r11
    movq {y_lane}(%rsp), %r10
    leaq {y_size}(%rsp), %r11
    movq {y_host_sp}(%rsp), %rsp
    .cfi_restore_state
    RF_TELL_LEAVING %r10
    movq %r11, {l_top}(%r10)
    // A constant stored where the value is almost always 0 keeps one call from waiting for the one before.
    cmpq $0, {n_host_sp}(%rsp)
    jne .Lin_nested_\name
    movq $0, {l_host_sp}(%r10)
.Lin_left_\name:
    addq ${n_saved}, %rsp
    .cfi_adjust_cfa_offset -24
    movq __rf_tls@gottpoff(%rip), %rbx
    movq $0, %fs:{t_status}(%rbx)
.Lin_pop_\name:
    .cfi_remember_state
    popq %r15
    .cfi_adjust_cfa_offset -8
    popq %r14
    .cfi_adjust_cfa_offset -8
    popq %r13
    .cfi_adjust_cfa_offset -8
    popq %r12
    .cfi_adjust_cfa_offset -8
    popq %rbx
    .cfi_adjust_cfa_offset -8
    popq %rbp
    .cfi_adjust_cfa_offset -8
    retq
    .cfi_restore_state
    .cfi_adjust_cfa_offset 24
.Lin_other_stack_\name:               // a fiber's, or near the end of the thread's own, or the alternate one
    movq %rsp, %r14
    subq %fs:{t_alt}(%rbx), %r14
    cmpq %fs:{t_alt_size}(%rbx), %r14
    jb .Lin_slow_\name
    movq %rsp, %r14
    subq %fs:{t_stack}(%rbx), %r14
    cmpq %fs:{t_stack_reserve}(%rbx), %r14
    jb .Lin_slow_\name
    jmp .Lin_stack_\name
.Lin_other_window_\name:
    cmpq %rbp, %fs:{t_gs}(%rbx)
    jne .Lin_foreign_gs_\name
    movq %r14, %fs:{t_gs}(%rbx)
    wrgsbase %r14
    jmp .Lin_enter_\name
.Lin_nested_\name:
    movq {n_host_sp}(%rsp), %rbp
    movq %rbp, {l_host_sp}(%r10)
    jmp .Lin_left_\name
.Lin_foreign_gs_\name:    // gs holds what this thread's gates have not put there
    movq %r13, {l_top}(%r12)
.Lin_changed_\name:        // another target or lane than it was
    movq {n_host_sp}(%rsp), %rbp
    testl ${w_counted}, {l_attention}(%r12)
    jz .Lin_undo_\name
    testq %rbp, %rbp
    jnz .Lin_undo_\name
    lock addq $1, {l_credit}(%r12)
    jmp .Lin_undo_\name
.Lin_attention_\name:
    cmpl ${w_counted}, {l_attention}(%r12)
    jne .Lin_undo_\name
    testq %rbp, %rbp                    // a nested call is part of the outermost
    jnz .Lin_counted_\name
    lock subq $1, {l_credit}(%r12)
    jns .Lin_counted_\name
    lock addq $1, {l_credit}(%r12)
.Lin_undo_\name:
    movq %rbp, {l_host_sp}(%r12)
    cmpq $1, %rbp                       // counted, but not begun
    adcq $0, {l_again}(%r12)
    addq ${n_saved}, %rsp
    .cfi_adjust_cfa_offset -24
.Lin_slow_\name:
    callq __rf_in_slow
    cmpl $1, %ebp
    je .Lin_find_lane_\name
    ja .Lin_keep_foreign_gs_\name
    xorl %eax, %eax
    xorl %edx, %edx
    RF_SSE_0_1
    jmp .Lin_pop_\name
.Lin_keep_foreign_gs_\name:    // somebody else's gs: the call once more, and gs as it was afterwards
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    rdgsbase %rbx
    movq __rf_tls@gottpoff(%rip), %rbp
    movq %fs:{t_gs}(%rbp), %r12
    movq %rbx, %fs:{t_gs}(%rbp)
    callq .Lin_again_\name
    wrgsbase %rbx
    movq %r12, %fs:{t_gs}(%rbp)
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    jmp .Lin_pop_\name
    .cfi_endproc
.size \name,.-\name
.endm

RF_IN __rf_in_bare, 0
RF_IN __rf_in_zero, 1
RF_IN __rf_in_full, 2

// Something is not as the fast path wants it. Keeps all arguments; ebp = 1: try again, 0: the call fails, 2: try again, and put gs
// back when the call is over.
.p2align 4
.type __rf_in_slow,@function
__rf_in_slow:
    .cfi_startproc
    subq $208, %rsp
    .cfi_adjust_cfa_offset 208
    movq %rdi, 128(%rsp)
    movq %rsi, 136(%rsp)
    movq %rdx, 144(%rsp)
    movq %rcx, 152(%rsp)
    movq %r8, 160(%rsp)
    movq %r9, 168(%rsp)
    movq %rax, 176(%rsp)
    movq %r10, 184(%rsp)
    movq %r11, 192(%rsp)
    movups %xmm0, (%rsp)
    movups %xmm1, 16(%rsp)
    movups %xmm2, 32(%rsp)
    movups %xmm3, 48(%rsp)
    movups %xmm4, 64(%rsp)
    movups %xmm5, 80(%rsp)
    movups %xmm6, 96(%rsp)
    movups %xmm7, 112(%rsp)
    movq %r11, %rdi
    leaq 216(%rsp), %rsi
    callq {prepare}
    movl %eax, %ebp
    movups (%rsp), %xmm0
    movups 16(%rsp), %xmm1
    movups 32(%rsp), %xmm2
    movups 48(%rsp), %xmm3
    movups 64(%rsp), %xmm4
    movups 80(%rsp), %xmm5
    movups 96(%rsp), %xmm6
    movups 112(%rsp), %xmm7
    movq 128(%rsp), %rdi
    movq 136(%rsp), %rsi
    movq 144(%rsp), %rdx
    movq 152(%rsp), %rcx
    movq 160(%rsp), %r8
    movq 168(%rsp), %r9
    movq 176(%rsp), %rax
    movq 184(%rsp), %r10
    movq 192(%rsp), %r11
    addq $208, %rsp
    .cfi_adjust_cfa_offset -208
    retq
    .cfi_endproc
.size __rf_in_slow,.-__rf_in_slow

// Out. r11d = stub; rsp = the control stack, r15 = the data stack, arguments in registers.
.p2align 6
.hidden __rf_out
.globl __rf_out
.type __rf_out,@function
__rf_out:
    .cfi_startproc
    // The caller's frame is on another stack, usually below: gdb takes that for a broken stack but in signal frames.
    .cfi_signal_frame
    .cfi_undefined %r14
    movq __rf_tls@gottpoff(%rip), %r14
    movq %fs:{t_current}(%r14), %r14
    movq %rax, {l_saved}(%r14)
    movq %rsp, %rax
    movq {l_host_sp}(%r14), %rsp
    leaq -{x_size}(%rsp), %rsp
    movq %rax, {x_top}(%rsp)
    movq %r15, {x_data}(%rsp)           // for unwind.rs
    // CFA = the top that stands in the frame + 8
    .cfi_escape 0x0f, 5, 0x77, 8, 0x06, 0x23, 8
    movq {l_data_top}(%r14), %rax
    movq %rax, {x_data_top}(%rsp)
    movl %r15d, %eax
    subl {l_data_low}(%r14), %eax
    cmpl {l_data_len}(%r14), %eax
    ja .Lout_bad_stack
    movl %r15d, %eax
    subq ${red_zone}, %rax
    andq $-16, %rax
    addq {l_base}(%r14), %rax
    movq %rax, {l_data_top}(%r14)
    incl {l_depth}(%r14)
    cmpl ${max_nesting}, {l_depth}(%r14)
    jae .Lout_deep
.Lout_counted:
    cmpq {l_import_count}(%r14), %r11
    jae .Lout_no_import
    movq {l_saved}(%r14), %rax
    pushq {x_top}(%rsp)
    .cfi_remember_state
    .cfi_escape 0x0f, 5, 0x77, 16, 0x06, 0x23, 8
    popq {l_top}(%r14)                  // from here on the lane can be entered again
    .cfi_restore_state
    shlq $6, %r11
    addq {l_imports}(%r14), %r11
    movq %r11, {x_import}(%rsp)
    cmpl $0, {i_kind}(%r11)
    jne .Lout_other_kinds
    callq *{i_function}(%r11)
.Lout_back:
    movq %fs:0, %rcx
    cmpq {l_thread}(%r14), %rcx
    jne .Lout_disorder
    movq {x_top}(%rsp), %rcx
    cmpq {l_top}(%r14), %rcx
    jne .Lout_disorder
    leaq {x_size}(%rsp), %rsi
    cmpq {l_host_sp}(%r14), %rsi
    jne .Lout_disorder
    testl $~{w_ignore}, {l_attention}(%r14)
    jnz .Lout_attention
.Lout_resume:
    movq {x_import}(%rsp), %r11
    andq {i_rax}(%r11), %rax
    andq {i_rdx}(%r11), %rdx
    movl {i_vectors}(%r11), %edi
    testl %edi, %edi
    jz .Lout_cleared
    cmpl ${v_zero}, %edi
    jne .Lout_vectors
    RF_VECTORS_ZERO
.Lout_cleared:
    movq $0, {l_top}(%r14)
    movq {x_data_top}(%rsp), %rsi
    movq %rsi, {l_data_top}(%r14)
    decl {l_depth}(%r14)
    movq __rf_tls@gottpoff(%rip), %rsi
    movq %r14, %fs:{t_current}(%rsi)    // from here on no handler can enter a domain
    movq {l_base}(%r14), %r14
    rdgsbase %rsi
    cmpq %r14, %rsi
    jne .Lout_other_window
.Lout_return:
    movq %rcx, %rsp
    .cfi_remember_state
    .cfi_def_cfa %rsp, 8
    xorl %ecx, %ecx
    xorl %esi, %esi
    xorl %edi, %edi
    xorl %r8d, %r8d
    xorl %r9d, %r9d
    xorl %r10d, %r10d
    xorl %r11d, %r11d
    retq
    .cfi_restore_state
.Lout_other_window:
    movq __rf_tls@gottpoff(%rip), %rsi
    movq %r14, %fs:{t_gs}(%rsi)
    wrgsbase %r14
    jmp .Lout_return
.Lout_vectors:    // results in vector registers, or no AVX
    testl ${v_avx}, %edi
    jz .Lout_clear_others
    vzeroupper
.Lout_clear_others:
    RF_SSE_2_7
    RF_SSE_8_15
    testl ${k_closure}, {i_kind}(%r11)
    jnz .Lout_keep_first
    movq %xmm0, %xmm0                   // what a compiler left above a number is the host's
    movq %xmm1, %xmm1
    testl ${v_single}, %edi
    jz .Lout_keep_first
    pslldq $12, %xmm0
    psrldq $12, %xmm0
.Lout_keep_first:
    testl ${v_keep0}, %edi
    jnz .Lout_keep_second
    xorps %xmm0, %xmm0
.Lout_keep_second:
    testl ${v_keep1}, %edi
    jnz .Lout_cleared
    xorps %xmm1, %xmm1
    jmp .Lout_cleared

.Lout_other_kinds:    // other domains, closures, and everything in windows with x87 code
    cmpl ${k_domain}, {i_kind}(%r11)
    jne .Lout_by_bits
    movl $1, {l_in_callee}(%r14)           // see watchdog::along
    callq *{i_function}(%r11)
.Lout_domain_back:
    movq __rf_tls@gottpoff(%rip), %rcx
    cmpq $0, %fs:{t_status}(%rcx)
    jne .Lout_callee_failed
    movq $0, {l_call_status}(%r14)      // and l_in_callee
    jmp .Lout_back
.Lout_callee_failed:
    movq %r14, %rdi
    movq %rsp, %rsi
    callq {callee_failed}
    testl %eax, %eax
    jnz .Lout_end
    movq %rdx, %rax                     // what the slot has for failures; nothing else of the callee's is left
    xorl %edx, %edx
    RF_SSE_0_1
    jmp .Lout_back
.Lout_by_bits:
    testl ${k_closure}, {i_kind}(%r11)
    jnz .Lout_closure
    testl ${k_jump}, {i_kind}(%r11)
    jnz .Lout_jump
    testl ${k_x87}, {i_kind}(%r11)
    jz .Lout_x87_left
    callq __rf_x87_leave
.Lout_x87_left:
    testl ${k_domain}, {i_kind}(%r11)
    jz .Lout_call
    movl $1, {l_in_callee}(%r14)
.Lout_call:
    callq *{i_function}(%r11)
    movq {x_import}(%rsp), %r11
    testl ${k_x87}, {i_kind}(%r11)
    jz .Lout_x87_back
    callq __rf_x87_return
.Lout_x87_back:
    testl ${k_domain}, {i_kind}(%r11)
    jz .Lout_back
    jmp .Lout_domain_back

.Lout_closure:
    subq ${o_size}, %rsp
    // The same CFA, o_size further up: unwinders (a panic's backtrace) start from the host function.
    .cfi_remember_state
    .cfi_escape 0x0f, 6, 0x77, (({o_size} + 8) & 0x7f) | 0x80, ({o_size} + 8) >> 7, 0x06, 0x23, 8
    movq %rdi, {o_ints}(%rsp)
    movq %rsi, {o_ints}+8(%rsp)
    movq %rdx, {o_ints}+16(%rsp)
    movq %rcx, {o_ints}+24(%rsp)
    movq %r8, {o_ints}+32(%rsp)
    movq %r9, {o_ints}+40(%rsp)
    movq %rax, {o_rax}(%rsp)
    movq %r10, {o_r10}(%rsp)
    movups %xmm0, {o_vectors}(%rsp)
    movups %xmm1, {o_vectors}+16(%rsp)
    movups %xmm2, {o_vectors}+32(%rsp)
    movups %xmm3, {o_vectors}+48(%rsp)
    movups %xmm4, {o_vectors}+64(%rsp)
    movups %xmm5, {o_vectors}+80(%rsp)
    movups %xmm6, {o_vectors}+96(%rsp)
    movups %xmm7, {o_vectors}+112(%rsp)
    xorl %eax, %eax
    movq %rax, {o_result}(%rsp)
    movq %rax, {o_result}+8(%rsp)
    movq %rax, {o_vector_result}(%rsp)
    movq %rax, {o_vector_result}+8(%rsp)
    movq %rax, {o_vector_result}+16(%rsp)
    movq %rax, {o_vector_result}+24(%rsp)
    movl %r15d, %eax
    addq {l_base}(%r14), %rax
    movq %rax, {o_stack}(%rsp)
    movq %r11, {o_import}(%rsp)
    movq %r14, {o_lane}(%rsp)
    testl ${k_x87}, {i_kind}(%r11)
    jz .Lout_closure_call
    callq __rf_x87_leave
.Lout_closure_call:
    movq %rsp, %rdi
    callq {dispatch}
    testl %eax, %eax
    jnz .Lout_closure_failed
    movq {o_import}(%rsp), %r11
    testl ${k_x87}, {i_kind}(%r11)
    jz .Lout_closure_back
    callq __rf_x87_return
.Lout_closure_back:
    movq {o_result}(%rsp), %rax
    movq {o_result}+8(%rsp), %rdx
    movups {o_vector_result}(%rsp), %xmm0
    movups {o_vector_result}+16(%rsp), %xmm1
    addq ${o_size}, %rsp
    .cfi_restore_state
    jmp .Lout_back

.Lout_jump:    // the two stubs of frames
    movq $0, {l_top}(%r14)              // no handler may enter the lane meanwhile
    subq ${j_size}, %rsp
    .cfi_remember_state
    .cfi_escape 0x0f, 6, 0x77, 0xd8, 0, 0x06, 0x23, 8
    movq %rbx, {j_saved}(%rsp)
    movq %rbp, {j_saved}+8(%rsp)
    movq %r12, {j_saved}+16(%rsp)
    movq %r13, {j_saved}+24(%rsp)
    movq %r15, {j_saved}+32(%rsp)
    movq %rdi, {j_rdi}(%rsp)
    movq %rsi, {j_rsi}(%rsp)
    movq %r14, %rdi
    movq %rsp, %rsi
    movq %r11, %rdx
    leaq {j_size}(%rsp), %rcx
    callq {jump}
    movq {j_saved}(%rsp), %rbx
    movq {j_saved}+8(%rsp), %rbp
    movq {j_saved}+16(%rsp), %r12
    movq {j_saved}+24(%rsp), %r13
    movq {j_saved}+32(%rsp), %r15
    movq {j_result}(%rsp), %rcx
    movq {j_result}+8(%rsp), %rdx
    addq ${j_size}, %rsp
    .cfi_restore_state
    testl %eax, %eax
    jnz .Lout_end
    movq %rcx, %rax
    movq {x_top}(%rsp), %rcx                  // a jump has moved it
    movq %rcx, {l_top}(%r14)
    jmp .Lout_back

.Lout_deep:    // whoever enters the lane now goes the slow way, and is refused
    lock orl ${w_deep}, {l_attention}(%r14)
    jmp .Lout_counted
.Lout_bad_stack:    // r15 is not on the lane's data stack
    incl {l_depth}(%r14)
    xorl %esi, %esi
    jmp .Lout_refused
.Lout_no_import:    // no such import
    movl $2, %esi
.Lout_refused:
    movq %r14, %rdi
    movq %r11, %rdx
    movq %rsp, %rcx
    callq {refused}
    jmp .Lout_end
.Lout_closure_failed:
    addq ${o_size}, %rsp
.Lout_end:                           // the call in ends here, the error is in the thread's cell
    movq {x_data_top}(%rsp), %rax
    movq %rax, {l_data_top}(%r14)
    decl {l_depth}(%r14)
    addq ${x_size}, %rsp
    jmp .Lleave
.Lout_disorder:    // wrong thread, or out of order: the lane is not ours to touch
    movq %r14, %rdi
    leaq {x_size}(%rsp), %rsi
    callq {disorder}
    addq ${x_size}+{n_saved}, %rsp
    jmp .Lleave_popped
.Lout_attention:    // faulted meanwhile, or interrupted
    subq $48, %rsp
    .cfi_remember_state
    .cfi_escape 0x0f, 5, 0x77, 56, 0x06, 0x23, 8
    movq %rax, (%rsp)
    movq %rdx, 8(%rsp)
    movups %xmm0, 16(%rsp)
    movups %xmm1, 32(%rsp)
    movq %r14, %rdi
    callq {attention}
    testl %eax, %eax
    movq (%rsp), %rax
    movq 8(%rsp), %rdx
    movups 16(%rsp), %xmm0
    movups 32(%rsp), %xmm1
    leaq 48(%rsp), %rsp
    .cfi_restore_state
    movq 8(%rsp), %rcx
    jz .Lout_resume
    jmp .Lout_end
    .cfi_endproc
.size __rf_out,.-__rf_out

// The stub __rf_call_status: how the last call of another domain on this lane went. As a host function: r14 is the lane still.
// (The thread's current lane is another one after a handler has entered a domain.)
.p2align 4
.hidden __rf_call_status
.globl __rf_call_status
.type __rf_call_status,@function
__rf_call_status:
    .cfi_startproc
    movl {l_call_status}(%r14), %eax
    retq
    .cfi_endproc
.size __rf_call_status,.-__rf_call_status

// The fault handler sends the thread here: rsp = the lane's host_sp, r14 = the lane.
.p2align 4
.hidden __rf_fault_landing
.globl __rf_fault_landing
.type __rf_fault_landing,@function
__rf_fault_landing:
    .cfi_startproc
    .cfi_def_cfa_offset 80
    .cfi_offset %rbp, -16
    .cfi_offset %rbx, -24
    .cfi_offset %r12, -32
    .cfi_offset %r13, -40
    .cfi_offset %r14, -48
    .cfi_offset %r15, -56
    cld
    movq {n_target}(%rsp), %rax                 // the target
    leaq __rf_in_x87(%rip), %rcx
    cmpq %rcx, {e_gate}(%rax)
    jne .Llanding_x87_left
    callq __rf_x87_leave                // the unit is the domain's still
.Llanding_x87_left:
    movq %r14, %rdi
    callq {landed}
.Lleave:                             // rsp = host_sp, r14 = the lane
    RF_TELL_LEAVING %r14
    movq {n_host_sp}(%rsp), %rax
    movq {n_top}(%rsp), %rcx
    movq %rax, {l_host_sp}(%r14)
    movq %rcx, {l_top}(%r14)
    addq ${n_saved}, %rsp
    .cfi_adjust_cfa_offset -24
.Lleave_popped:
    xorl %eax, %eax
    xorl %edx, %edx
    RF_SSE_0_1
    popq %r15
    .cfi_adjust_cfa_offset -8
    popq %r14
    .cfi_adjust_cfa_offset -8
    popq %r13
    .cfi_adjust_cfa_offset -8
    popq %r12
    .cfi_adjust_cfa_offset -8
    popq %rbx
    .cfi_adjust_cfa_offset -8
    popq %rbp
    .cfi_adjust_cfa_offset -8
    retq
    .cfi_endproc
.size __rf_fault_landing,.-__rf_fault_landing

// In, for windows with x87 code: the domain finds the unit empty, and the caller finds it as it left it: empty (as the
// ABI demands at calls) but for results, the same control word (which fenced code cannot change), the same flags.
.p2align 4
.hidden __rf_in_x87
.globl __rf_in_x87
.type __rf_in_x87,@function
__rf_in_x87:
    .cfi_startproc
    leaq 8(%rsp), %r10
    subq $104, %rsp
    .cfi_adjust_cfa_offset 104
    movq %r11, 96(%rsp)
    fnstcw 2(%rsp)
    RF_X87_FRESH (%rsp)
    callq __rf_in_full_from
    fnstsw 4(%rsp)
    movzwl 4(%rsp), %ecx
    xorw (%rsp), %cx
    testl $0xB8FF, %ecx                 // all but the condition codes
    jnz .Lx87_results
    emms                                // whatever is in the registers is marked empty
    addq $104, %rsp
    .cfi_remember_state
    .cfi_adjust_cfa_offset -104
    retq
    .cfi_restore_state
.Lx87_results:
    movq %rax, 80(%rsp)
    movq 96(%rsp), %r11
    movzwl 4(%rsp), %ecx
    movzwl (%rsp), %eax
    shrl $11, %eax
    shrl $11, %ecx
    subl %ecx, %eax
    andl $7, %eax                       // how many were pushed
    fnclex
    xorl %ecx, %ecx                     // how many results are kept
    cmpl $2, %eax
    ja .Lx87_fresh
    cmpl {e_x87}(%r11), %eax
    ja .Lx87_fresh
    testl %eax, %eax
    jz .Lx87_fresh
    movl %eax, %ecx
    fxam
    fnstsw %ax
    andl $0x4500, %eax
    cmpl $0x4100, %eax                  // empty
    je .Lx87_none
    fstpt 48(%rsp)
    cmpl $2, %ecx
    jne .Lx87_fresh
    fxam
    fnstsw %ax
    andl $0x4500, %eax
    cmpl $0x4100, %eax
    je .Lx87_none
    fstpt 64(%rsp)
    jmp .Lx87_fresh
.Lx87_none:
    xorl %ecx, %ecx
.Lx87_fresh:
    fninit
    fldcw 2(%rsp)
    testw $0xB8FF, (%rsp)
    jz .Lx87_flags_back
    fnstenv 8(%rsp)
    movw (%rsp), %ax
    movw %ax, 12(%rsp)
    fldenv 8(%rsp)
.Lx87_flags_back:
    movq 80(%rsp), %rax
    cmpl $1, %ecx
    jb .Lx87_back
    je .Lx87_one
    fldt 64(%rsp)
.Lx87_one:
    fldt 48(%rsp)
.Lx87_back:
    addq $104, %rsp
    .cfi_adjust_cfa_offset -104
    retq
    .cfi_endproc
.size __rf_in_x87,.-__rf_in_x87

// Leaves nothing in the unit. What registers held cannot be read any more: accepted code has no MMX, and x87 instructions
// read an empty register as a NaN. Changes no general register.
.p2align 4
__rf_x87_scrub:
    .cfi_startproc
    RF_X87_FRESH -8(%rsp)
    retq
    .cfi_endproc

// Before a host function: an empty unit without pending exceptions. Changes no general register.
.p2align 4
__rf_x87_leave:
    .cfi_startproc
    RF_X87_NO_EXCEPTIONS -8(%rsp)
    emms
    retq
    .cfi_endproc

// After a host function: nothing but its result reaches the domain. r11 = import; keeps rax, rdx, xmm0, xmm1.
.p2align 4
__rf_x87_return:
    .cfi_startproc
    cmpl $0, {i_x87}(%r11)
    je __rf_x87_scrub
    movq %rax, %rcx
    fxam
    fnstsw %ax
    andl $0x4500, %eax
    cmpl $0x4100, %eax
    movq %rcx, %rax
    je __rf_x87_scrub
    subq $24, %rsp
    .cfi_adjust_cfa_offset 24
    fstpt (%rsp)
    callq __rf_x87_scrub
    fldt (%rsp)
    addq $24, %rsp
    .cfi_adjust_cfa_offset -24
    retq
    .cfi_endproc

// call(rdi = target, rsi = arguments, rdx = results)
.p2align 4
.hidden __rf_call
.globl __rf_call
.type __rf_call,@function
__rf_call:
    .cfi_startproc
    pushq %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    movq %rsp, %rbp
    .cfi_def_cfa_register %rbp
    pushq %rbx
    .cfi_offset %rbx, -24
    pushq %r12
    .cfi_offset %r12, -32
    movq %rdi, %r12
    movq %rdx, %rbx
    movq {c_words}(%rsi), %rcx
    leaq 15(,%rcx,8), %rax
    andq $-16, %rax
    subq %rax, %rsp
    movq {c_stack}(%rsi), %r8
.Lcall_copy:
    testq %rcx, %rcx
    jz .Lcall_copied
    movq -8(%r8,%rcx,8), %rax
    movq %rax, -8(%rsp,%rcx,8)
    decq %rcx
    jmp .Lcall_copy
.Lcall_copied:
    movq {c_floats}(%rsi), %rax
    movsd (%rax), %xmm0
    movsd 8(%rax), %xmm1
    movsd 16(%rax), %xmm2
    movsd 24(%rax), %xmm3
    movsd 32(%rax), %xmm4
    movsd 40(%rax), %xmm5
    movsd 48(%rax), %xmm6
    movsd 56(%rax), %xmm7
    movq {c_ints}(%rsi), %rax
    movq (%rax), %rdi
    movq 8(%rax), %rsi
    movq 16(%rax), %rdx
    movq 24(%rax), %rcx
    movq 32(%rax), %r8
    movq 40(%rax), %r9
    movl $8, %eax
    movq %r12, %r11
    callq *{e_gate}(%r11)
    movq %rax, (%rbx)
    movq %rdx, 8(%rbx)
    movsd %xmm0, 16(%rbx)
    movsd %xmm1, 24(%rbx)
    cmpl $0, {e_x87}(%r12)
    je .Lcall_done
    fxam                                // a result there, or nothing
    fnstsw %ax
    andl $0x4500, %eax
    cmpl $0x4100, %eax
    je .Lcall_done
    fstpt 32(%rbx)
    fxam
    fnstsw %ax
    andl $0x4500, %eax
    cmpl $0x4100, %eax
    je .Lcall_done
    fstp %st(0)
.Lcall_done:
    leaq -16(%rbp), %rsp
    popq %r12
    popq %rbx
    popq %rbp
    .cfi_def_cfa %rsp, 8
    retq
    .cfi_endproc
.size __rf_call,.-__rf_call

__rf_gate_end:
.popsection

// The words of `Tls`. Initial-exec, so that stubs can name the place by one constant even when this is part of a shared
// library that was loaded by dlopen.
.pushsection .tdata.__rf_tls,"awT",@progbits
.hidden __rf_tls
.globl __rf_tls
.type __rf_tls,@object
.p2align 6
__rf_tls:
    .quad __rf_out, __rf_no_lanes, __rf_no_lane, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
.size __rf_tls,.-__rf_tls
.popsection

// What a thread without lanes has: no lane in any domain, and a current lane that nobody is inside of.
.pushsection .bss.__rf_no_lanes,"aw",@nobits
.p2align 12
.hidden __rf_no_lanes
.globl __rf_no_lanes
__rf_no_lanes:
    .zero {max_domains} * 8
.popsection
.pushsection .data.rel.ro.__rf_no_lane,"aw",@progbits
.p2align 6
.hidden __rf_no_lane
.globl __rf_no_lane
__rf_no_lane:
    .zero {l_top}
    .quad 1
    .zero 1016 - {l_top}
.popsection
