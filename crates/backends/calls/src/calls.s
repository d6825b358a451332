# Calls whose types are known at run time. Three ways through here, all with the C convention:
#   __rf_calls_arrive   a stub was called: its registers become a frame, and Rust answers
#   __rf_calls_enter    a thunk was called: its registers go on to a function as they are, and the call can be given up
#   __rf_calls_leave    Rust calls: registers are loaded from memory first
# A thread's calls in progress are a list, innermost first, in __rf_calls_inner; each member is a place on the stack, 64 bytes
# below the frame pointer of its __rf_calls_enter.

    .section .tbss, "awT", @nobits
    .balign 8
    .hidden __rf_calls_inner
    .globl __rf_calls_inner
__rf_calls_inner:
    .zero 8
    .text

# r11: the stub's record, or 0 if it is gone.
    .balign 16
    .hidden __rf_calls_arrive
    .globl __rf_calls_arrive
    .type __rf_calls_arrive, @function
__rf_calls_arrive:
    .cfi_startproc
    pushq %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    movq %rsp, %rbp
    .cfi_def_cfa_register %rbp
    subq ${frame}, %rsp
    movq %rdi, {ints}(%rsp)
    movq %rsi, {ints}+8(%rsp)
    movq %rdx, {ints}+16(%rsp)
    movq %rcx, {ints}+24(%rsp)
    movq %r8, {ints}+32(%rsp)
    movq %r9, {ints}+40(%rsp)
    movq %rax, {rax}(%rsp)
    movq %r10, {r10}(%rsp)
    movaps %xmm0, {vectors}(%rsp)
    movaps %xmm1, {vectors}+16(%rsp)
    movaps %xmm2, {vectors}+32(%rsp)
    movaps %xmm3, {vectors}+48(%rsp)
    movaps %xmm4, {vectors}+64(%rsp)
    movaps %xmm5, {vectors}+80(%rsp)
    movaps %xmm6, {vectors}+96(%rsp)
    movaps %xmm7, {vectors}+112(%rsp)
    xorps %xmm0, %xmm0
    movups %xmm0, {result}(%rsp)
    movups %xmm0, {vector_result}(%rsp)
    movups %xmm0, {vector_result}+16(%rsp)
    movups %xmm0, {origin}(%rsp)
    leaq 16(%rbp), %rax                 # what the caller has pushed
    movq %rax, {stack}(%rsp)
    movq %r11, %rdi
    movq %rsp, %rsi
    call {arrived}
    testl %eax, %eax
    jnz 1f
    movq {result}(%rsp), %rax
    movq {result}+8(%rsp), %rdx
    movups {vector_result}(%rsp), %xmm0
    movups {vector_result}+16(%rsp), %xmm1
    leave
    .cfi_def_cfa %rsp, 8
    ret
1:  # The innermost call ends here, with nothing in the result registers. What ran in between is given up.
    movq __rf_calls_inner@GOTTPOFF(%rip), %rdx
    movq %fs:(%rdx), %rcx
    leaq 64(%rcx), %rbp
    movq (%rcx), %rcx
    movq %rcx, %fs:(%rdx)
    xorl %eax, %eax
    xorl %edx, %edx
    xorps %xmm0, %xmm0
    xorps %xmm1, %xmm1
    jmp __rf_calls_back
    .cfi_endproc
    .size __rf_calls_arrive, . - __rf_calls_arrive

# r11: the thunk's record, or 0 if it is gone.
    .balign 16
    .hidden __rf_calls_enter
    .globl __rf_calls_enter
    .type __rf_calls_enter, @function
__rf_calls_enter:
    .cfi_startproc
    testq %r11, %r11
    jz __rf_calls_arrive
    movq {closed}(%r11), %r10
    cmpb $0, (%r10)
    jne __rf_calls_arrive               # which tells why
    pushq %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    movq %rsp, %rbp
    .cfi_def_cfa_register %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    .cfi_offset %rbx, -24
    .cfi_offset %r12, -32
    .cfi_offset %r13, -40
    .cfi_offset %r14, -48
    .cfi_offset %r15, -56
    subq $24, %rsp
    movq %r11, %rbx
    movq __rf_calls_inner@GOTTPOFF(%rip), %r12
    movq %fs:(%r12), %r10
    movq %r10, (%rsp)
    movq %rsp, %fs:(%r12)
    movq {words}(%rbx), %r10
    testq %r10, %r10
    jz 2f
    leaq 1(%r10), %r13                  # the stack stays aligned to 16
    andq $-2, %r13
    shlq $3, %r13
    subq %r13, %rsp
    xorl %r13d, %r13d
1:  movq 16(%rbp,%r13,8), %r14
    movq %r14, (%rsp,%r13,8)
    incq %r13
    cmpq %r10, %r13
    jb 1b
2:  call *{function}(%rbx)
    movq -64(%rbp), %r10
    movq %r10, %fs:(%r12)
    movq {status}(%rbx), %r10
    movq $0, %fs:(%r10)
__rf_calls_back:
    leaq -40(%rbp), %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    .cfi_def_cfa %rsp, 8
    ret
    .cfi_endproc
    .size __rf_calls_enter, . - __rf_calls_enter

# rdi: what to call, as a thunk is; rsi: the frame whose registers are loaded; rdx, rcx: words of the stack, and how many;
# r8: where results go.
    .balign 16
    .hidden __rf_calls_leave
    .globl __rf_calls_leave
    .type __rf_calls_leave, @function
__rf_calls_leave:
    .cfi_startproc
    pushq %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    movq %rsp, %rbp
    .cfi_def_cfa_register %rbp
    pushq %rbx
    pushq %r8
    .cfi_offset %rbx, -24
    movq %rdi, %rbx
    leaq 1(%rcx), %rax
    andq $-2, %rax
    shlq $3, %rax
    subq %rax, %rsp
    xorl %eax, %eax
1:  cmpq %rcx, %rax
    jae 2f
    movq (%rdx,%rax,8), %r9
    movq %r9, (%rsp,%rax,8)
    incq %rax
    jmp 1b
2:  movq %rsi, %r11
    movaps {vectors}(%r11), %xmm0
    movaps {vectors}+16(%r11), %xmm1
    movaps {vectors}+32(%r11), %xmm2
    movaps {vectors}+48(%r11), %xmm3
    movaps {vectors}+64(%r11), %xmm4
    movaps {vectors}+80(%r11), %xmm5
    movaps {vectors}+96(%r11), %xmm6
    movaps {vectors}+112(%r11), %xmm7
    movq {ints}(%r11), %rdi
    movq {ints}+8(%r11), %rsi
    movq {ints}+16(%r11), %rdx
    movq {ints}+24(%r11), %rcx
    movq {ints}+32(%r11), %r8
    movq {ints}+40(%r11), %r9
    movq {rax}(%r11), %rax
    call *%rbx
    movq -16(%rbp), %rcx
    movq %rax, {rax_result}(%rcx)
    movq %rdx, {rdx_result}(%rcx)
    movsd %xmm0, {xmm0_result}(%rcx)
    movsd %xmm1, {xmm1_result}(%rcx)
    fxam                                # a number in the x87 unit is a result
    fnstsw %ax
    andl $0x4500, %eax
    cmpl $0x4100, %eax
    je 3f
    fstpt {st0_result}(%rcx)
3:  leaq -8(%rbp), %rsp
    popq %rbx
    popq %rbp
    .cfi_def_cfa %rsp, 8
    ret
    .cfi_endproc
    .size __rf_calls_leave, . - __rf_calls_leave
