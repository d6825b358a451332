# Two ways to write the one-byte breakpoint. Nothing behind it runs: the trap ends the call.
	.text
	.type	f, @function
f:
	.cfi_startproc
	movl	(%rdi), %eax
	int	$3
	addl	(%rsi), %eax
	int3
	addl	$1, %eax
	ret
	.cfi_endproc
	.size	f, .-f
