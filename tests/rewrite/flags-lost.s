# What gcc leaves when all cases of a switch begin with the same comparison: it is made once, in front of the jump.
	.text
	.globl	f
	.type	f, @function
f:
	.cfi_startproc
	endbr64
	movl	%edi, %edi
	leaq	.L4(%rip), %rcx
	movslq	(%rcx,%rdi,4), %rax
	addq	%rcx, %rax
	cmpl	%edx, %esi
	notrack jmp	*%rax
	.section	.rodata
	.align 4
.L4:
	.long	.L3-.L4
	.long	.L5-.L4
	.text
.L3:
	endbr64
	movl	$1, %eax
	jnb	.L6
	ret
.L5:
	endbr64
	btl	$3, %esi
	jc	.L6
	ret
.L6:
	xorl	%eax, %eax
	ret
	.cfi_endproc
	.size	f, .-f
