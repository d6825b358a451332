# options: check
# A call of setjmp becomes the code that fills in the buffer, and a landing pad.
	.text
	.globl	f
	.type	f, @function
f:
	.cfi_startproc
	endbr64
	pushq	%rbx
	.cfi_def_cfa_offset 16
	.cfi_offset 3, -16
	movl	%edi, %ebx
	leaq	buffer(%rip), %rdi
	call	_setjmp@PLT
	endbr64
	testl	%eax, %eax
	jne	.L2
	leaq	buffer(%rip), %rdi
	movl	$1, %esi
	call	__sigsetjmp
	endbr64
.L2:
	popq	%rbx
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size	f, .-f
