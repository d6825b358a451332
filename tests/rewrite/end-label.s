# A label behind the last instruction, as __builtin_unreachable leaves one: a trap, so that nobody runs into the next function.
	.text
	.type	f, @function
f:
.LFB0:
	.cfi_startproc
	pushq	%rbx
	.cfi_def_cfa_offset 16
	.cfi_offset 3, -16
	movq	%rdi, %rbx
	testl	%edi, %edi
	je	.L2
	cmpl	$7, (%rbx)
	jne	.L3
	.cfi_remember_state
	popq	%rbx
	.cfi_def_cfa_offset 8
	ret
.L2:
	.cfi_restore_state
	call	g
.L3:
	.cfi_endproc
.LFE0:
	.size	f, .-f
	.type	h, @function
h:
	.cfi_startproc
	movl	(%rdi), %eax
	ret
	.cfi_endproc
	.size	h, .-h
