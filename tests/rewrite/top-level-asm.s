# An asm statement outside functions: its global label is a function, without call-frame directives.
	.text
#APP
	.globl	twice
twice:
	push %rbx
	mov %rdi, %rbx
	lea (%rbx,%rbx), %rax
	pop %rbx
	ret
#NO_APP
	.globl	f
	.type	f, @function
f:
	.cfi_startproc
	endbr64
	jmp	twice@PLT	# 7 [c=10 l=5]  *sibcall_value
	.cfi_endproc
	.size	f, .-f
