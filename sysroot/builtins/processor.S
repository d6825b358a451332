/* What the rewriter puts in place of instructions that a module may not have. Each changes the registers that its instruction
 * writes, and the flags. What a compiler keeps below the stack pointer stays: it takes the instruction for no call. */
	.text

/* eax and ecx: leaf and sub-leaf. */
	.globl	__rf_insn_cpuid
	.hidden	__rf_insn_cpuid
	.type	__rf_insn_cpuid, @function
__rf_insn_cpuid:
	leaq	-184(%rsp), %rsp
	movq	%rsi, 0(%rsp)
	movq	%rdi, 8(%rsp)
	movq	%r8, 16(%rsp)
	movq	%r9, 24(%rsp)
	movq	%r10, 32(%rsp)
	movl	%eax, %edi
	movl	%ecx, %esi
	call	__rf_cpuid_words
	movq	0(%rsp), %rsi
	movq	8(%rsp), %rdi
	movq	16(%rsp), %r8
	movq	24(%rsp), %r9
	movq	32(%rsp), %r10
	leaq	184(%rsp), %rsp
	movq	%rax, %rbx
	shrq	$32, %rbx
	movl	%eax, %eax
	movl	%edx, %ecx
	shrq	$32, %rdx
	ret
	.size	__rf_insn_cpuid, .-__rf_insn_cpuid

/* The states that are switched on: x87 and SSE, and AVX where the header page tells of it. */
	.globl	__rf_insn_xgetbv
	.hidden	__rf_insn_xgetbv
	.type	__rf_insn_xgetbv, @function
__rf_insn_xgetbv:
	movl	0x1000C, %eax
	andl	$4, %eax
	orl	$3, %eax
	xorl	%edx, %edx
	ret
	.size	__rf_insn_xgetbv, .-__rf_insn_xgetbv

#define VECTORS(with) \
	with(0); with(1); with(2); with(3); with(4); with(5); with(6); with(7); \
	with(8); with(9); with(10); with(11); with(12); with(13); with(14); with(15)
#define SAVE_AVX(n) vmovups %ymm##n, 32*n(%rsp)
#define LOAD_AVX(n) vmovups 32*n(%rsp), %ymm##n
#define SAVE_SSE(n) movups %xmm##n, 32*n(%rsp)
#define LOAD_SSE(n) movups 32*n(%rsp), %xmm##n

/* The clock, in nanoseconds. A gate clears what a call may change. */
	.globl	__rf_insn_rdtsc
	.hidden	__rf_insn_rdtsc
	.type	__rf_insn_rdtsc, @function
__rf_insn_rdtsc:
	leaq	-696(%rsp), %rsp
	movq	%rcx, 512(%rsp)
	movq	%rsi, 520(%rsp)
	movq	%rdi, 528(%rsp)
	movq	%r8, 536(%rsp)
	movq	%r9, 544(%rsp)
	movq	%r10, 552(%rsp)
	testl	$4, 0x1000C
	je	1f
	VECTORS(SAVE_AVX)
	jmp	2f
1:	VECTORS(SAVE_SSE)
2:	call	__rf_clock
	testl	$4, 0x1000C
	je	3f
	VECTORS(LOAD_AVX)
	jmp	4f
3:	VECTORS(LOAD_SSE)
4:	movq	512(%rsp), %rcx
	movq	520(%rsp), %rsi
	movq	528(%rsp), %rdi
	movq	536(%rsp), %r8
	movq	544(%rsp), %r9
	movq	552(%rsp), %r10
	leaq	696(%rsp), %rsp
	movq	%rax, %rdx
	shrq	$32, %rdx
	movl	%eax, %eax
	ret
	.size	__rf_insn_rdtsc, .-__rf_insn_rdtsc

/* The processor's number is 0: a module has no business with it. */
	.globl	__rf_insn_rdtscp
	.hidden	__rf_insn_rdtscp
	.type	__rf_insn_rdtscp, @function
__rf_insn_rdtscp:
	call	__rf_insn_rdtsc
	xorl	%ecx, %ecx
	ret
	.size	__rf_insn_rdtscp, .-__rf_insn_rdtscp

	.section .note.GNU-stack,"",@progbits
