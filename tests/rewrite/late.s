# Compiled as for an executable: thread-local variables by their distance from the thread pointer, and data of
# another module, which the file names in a section.
	.pushsection .rf.imports,"e",@progbits
	.asciz "=theirs"
	.popsection
	.text
	.globl	f
	.type	f, @function
f:
	.cfi_startproc
	movq	%fs:0, %rax
	movl	a@tpoff(%rax), %ecx
	movl	8+a@tpoff(%rax,%rdx,4), %ecx
	movl	%ecx, a@tpoff-4(%rdi)
	addq	%rsi, s@tpoff(%rax)
	leaq	a@tpoff(%rax,%rdx,4), %r8
	addq	$a@tpoff, %rax
	addq	$8+a@tpoff, %rax
	movl	$a@tpoff, %ecx
	movl	theirs(%rip), %ecx
	movl	%ecx, 8+theirs(%rip)
	leaq	theirs+16(%rip), %rcx
	cmpq	$0, theirs(%rip)
	movl	ours(%rip), %ecx
	movb	%ah, theirs(%rip)
	call	*theirs(%rip)
	btsq	%rcx, theirs(%rip)
	ret
	.cfi_endproc
	.size	f, .-f
