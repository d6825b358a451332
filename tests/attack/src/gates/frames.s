# The parts of modules that are easier to write as assembly: position-independent text, which `modules.rs` puts into files.
# Constants in braces are filled in there.
	.pushsection .rodata.rf_attack_frames, "a"
	.macro RF_FUNCTION
	.p2align 3, 0xCC
	.byte 0x0F, 0x1F, 0x84, 0x00
	.long {function}
	.endm
	# The checked call of what r11d names; its identifier is at 3 modulo 8.
	.macro RF_CHECKED_CALL
	.p2align 3, 0x90
	nop
	.byte 0x41, 0x83, 0xE3, 0xF8, 0x65, 0x67, 0x41, 0x81, 0x7B, 0x04
	.long {function}
	.byte 0x45, 0x0F, 0x45, 0xDE, 0x4D, 0x01, 0xF3, 0x41, 0xFF, 0xD3
	.endm
	.macro RF_STUB number
	movl ${stub_0} - \number * {stub_size}, %r11d
	RF_CHECKED_CALL
	.endm
	.macro RF_WAIT
	.byte 0x65, 0x67, 0x8B, 0x0C, 0x25	# movl %gs:spin, %ecx
	.long {spin}
9:	decl %ecx
	jnz 9b
	.endm
	# movX between a register and %gs:distance(%ebp)
	.macro RF_STORE rex, register, distance
	.byte 0x65, 0x67, \rex, 0x89, 0x85 | \register << 3
	.long \distance
	.endm

	.p2align 6
	.globl rf_attack_frames
rf_attack_frames:
	# work(x): asks for its frames, calls the host, and resumes in the function that has called it: 3x + 7.
	RF_FUNCTION
	pushq %rbx
	pushq %rbp
	movl %edi, %ebx
	movl $16, %ebp				# a place of its own for each call that is in progress
	cmpl %ebp, %edi
	cmovbl %edi, %ebp
	shll $10, %ebp
	addl ${buffers}, %ebp
	RF_WAIT
	call 1f
	ud2
2:	.byte 0x0F, 0x1F, 0x84, 0x09, 16, 0, 0xD0, 0x7A	# a landing pad at depth 16
	RF_WAIT
	leaq (%rax,%rbx,2), %rax
	popq %rbp
	popq %rbx
	ret
1:	pushq %r12
	movl %ebp, %edi
	xorl %esi, %esi
	RF_STUB {unwind}
	movl %ebx, %edi
	RF_STUB {import}
	RF_STORE 0x48, 0, 0x310			# rax
	.byte 0x65, 0x67, 0x48, 0x8B, 0x4D, 40	# movq %gs:40(%ebp), %rcx: the distance of this frame
	subq $24, %rcx
	RF_STORE 0x48, 1, 0x300
	leaq 2b(%rip), %rcx
	RF_STORE 0x48, 1, 0x308
	RF_STORE 0x48, 2, 0x318			# rdx
	RF_STORE 0x48, 3, 0x320			# rbx
	RF_STORE 0x48, 5, 0x328			# rbp
	RF_STORE 0x4C, 4, 0x330			# r12
	RF_STORE 0x4C, 5, 0x338			# r13
	RF_STORE 0x4C, 7, 0x340			# r15
	leal 0x300(%rbp), %edi
	RF_STUB {resume}
	ud2
	.globl rf_attack_frames_end
rf_attack_frames_end:

	.p2align 6
	.globl rf_attack_callee
rf_attack_callee:
	# work(x): calls another domain, which fails, and asks how that went: 3x + 7 if it went as it should.
	RF_FUNCTION
	pushq %rbx
	movl %edi, %ebx
	RF_WAIT
	RF_STUB {import}
	cmpl $100, %eax				# what the link has for failures
	jne 1f
	RF_STUB {call_status}
	cmpl ${fault}, %eax
	je 2f
	cmpl ${faulted}, %eax			# a call in this one was first
	je 2f
	cmpl $16, %ebx				# a handler's own call, while the other domain is being entered
	jae 1f
	cmpl ${refused}, %eax
	je 2f
1:	ud2
2:	RF_WAIT
	leaq 7(%rbx,%rbx,2), %rax
	popq %rbx
	ret
	.globl rf_attack_callee_end
rf_attack_callee_end:

	.p2align 6
	.globl rf_attack_piece
rf_attack_piece:
	# work(x) as code to be added to a living domain: 3x + 7, by way of a host function.
	RF_FUNCTION
	pushq %rbx
	movl %edi, %ebx
	RF_WAIT
	RF_STUB {import}
	RF_WAIT
	leaq (%rax,%rbx,2), %rax
	popq %rbx
	ret
	.globl rf_attack_piece_end
rf_attack_piece_end:

	.p2align 6
	.globl rf_attack_common
rf_attack_common:
	# What is in every module behind `work`. A crash, at once and after a while.
	RF_FUNCTION
	ud2
	RF_FUNCTION
	RF_WAIT
	ud2
	# Where the data stack is.
	RF_FUNCTION
	movq %r15, %rax
	ret
	# Goes as deep as edi says.
	.p2align 3, 0xCC
1:	RF_FUNCTION
	decl %edi
	jle 2f
	pushq %rbx
	call 1b
	popq %rbx
2:	ret
	.globl rf_attack_common_end
rf_attack_common_end:
	.popsection
