# Functions that hand the gates what no compiler would.
	.text

	.macro function name
	.p2align 3
	.globl \name
	.type \name, @function
\name:
	nopl 0x629AFFFF(%rax,%rax,1)
	.endm

	# rdi: the data stack pointer with which the host is called.
	function wander
	pushq %r15
	movq %rdi, %r15
	movl $2, %edi
	movl $3, %esi
	call host_add
	popq %r15
	ret

	# rdi: a word that stays on the control stack while the host is called.
	function hold
	pushq %rdi
	movl $2, %edi
	movl $3, %esi
	call host_add
	popq %rcx
	ret
