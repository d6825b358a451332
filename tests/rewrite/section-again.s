# A section that is named again without its flags has those that it had.
	.section	text_env,"ax",@progbits
	.type	f, @function
f:
	.cfi_startproc
	movl	(%rdi), %eax
	ret
	.cfi_endproc
	.size	f, .-f
	.data
	.long	5
	.section	text_env
	.type	g, @function
g:
	.cfi_startproc
	movl	(%rdi), %eax
	ret
	.cfi_endproc
	.size	g, .-g
