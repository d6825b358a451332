	.text
	.globl	calls
	.type	calls, @function
calls:
.LFB0:
	.cfi_startproc
	cmpq	$0, hook@GOTPCREL(%rip)
	je	.L2
	subq	$8, %rsp
	.cfi_def_cfa_offset 16
	call	hook@PLT
	call	*other@GOTPCREL(%rip)
	call	hidden
	call	here
	addq	$8, %rsp
	.cfi_def_cfa_offset 8
	jmp	alias@PLT
.L2:
	ret
	.cfi_endproc
.LFE0:
	.size	calls, .-calls
	.weak	here
	.type	here, @function
here:
	.cfi_startproc
	ret
	.cfi_endproc
	.size	here, .-here
	.weakref	alias,target
	.weak	hook,other
	.weak	hidden
	.hidden	hidden
