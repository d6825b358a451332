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
	# What the rewriter makes of a call of setjmp, and longjmp.
	.macro setjmp depth
	leaq .Lset\@(%rip), %rax
	movq %rax, buffer+8(%rip)
	movq %rbx, buffer+32(%rip)
	movq %rbp, buffer+40(%rip)
	movq %r12, buffer+48(%rip)
	movq %r13, buffer+56(%rip)
	movq %r15, buffer+64(%rip)
	call __rf_distance
	movq %rax, buffer(%rip)
	xorl %eax, %eax
.Lset\@:
	pad \depth
	testl %eax, %eax
	.endm
	.macro longjmp value
	movq $\value, buffer+16(%rip)
	leaq buffer(%rip), %rdi
	call __rf_resume
	ud2
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

	# A frame that has called setjmp is skipped; then it is jumped to.
	function skipped
	pushq %rbx
	setjmp 8
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
	longjmp 1

	# The frame that resumes has called setjmp itself, and goes back there.
	function keeper
	pushq %rbx
	setjmp 8
	jne 1f
	call thrower
1:	addl $40, %eax
	popq %rbx
	ret
keeper_pad:
	pad 8
	longjmp 2

	# Leaves for setjmp while more is pushed than there, and while less is.
	function leaver
	longjmp 7
	function grows
	pushq %rbx
	setjmp 8
	jne 1f
	movl $3, %ebx
	pushq %rbx
	call leaver
	popq %rbx
1:	addl %ebx, %eax
	popq %rbx
	ret
	function shrinks
	pushq %rbx
	pushq %rbp
	setjmp 16
	popq %rbp
	jne 1f
	call leaver
1:	popq %rbx
	ret

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
buffer:	.zero 72
	.section .note.GNU-stack,"",@progbits
