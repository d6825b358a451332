# Operands of all kinds: thread-local, absolute, strings, bits, fences, pushed arguments.
	.text
	.globl	f
	.type	f, @function
f:
	.cfi_startproc
	endbr64
	movq	%fs:0, %rax
	movq	x@gottpoff(%rip), %rdx
	movl	(%rax,%rdx), %ecx
	movl	%ecx, y(%rip)
	movl	$1, 16
	testb	$8, 65548
	cmpl	65568, %eax
	movl	65548, %ecx
	movl	65548, %eax
	movabsq	%rax, 0x10000
	lock addl	%edx, -16
	vmovdqu	65600, %ymm1
	movb	%ah, 16
	rep stosq
	rep movsb
	lock orq	$0, (%rsp)
	lock btsq	%rax, (%rdi)
	btl	%ecx, 4(%rdi,%rsi,2)
	movsbl	(%rdi), %eax
	cmpl	$3, -20(%rsp)
	pushq	$7
	.cfi_def_cfa_offset 16
	pushq	8(%rdi)
	.cfi_def_cfa_offset 24
	pushq	24(%rsp)
	.cfi_def_cfa_offset 32
	call	g@PLT
	addq	$24, %rsp
	.cfi_def_cfa_offset 8
	rep ret
	.cfi_endproc
	.size	f, .-f
