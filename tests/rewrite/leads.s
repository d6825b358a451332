# Loads by way of r14 are those that lead to an address; the others go through gs.
	.text
	.globl	f
	.type	f, @function
f:
	.cfi_startproc
	endbr64
	movq	8(%rdi), %rax	# the next address
	movl	(%rax), %ecx	# compared: stays
	cmpl	%ecx, %edx
	je	.L2
	movl	4(%rsi), %ecx	# an index, extended first
	movslq	%ecx, %rcx
	movl	(%rdi,%rcx,4), %eax	# returned, and has an index
	ret
.L2:
	movq	8(%rsi), %rcx	# an address after some arithmetic
	leaq	(%rcx,%rdx), %rdx
	addq	$16, %rdx
	movq	(%rdx), %rax	# an addend: stays
	addq	%rax, %r8
	movl	8(%rsi), %ecx	# only a byte of it is replaced
	movb	$1, %cl
	movb	$0, (%rcx)
	movl	16(%r9), %ecx	# forgotten at once: stays
	xorl	%ecx, %ecx
	movb	$0, (%rcx)
	movq	24(%r9), %rcx	# the next turn's address, in front of it
.L3:
	movl	(%rcx), %eax	# added up: stays
	addl	%eax, %r8d
	movq	8(%rbx), %rcx	# the next turn's, behind it
	testq	%rcx, %rcx
	jne	.L3
	movq	16(%r12), %rcx	# lost in the call: stays
	movq	24(%rbx), %r12	# kept over the call
	call	g
	movq	(%r12), %rax	# the table of a jump
	movq	(%rcx), %rdx	# a target, which nobody waits for: stays
	call	*8(%rax)
	call	*%rdx
	movq	%r8, %rax
	ret
	.cfi_endproc
	.size	f, .-f
