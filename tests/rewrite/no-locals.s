# No locals: r15 is never touched, alignment pushes vanish; a call that does not return gets ud2.
	.text
	.globl	f
	.type	f, @function
f:
	.cfi_startproc
	endbr64
	pushq	%rax	# 1 [c=4 l=1]  *pushdi2_prologue
	.cfi_def_cfa_offset 16
	testl	%edi, %edi
	je	.L2
	call	*h@GOTPCREL(%rip)
	popq	%rdx
	.cfi_remember_state
	.cfi_def_cfa_offset 8
	jmp	g@PLT	# 2 [c=10 l=5]  *sibcall_value
.L2:
	.cfi_restore_state
	call	abort@PLT
	.cfi_endproc
	.size	f, .-f
