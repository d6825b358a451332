# Operands by way of r14: loads that lead to an address, what shares their base, and several stores in a row.
	.text
	.globl	f
	.type	f, @function
f:
	.cfi_startproc
	endbr64
	movq	8(%rdi), %rax	# begins
	movss	16(%rdi), %xmm0	# shares
	addl	24(%rdi), %ecx	# shares
	movb	%cl, 32(%rdi)	# shares
	movb	%ch, 33(%rdi)	# ch cannot stand beside r14
	lock addl	$1, 40(%rdi)	# stays
	movq	32767(%rdi), %rdx	# the last that reaches
	movq	32768(%rdi), %rdx	# out of reach
	movq	-8(%rdi), %rdx	# below
	movq	(%rdi,%rcx,8), %rdx	# an index: stays
	movq	(%rax), %rax	# the base goes: not held any more
	movq	8(%rax), %rdx
	cmpq	%rdx, %rax
	je	.L2
	movq	16(%rax), %rcx	# falls through the jump: still held
	call	g
	movq	24(%rbx), %rcx	# the call took it
.LVL3:
	movq	32(%rbx), %rdx	# a label that nobody jumps to
.L2:
	movq	40(%rbx), %r8	# a target
	movq	%fs:x@tpoff, %rax	# r11 is needed
	movq	48(%rbx), %r9
	xchgq	%rbx, %rcx
	movq	56(%rbx), %rsi
	cqto
	movq	(%rdx), %r10
	mulq	%rcx
	movq	8(%rdx), %r12
	movups	%xmm0, 32(%rdi,%rcx)	# three in a row, lowest first
	movups	%xmm0, 16(%rdi,%rcx)
	movups	%xmm0, 48(%rdi,%rcx)
	movl	%eax, (%rsi)	# two are not worth it
	movl	%eax, 4(%rsi)
	movq	8(%rcx), %rax	# a counter: stays
	addq	$1, %rax
	movq	%rax, 8(%rcx)
	incb	(%r8,%r9)	# what was loaded is an address
	incb	(%r10,%r12)
	ret
	.cfi_endproc
	.size	f, .-f
