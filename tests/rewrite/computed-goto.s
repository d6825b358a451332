# Computed goto through a constant array of labels: which jumps go through a table among the code.
	.text
	.globl	run
	.type	run, @function
run:
	.cfi_startproc
	endbr64
	leaq	labels.0(%rip), %rsi
	movq	(%rdi), %rcx
	movq	(%rsi,%rcx,8), %rcx
	jmp	*%rcx	# 337	[c=4 l=2]  *indirect_jump
	.p2align 4,,10
	.p2align 3
.L3:
	endbr64
	movq	8(%rdi), %rcx
	jmp	*(%rsi,%rcx,8)	# 338	[c=4 l=2]  *indirect_jump
.L4:
	endbr64
	movl	$1, %ecx
	leal	1(%rcx), %eax
	ret
	.cfi_endproc
	.size	run, .-run
	.globl	target_used
	.type	target_used, @function
target_used:
	.cfi_startproc
	endbr64
	leaq	labels.1(%rip), %rsi
	movq	(%rsi,%rdi,8), %rdx
	jmp	*%rdx	# 337	[c=4 l=2]  *indirect_jump
.L13:
	endbr64
	movq	%rdx, %rax
	ret
.L14:
	endbr64
	ret
	.cfi_endproc
	.size	target_used, .-target_used
	.globl	another_array
	.type	another_array, @function
another_array:
	.cfi_startproc
	endbr64
	testq	%rsi, %rsi
	jne	.L21
	leaq	labels.2(%rip), %rsi
.L21:
	jmp	*(%rsi,%rdi,8)	# 337	[c=4 l=2]  *indirect_jump
.L23:
	endbr64
	movl	$1, %eax
	ret
.L24:
	endbr64
	ret
	.cfi_endproc
	.size	another_array, .-another_array
	.globl	lost_in_a_call
	.type	lost_in_a_call, @function
lost_in_a_call:
	.cfi_startproc
	endbr64
	pushq	%rbx
	.cfi_def_cfa_offset 16
	.cfi_offset 3, -16
	leaq	labels.3(%rip), %rsi
	leaq	labels.3(%rip), %rbx
	call	g
	testl	%eax, %eax
	je	.L31
	jmp	*(%rsi,%rax,8)	# 337	[c=4 l=2]  *indirect_jump
.L31:
	jmp	*(%rbx,%rax,8)	# 337	[c=4 l=2]  *indirect_jump
.L33:
	endbr64
.L34:
	endbr64
	popq	%rbx
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size	lost_in_a_call, .-lost_in_a_call
	.globl	writable
	.type	writable, @function
writable:
	.cfi_startproc
	endbr64
	leaq	labels.4(%rip), %rsi
	jmp	*(%rsi,%rdi,8)	# 337	[c=4 l=2]  *indirect_jump
.L43:
	endbr64
	movl	$1, %eax
	ret
.L44:
	endbr64
	ret
	.cfi_endproc
	.size	writable, .-writable
	.globl	own_mask
	.type	own_mask, @function
own_mask:
	.cfi_startproc
	endbr64
	leaq	labels.5(%rip), %rsi
	movl	%edi, %eax
	andl	$3, %eax
	movq	(%rsi,%rax,8), %rax
	jmp	*%rax	# 337	[c=4 l=2]  *indirect_jump
.L53:
	endbr64
	cmpl	%edi, %edx
	setb	%al
	movzbl	%al, %eax
	ret
.L54:
	endbr64
	movl	%edi, %eax
	andl	$1, %eax
	jmp	*(%rsi,%rax,8)	# 338	[c=4 l=2]  *indirect_jump
.L55:
	endbr64
	movl	%edi, %eax
	andl	$3, %eax
.L56:
	jmp	*(%rsi,%rax,8)	# 339	[c=4 l=2]  *indirect_jump
	.cfi_endproc
	.size	own_mask, .-own_mask
	.globl	byte_only
	.type	byte_only, @function
byte_only:
	.cfi_startproc
	endbr64
	leaq	labels.6(%rip), %rsi
	movq	(%rsi,%rdi,8), %rax
	jmp	*%rax	# 337	[c=4 l=2]  *indirect_jump
.L63:
	endbr64
	cmpl	%edi, %edx
	setb	%al
	ret
.L64:
	endbr64
	xorl	%eax, %eax
	ret
	.cfi_endproc
	.size	byte_only, .-byte_only
	.section	.data.rel.ro.local,"aw"
	.align 16
	.type	labels.0, @object
	.size	labels.0, 24
labels.0:
	.quad	.L3
	.quad	.L4
	.quad	.L3
	.align 16
	.type	labels.1, @object
	.size	labels.1, 16
labels.1:
	.quad	.L13
	.quad	.L14
	.align 16
	.type	labels.2, @object
	.size	labels.2, 16
labels.2:
	.quad	.L23
	.quad	.L24
	.align 16
	.type	labels.3, @object
	.size	labels.3, 16
labels.3:
	.quad	.L33
	.quad	.L34
	.align 16
	.type	labels.5, @object
	.size	labels.5, 32
labels.5:
	.quad	.L53
	.quad	.L54
	.quad	.L55
	.quad	.L53
	.align 16
	.type	labels.6, @object
	.size	labels.6, 16
labels.6:
	.quad	.L63
	.quad	.L64
	.section	.data.rel.local,"aw"
	.align 16
	.type	labels.4, @object
	.size	labels.4, 16
labels.4:
	.quad	.L43
	.quad	.L44
