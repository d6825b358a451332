# A frame with locals: r15 mirrors gcc's frame, the saved register stays on the control stack.
	.text
	.p2align 4
	.globl	f
	.type	f, @function
f:
.LFB0:
	.cfi_startproc
	endbr64
	pushq	%rbx
	.cfi_def_cfa_offset 16
	.cfi_offset 3, -16
	movl	%edi, %ebx
	subq	$32, %rsp
	.cfi_def_cfa_offset 48
	leaq	12(%rsp), %rdi
	call	g@PLT
	movl	12(%rsp,%rax,4), %eax
	addl	48(%rsp), %eax
	addq	$32, %rsp
	.cfi_def_cfa_offset 16
	addl	%ebx, %eax
	popq	%rbx
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
.LFE0:
	.size	f, .-f
