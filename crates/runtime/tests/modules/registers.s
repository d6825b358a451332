# Keeps all registers as it finds them: at its entry and behind every kind of call out. With X87 defined also what can be
# asked of the x87 unit.
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

	# The next area: 16 general registers (without rsp: there are the flags), 16 vector registers, the x87 unit.
	.set area, 0
	.macro look
	movq %rax, areas+area(%rip)
	lahf
	movq %rax, areas+area+8*4(%rip)
	.set number, 0
	.irp r, rax,rcx,rdx,rbx,none,rbp,rsi,rdi,r8,r9,r10,r11,r12,r13,r14,r15
	.ifnc \r,none
	.ifnc \r,rax
	movq %\r, areas+area+8*number(%rip)
	.endif
	.endif
	.set number, number+1
	.endr
	.set number, 0
	.irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
	vmovdqu %ymm\n, areas+area+128+32*number(%rip)
	.set number, number+1
	.endr
	.ifdef X87
	fnstsw areas+area+640+2*8(%rip)
	.set number, 0
	.rept 8
	fxam
	fnstsw areas+area+640+2*number(%rip)
	fstp %st(0)
	.set number, number+1
	.endr
	.endif
	.set area, area+1024
	.endm

	.macro out name
	call \name
	look
	.endm

	function entered
	look
	# Eight words of arguments.
	.set number, 0
	.rept 8
	movq %gs:number(%r15d), %rax
	movq %rax, stacked+number(%rip)
	.set number, number+8
	.endr
	ret

	function out_and_back
	.set area, 1024
	out host_void
	out host_byte
	out host_int
	out host_long
	out host_float
	out host_double
	out host_untyped
	out host_closure
	movl $39, %eax
	out __rf_syscall
	out __rf_call_status
	out other
	out failing
	leaq record(%rip), %rdi
	xorl %esi, %esi
	out __rf_unwind
	out __rf_distance
	ret

	# Behind a landing pad.
	function jumps
	pushq %rbx
	call thrower
	popq %rbx
	ret
	.p2align 3
jumps_pad:
	pad 8
	.set area, 1024*15
	look
	popq %rbx
	ret

	function thrower
	leaq record(%rip), %rdi
	xorl %esi, %esi
	call __rf_unwind
	# resumes one frame up: 2 words of distance less, at the pad
	movq record+40(%rip), %rax
	subq $16, %rax
	movq %rax, record(%rip)
	leaq jumps_pad(%rip), %rax
	movq %rax, record+8(%rip)
	.set number, 16
	.rept 6
	movq $0, record+number(%rip)
	.set number, number+8
	.endr
	movq %r15, record+64(%rip)
	leaq record(%rip), %rdi
	call __rf_resume
	ud2

	function fails
	ud2

	.data
	.p2align 6
	.globl areas, stacked
	.type areas, @object
	.size areas, 1024*16
	.type stacked, @object
	.size stacked, 64
areas:
	.fill 1024*16, 1, 0x55
stacked:
	.fill 64, 1, 0x55
record:
	.fill 8*80, 1, 0
	.section .note.GNU-stack,"",@progbits
