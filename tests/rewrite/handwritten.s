# options: handwritten
# No directives at all: pushes pair with pops, one function runs into the next.
	.text
	.global	f
	.global	g
	.balign 16
f:
	push	%rbx
	mov	%rdi, %rbx	/* keep */
	call	g
1:	dec	%rbx; jnz 1b
	pop	%rbx
g:
	push	%rdi
	call	h
	pop	%rdi
	jmp	*%rdi
	.type	h, @function
h:	repz ret
	.type	i, @function
i:	lock; xaddl %eax, (%rdi)
	movl	table, %eax
	movl	table(,%rax,4), %eax
	movabsq	0x123456789, %rax
	ret
