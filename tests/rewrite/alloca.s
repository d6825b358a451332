# rbp as the frame's pointer, a dynamic allocation, one register restored by a move, leave.
	.text
	.globl	f
	.type	f, @function
f:
	.cfi_startproc
	endbr64
	pushq	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset 6, -16
	movq	%rsp, %rbp
	.cfi_def_cfa_register 6
	pushq	%rbx
	.cfi_offset 3, -24
	subq	$8, %rsp
	subq	%rax, %rsp
	movq	%rsp, %rdi
	call	g@PLT
	movsbl	(%rsp,%rbx), %eax
	movq	-8(%rbp), %rbx
	leave
	.cfi_def_cfa 7, 8
	ret
	.cfi_endproc
	.size	f, .-f
