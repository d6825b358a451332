# Frames and landing pads by hand, in their final form: what a hostile module may try with the stubs of exceptions.
# `thrower` asks for its frames, lets the host fill in the record, and resumes.
	.text

	.macro function name
	.p2align 3
	.globl \name
	.type \name, @function
\name:
	nopl 0x629AFFFF(%rax,%rax,1)
	.endm
	.macro pad depth
	.byte 0x0f, 0x1f, 0x84, 0x09
	.2byte \depth, 0x7AD0
	.endm

	function thrower
	leaq view(%rip), %rdi
	xorl %esi, %esi
	call __rf_unwind
	leaq view(%rip), %rdi
	leaq record(%rip), %rsi
	leaq pads(%rip), %rdx
	call host_pick
	leaq record(%rip), %rdi
	call __rf_resume
	ud2
thrower_pad:
	pad 0
	ret

	# One pushed register, another depth than its caller.
	function middle
	pushq %rbx
	movl $77, %ebx
	call thrower
	popq %rbx
	ret
middle_pad:
	pad 8
	movl $3000, %eax
	popq %rbx
	ret

	# Catches: the sum of what the record says.
	function catcher
	pushq %rbx
	pushq %rbp
	movl $5, %ebx
	call middle
	popq %rbp
	popq %rbx
	ret
	.p2align 3
catcher_pad:
	pad 16
	addq %rdx, %rax
	addq %rbx, %rax
	addq %rbp, %rax
	addq %r12, %rax
	addq %r13, %rax
	addq %r15, %rax
	popq %rbp
	popq %rbx
	ret
shallow_pad:
	pad 8
	popq %rbx
	ret

	# The same shape, never called.
	function stranger
	pushq %rbx
	pushq %rbp
	popq %rbp
	popq %rbx
	ret
stranger_pad:
	pad 16
	popq %rbp
	popq %rbx
	ret

	# Resumes once, and then once more with the record of the frame that is gone.
	function again
	call catcher
	leaq record(%rip), %rdi
	call __rf_resume
	ret

	# A frame that setjmp knows is skipped; then it is jumped to.
	function skipped
	pushq %rbx
	leaq buffer(%rip), %rdi
	call __rf_setjmp
	testl %eax, %eax
	jne 1f
	call middle
1:	movl $1, %eax
	popq %rbx
	ret
	function skipper
	pushq %rbx
	pushq %rbp
	call skipped
	popq %rbp
	popq %rbx
	ret
skipper_pad:
	pad 16
	leaq buffer(%rip), %rdi
	movl $1, %esi
	call __rf_longjmp
	ud2

	# Its argument, a guess of what setjmp has put in place of a return address, lies beside that.
	function guess
	call guesser
	ret
	function guesser
	pushq %rdi
	leaq buffer(%rip), %rdi
	call __rf_setjmp
	testl %eax, %eax
	jne 1f
	call thrower
1:	popq %rdi
	ret

	# The frame that resumes has called setjmp itself: its record stays.
	function keeper
	pushq %rbx
	leaq buffer(%rip), %rdi
	call __rf_setjmp
	testl %eax, %eax
	jne 1f
	call thrower
1:	addl $40, %eax
	popq %rbx
	ret
keeper_pad:
	pad 8
	leaq buffer(%rip), %rdi
	movl $2, %esi
	call __rf_longjmp
	ud2

	# Calls the host, which calls back in.
	function between
	pushq %rbx
	call host_enter
	popq %rbx
	ret
	.p2align 3
between_pad:
	pad 8
	popq %rbx
	ret

	# Recurses, then throws from the bottom.
	function deep
	pushq %rbx
	testq %rdi, %rdi
	je 1f
	decq %rdi
	call deep
	popq %rbx
	ret
1:	call thrower
	popq %rbx
	ret
deep_pad:
	pad 8
	popq %rbx
	ret

	# Asks for words where the host says.
	function peek
	movq %rdi, %rsi
	leaq view(%rip), %rdi
	call __rf_unwind
	leaq view(%rip), %rdi
	leaq record(%rip), %rsi
	leaq pads(%rip), %rdx
	call host_pick
	xorl %eax, %eax
	ret
	# The same, with pointers that are none.
	function bad_view
	xorl %esi, %esi
	movl $8, %edi
	call __rf_unwind
	ret
	function bad_record
	movl $8, %edi
	call __rf_resume
	ret
	function give_up
	movq %rdi, %rsi
	leaq name(%rip), %rdi
	call __rf_uncaught
	ud2

	.data
	.p2align 3
pads:
	.quad thrower_pad, middle_pad, catcher_pad, shallow_pad, stranger_pad, skipper_pad, keeper_pad, between_pad, deep_pad
name:	.ascii "a\nb\377c"
	.bss
	.p2align 3
view:	.zero 1024
record:	.zero 128
buffer:	.zero 64
	.section .note.GNU-stack,"",@progbits
