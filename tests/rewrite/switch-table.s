# Jumps through switch tables: which become tables of code, and which do not.
	.text
	.globl	plain
	.type	plain, @function
plain:
	.cfi_startproc
	endbr64
	cmpl	$4, %edi
	ja	.L2
	leaq	.L4(%rip), %rdx
	movslq	(%rdx,%rdi,4), %rax
	movl	%esi, %edi
	addq	%rdx, %rax
	notrack jmp	*%rax	# 20 [c=4 l=2]  *tablejump_1
	.section	.rodata
	.align 4
	.align 4
.L4:
	.long	.L5-.L4
	.long	.L6-.L4
	.long	.L5-.L4
	.long	.L2-.L4
	.long	.L6-.L4
	.text
	.p2align 4,,10
	.p2align 3
.L5:
	endbr64
	movl	$0, %eax
	ret
.L6:
	endbr64
	movl	$1, %eax
	ret
.L2:
	endbr64
	ret
	.cfi_endproc
	.size	plain, .-plain
	.globl	sum_in_the_base
	.type	sum_in_the_base, @function
sum_in_the_base:
	.cfi_startproc
	endbr64
	leaq	.L14(%rip), %rdx
	movslq	(%rdx,%r8,4), %rcx
	addq	%rcx, %rdx
	xorl	%ecx, %ecx
	notrack jmp	*%rdx	# 20 [c=4 l=2]  *tablejump_1
	.section	.rodata
	.align 4
	.align 4
.L14:
	.long	.L15-.L14
	.long	.L16-.L14
	.text
	.p2align 4,,10
	.p2align 3
.L15:
	endbr64
	movl	$0, %eax
	ret
.L16:
	endbr64
	movl	$1, %eax
	ret
	.cfi_endproc
	.size	sum_in_the_base, .-sum_in_the_base
	.globl	index_is_target
	.type	index_is_target, @function
index_is_target:
	.cfi_startproc
	endbr64
	pushq	%rbx
	.cfi_def_cfa_offset 16
	.cfi_offset 3, -16
	leaq	.L24(%rip), %rbx
	movslq	(%rbx,%rax,4), %rax
	addq	%rbx, %rax
	notrack jmp	*%rax	# 20 [c=4 l=2]  *tablejump_1
	.section	.rodata
	.align 4
	.align 4
.L24:
	.long	.L25-.L24
	.long	.L26-.L24
	.long	.L25-.L24
	.text
	.p2align 4,,10
	.p2align 3
.L25:
	endbr64
.L26:
	endbr64
	popq	%rbx
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size	index_is_target, .-index_is_target
	.globl	many
	.type	many, @function
many:
	.cfi_startproc
	endbr64
	leaq	.L34(%rip), %rsi
	movslq	(%rsi,%rdi,4), %rdi
	addq	%rsi, %rdi
	notrack jmp	*%rdi	# 20 [c=4 l=2]  *tablejump_1
	.section	.rodata
	.align 4
	.align 4
.L34:
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L35-.L34
	.long	.L36-.L34
	.text
	.p2align 4,,10
	.p2align 3
.L35:
	endbr64
	movl	$0, %eax
	ret
.L36:
	endbr64
	movl	$1, %eax
	ret
	.cfi_endproc
	.size	many, .-many
	.globl	too_many
	.type	too_many, @function
too_many:
	.cfi_startproc
	endbr64
	leaq	.L44(%rip), %rsi
	movslq	(%rsi,%rdi,4), %rdi
	addq	%rsi, %rdi
	notrack jmp	*%rdi	# 20 [c=4 l=2]  *tablejump_1
	.section	.rodata
	.align 4
	.align 4
.L44:
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L45-.L44
	.long	.L46-.L44
	.text
	.p2align 4,,10
	.p2align 3
.L45:
	endbr64
	movl	$0, %eax
	ret
.L46:
	endbr64
	movl	$1, %eax
	ret
	.cfi_endproc
	.size	too_many, .-too_many
	.globl	load_in_another_block
	.type	load_in_another_block, @function
load_in_another_block:
	.cfi_startproc
	endbr64
	leaq	.L54(%rip), %rsi
	movslq	(%rsi,%rdi,4), %rdi
.L51:
	addq	%rsi, %rdi
	notrack jmp	*%rdi	# 20 [c=4 l=2]  *tablejump_1
	.section	.rodata
	.align 4
	.align 4
.L54:
	.long	.L55-.L54
	.long	.L56-.L54
	.text
	.p2align 4,,10
	.p2align 3
.L55:
	endbr64
	movl	$0, %eax
	ret
.L56:
	endbr64
	movl	$1, %eax
	ret
	jmp	.L51
	.cfi_endproc
	.size	load_in_another_block, .-load_in_another_block
	.globl	displaced
	.type	displaced, @function
displaced:
	.cfi_startproc
	endbr64
	leaq	.L64(%rip), %rsi
	movslq	-4(%rsi,%rdi,4), %rdi
	addq	%rsi, %rdi
	notrack jmp	*%rdi	# 20 [c=4 l=2]  *tablejump_1
	.section	.rodata
	.align 4
	.align 4
.L64:
	.long	.L65-.L64
	.long	.L66-.L64
	.text
	.p2align 4,,10
	.p2align 3
.L65:
	endbr64
	movl	$0, %eax
	ret
.L66:
	endbr64
	movl	$1, %eax
	ret
	.cfi_endproc
	.size	displaced, .-displaced
	.globl	absolute
	.type	absolute, @function
absolute:
	.cfi_startproc
	endbr64
	leaq	.L74(%rip), %rsi
	movslq	(%rsi,%rdi,4), %rdi
	addq	%rsi, %rdi
	notrack jmp	*%rdi	# 20 [c=4 l=2]  *tablejump_1
	.section	.rodata
	.align 4
	.align 4
.L74:
	.quad	.L75
	.quad	.L76
	.text
	.p2align 4,,10
	.p2align 3
.L75:
	endbr64
	movl	$0, %eax
	ret
.L76:
	endbr64
	movl	$1, %eax
	ret
	.cfi_endproc
	.size	absolute, .-absolute
	.globl	address_used_twice
	.type	address_used_twice, @function
address_used_twice:
	.cfi_startproc
	endbr64
	leaq	.L84(%rip), %rsi
	movslq	(%rsi,%rdi,4), %rdi
	movl	.L84(%rip), %ecx
	addq	%rsi, %rdi
	notrack jmp	*%rdi	# 20 [c=4 l=2]  *tablejump_1
	.section	.rodata
	.align 4
	.align 4
.L84:
	.long	.L85-.L84
	.long	.L86-.L84
	.text
	.p2align 4,,10
	.p2align 3
.L85:
	endbr64
	movl	$0, %eax
	ret
.L86:
	endbr64
	movl	$1, %eax
	ret
	.cfi_endproc
	.size	address_used_twice, .-address_used_twice
