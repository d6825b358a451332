# A switch table, a computed goto and an indirect tail call.
	.text
	.globl	f
	.type	f, @function
f:
	.cfi_startproc
	endbr64
	leaq	.L4(%rip), %rdx
	movslq	(%rdx,%rdi,4), %rax
	addq	%rdx, %rax
	jmp	*%rax	# 20 [c=4 l=2]  *tablejump_1
	.section	.rodata
	.align 4
.L4:
	.long	.L5-.L4
	.long	.L6-.L4
	.text
	.p2align 4,,10
	.p2align 3
.L5:
	endbr64
	jmp	*8(%rsi,%rdi,8)	# 91 [c=10 l=4]  *sibcall_value_memory
.L6:
	endbr64
	movq	(%rsi), %rax
	jmp	*%rax	# 91 [c=10 l=4]  *indirect_jump
.L7:
	endbr64
	ret
	.cfi_endproc
	.size	f, .-f
