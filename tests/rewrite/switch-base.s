# A table whose address is in rbp: gcc writes 0(%rbp,%rax,4).
	.text
	.globl	machine
	.type	machine, @function
machine:
	endbr64		# 173	[c=0 l=4]  nop_endbr
	pushq	%r12	# 141	[c=4 l=2]  *pushdi2_rex64/0
	movq	%rdi, %rdx	# 2	[c=4 l=3]  *movdi_internal/3
	pushq	%rbp	# 142	[c=4 l=1]  *pushdi2_rex64/0
	leaq	.L18(%rip), %rbp	# 32	[c=1 l=7]  *movdi_internal/4
	pushq	%rbx	# 143	[c=4 l=1]  *pushdi2_rex64/0
	movq	%rsi, %rbx	# 3	[c=4 l=3]  *movdi_internal/3
	.p2align 6,,31
	.p2align 5,,15
.L15:
	movzbl	(%rdx), %eax	# 135	[c=5 l=3]  *movqi_internal/4
	leaq	1(%rdx), %r12	# 139	[c=4 l=4]  *leadi
	andl	$7, %eax	# 140	[c=4 l=3]  *andsi_1/0
	cmpb	$6, %al	# 29	[c=4 l=2]  *cmpqi_1/0
	ja	.L16	# 30	[c=13 l=6]  *jcc
	movzbl	%al, %eax	# 31	[c=4 l=3]  zero_extendqidi2/0
	movslq	0(%rbp,%rax,4), %rax	# 34	[c=14 l=5]  *extendsidi2_rex64/1
	addq	%rbp, %rax	# 36	[c=4 l=3]  *adddi_1/0
	jmp	*%rax	# 37	[c=4 l=2]  *tablejump_1
	.section	.rodata
	.align 4
	.align 4
.L18:
	.long	.L24-.L18
	.long	.L23-.L18
	.long	.L22-.L18
	.long	.L21-.L18
	.long	.L20-.L18
	.long	.L19-.L18
	.long	.L17-.L18
	.text
	.p2align 4,,10
	.p2align 3
.L19:
	endbr64		# 180	[c=0 l=4]  nop_endbr
	cmpq	$0, -8(%rbx)	# 82	[c=13 l=5]  *cmpdi_ccno_1/1
	leaq	-8(%rbx), %rcx	# 138	[c=4 l=4]  *leadi
	movl	$1, %eax	# 116	[c=4 l=5]  *movdi_internal/2
	je	.L26	# 83	[c=13 l=2]  *jcc
	movzbl	1(%rdx), %eax	# 85	[c=13 l=4]  zero_extendqidi2/0
.L26:
	leaq	(%r12,%rax), %rdx	# 137	[c=4 l=4]  *leadi
	movq	%rcx, %rbx	# 14	[c=4 l=3]  *movdi_internal/3
	jmp	.L15	# 158	[c=1 l=2]  jump
	.p2align 4,,10
	.p2align 3
.L20:
	endbr64		# 179	[c=0 l=4]  nop_endbr
	movq	-8(%rbx), %rax	# 74	[c=9 l=4]  *movdi_internal/3
	movq	%r12, %rdx	# 13	[c=4 l=3]  *movdi_internal/3
	addq	$8, %rbx	# 76	[c=4 l=4]  *adddi_1/0
	movq	%rax, -8(%rbx)	# 75	[c=4 l=4]  *movdi_internal/5
	jmp	.L15	# 160	[c=1 l=2]  jump
	.p2align 4,,10
	.p2align 3
.L21:
	endbr64		# 178	[c=0 l=4]  nop_endbr
	movq	-8(%rbx), %rax	# 68	[c=9 l=4]  *movdi_internal/3
	movq	%r12, %rdx	# 12	[c=4 l=3]  *movdi_internal/3
	subq	%rax, -16(%rbx)	# 69	[c=13 l=4]  *subdi_1/0
	subq	$8, %rbx	# 153	[c=4 l=4]  *adddi_1/0
	jmp	.L15	# 162	[c=1 l=5]  jump
	.p2align 4,,10
	.p2align 3
.L22:
	endbr64		# 177	[c=0 l=4]  nop_endbr
	movq	-16(%rbx), %rax	# 60	[c=9 l=4]  *movdi_internal/3
	imulq	-8(%rbx), %rax	# 61	[c=25 l=5]  *muldi3_1/2
	movq	%r12, %rdx	# 6	[c=4 l=3]  *movdi_internal/3
	subq	$8, %rbx	# 154	[c=4 l=4]  *adddi_1/0
	movq	%rax, -8(%rbx)	# 62	[c=4 l=4]  *movdi_internal/5
	jmp	.L15	# 164	[c=1 l=5]  jump
	.p2align 4,,10
	.p2align 3
.L23:
	endbr64		# 176	[c=0 l=4]  nop_endbr
	movq	-8(%rbx), %rax	# 53	[c=9 l=4]  *movdi_internal/3
	movq	%r12, %rdx	# 8	[c=4 l=3]  *movdi_internal/3
	addq	%rax, -16(%rbx)	# 54	[c=13 l=4]  *adddi_1/0
	subq	$8, %rbx	# 155	[c=4 l=4]  *adddi_1/0
	jmp	.L15	# 166	[c=1 l=5]  jump
	.p2align 4,,10
	.p2align 3
.L24:
	endbr64		# 175	[c=0 l=4]  nop_endbr
	movzbl	1(%rdx), %eax	# 45	[c=13 l=4]  zero_extendqidi2/0
	addq	$8, %rbx	# 156	[c=4 l=4]  *adddi_1/0
	addq	$2, %rdx	# 157	[c=4 l=4]  *adddi_1/0
	movq	%rax, -8(%rbx)	# 46	[c=4 l=4]  *movdi_internal/5
	jmp	.L15	# 168	[c=1 l=5]  jump
	.p2align 4,,10
	.p2align 3
.L17:
	endbr64		# 174	[c=0 l=4]  nop_endbr
	movq	-8(%rbx), %rdi	# 93	[c=9 l=4]  *movdi_internal/3
	call	see@PLT	# 95	[c=10 l=5]  *call_value
	movq	%r12, %rdx	# 15	[c=4 l=3]  *movdi_internal/3
	movq	%rax, -8(%rbx)	# 97	[c=4 l=4]  *movdi_internal/5
	jmp	.L15	# 170	[c=1 l=5]  jump
.L16:
	movq	-8(%rbx), %rax	# 102	[c=9 l=4]  *movdi_internal/3
	popq	%rbx	# 146	[c=9 l=1]  *popdi1
	popq	%rbp	# 147	[c=9 l=1]  *popdi1
	popq	%r12	# 148	[c=9 l=2]  *popdi1
	ret		# 149	[c=0 l=1]  simple_return_internal
	.size	machine, .-machine
