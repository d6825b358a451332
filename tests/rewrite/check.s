# options: check
# Segment matching, with flags dead and flags alive; fixed places in the frame need no check.
	.text
	.globl	f
	.type	f, @function
f:
	.cfi_startproc
	endbr64
	addl	(%rdi,%rsi,4), %eax
	movl	(%rdi), %edx
	setb	(%rsi)
	movl	%eax, -20(%rsp)
	movl	%eax, -40(%rsp,%rdx,4)
	rep movsb
	ret
	.cfi_endproc
	.size	f, .-f
