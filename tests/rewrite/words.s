# options: words
	.text
	.p2align 4
	.globl	sum
	.type	sum, @function
sum:
	endbr64		# 60	[c=0 l=4]  nop_endbr
	testq	%rsi, %rsi	# 12	[c=4 l=3]  *cmpdi_ccno_1/0
	jle	.L4	# 13	[c=13 l=2]  *jcc
	leaq	(%rdi,%rsi,4), %rdx	# 17	[c=8 l=4]  *leadi
	xorl	%eax, %eax	# 58	[c=4 l=2]  *movdi_xor
	.p2align 6,,31
	.p2align 5,,15
.L3:
	addl	(%rdi), %eax	# 23	[c=9 l=2]  *addsi_1/1
	addq	$4, %rdi	# 24	[c=4 l=4]  *adddi_1/0
	cmpq	%rdx, %rdi	# 26	[c=4 l=3]  *cmpdi_1/0
	jne	.L3	# 27	[c=13 l=2]  *jcc
	ret		# 47	[c=0 l=1]  simple_return_internal
	.p2align 4,,10
	.p2align 3
.L4:
	xorl	%eax, %eax	# 57	[c=4 l=2]  *movdi_xor
	ret		# 52	[c=0 l=1]  simple_return_internal
	.size	sum, .-sum
	.p2align 4
	.globl	walk
	.type	walk, @function
walk:
	endbr64		# 49	[c=0 l=4]  nop_endbr
	xorl	%eax, %eax	# 47	[c=4 l=2]  *movdi_xor
	testq	%rdi, %rdi	# 8	[c=4 l=3]  *cmpdi_ccno_1/0
	je	.L10	# 9	[c=13 l=2]  *jcc
	.p2align 6,,31
	.p2align 5,,15
.L9:
	addl	8(%rdi), %eax	# 13	[c=13 l=3]  *addsi_1/1
	movq	(%rdi), %rdi	# 14	[c=5 l=3]  *movdi_internal/3
	testq	%rdi, %rdi	# 16	[c=4 l=3]  *cmpdi_ccno_1/0
	jne	.L9	# 17	[c=13 l=2]  *jcc
	ret		# 39	[c=0 l=1]  simple_return_internal
	.p2align 4,,10
	.p2align 3
.L10:
	ret		# 44	[c=0 l=1]  simple_return_internal
	.size	walk, .-walk
	.p2align 4
	.globl	copy
	.type	copy, @function
copy:
	endbr64		# 29	[c=0 l=4]  nop_endbr
	xorl	%eax, %eax	# 28	[c=4 l=2]  *movdi_xor
	.p2align 6,,31
	.p2align 5,,15
.L13:
	movzbl	(%rsi,%rax), %edx	# 9	[c=9 l=4]  *movqi_internal/4
	movb	%dl, (%rdi,%rax)	# 10	[c=4 l=3]  *movqi_internal/8
	addq	$1, %rax	# 11	[c=4 l=4]  *adddi_1/0
	testb	%dl, %dl	# 13	[c=4 l=2]  *cmpqi_ccno_1/0
	jne	.L13	# 14	[c=13 l=2]  *jcc
	ret		# 25	[c=0 l=1]  simple_return_internal
	.size	copy, .-copy
	.p2align 4
	.globl	rows
	.type	rows, @function
rows:
	endbr64		# 62	[c=0 l=4]  nop_endbr
	testl	%edx, %edx	# 10	[c=4 l=2]  *cmpsi_ccno_1/0
	jle	.L15	# 11	[c=13 l=6]  *jcc
	movslq	%edx, %rdx	# 15	[c=4 l=3]  *extendsidi2_rex64/1
	leaq	0(,%rdx,4), %rcx	# 56	[c=16 l=8]  *leadi
	leaq	(%rsi,%rcx), %r8	# 57	[c=4 l=4]  *leadi
	.p2align 6,,31
	.p2align 5,,15
.L17:
	movq	(%rdi), %rax	# 36	[c=5 l=3]  *movdi_internal/3
	leaq	(%rcx,%rax), %rdx	# 55	[c=4 l=4]  *leadi
	.p2align 6,,31
	.p2align 5,,15
.L18:
	movss	(%rax), %xmm0	# 22	[c=5 l=4]  *movsf_internal/7
	mulss	(%rsi), %xmm0	# 23	[c=21 l=4]  *fop_sf_comm/1
	addq	$4, %rax	# 25	[c=4 l=4]  *adddi_1/0
	movss	%xmm0, -4(%rax)	# 24	[c=4 l=5]  *movsf_internal/8
	cmpq	%rdx, %rax	# 27	[c=4 l=3]  *cmpdi_1/0
	jne	.L18	# 28	[c=13 l=2]  *jcc
	addq	$4, %rsi	# 31	[c=4 l=4]  *adddi_1/0
	addq	$8, %rdi	# 30	[c=4 l=4]  *adddi_1/0
	cmpq	%r8, %rsi	# 32	[c=4 l=3]  *cmpdi_1/0
	jne	.L17	# 33	[c=13 l=2]  *jcc
.L15:
	ret		# 60	[c=0 l=1]  simple_return_internal
	.size	rows, .-rows
	.p2align 4
	.globl	two
	.type	two, @function
two:
	endbr64		# 40	[c=0 l=4]  nop_endbr
	cmpl	$3, 8(%rdi)	# 9	[c=13 l=4]  *cmpsi_1/0
	ja	.L23	# 10	[c=13 l=2]  *jcc
	movb	$2, 15(%rsi)	# 18	[c=4 l=4]  *movqi_internal/8
	movl	8(%rsi), %eax	# 19	[c=9 l=3]  *movsi_internal/0
	ret		# 35	[c=0 l=1]  simple_return_internal
	.p2align 4,,10
	.p2align 3
.L23:
	movl	$1, 8(%rsi)	# 12	[c=4 l=7]  *movsi_internal/1
	movzbl	14(%rdi), %eax	# 13	[c=13 l=4]  *zero_extendqisi2/0
	ret		# 30	[c=0 l=1]  simple_return_internal
	.size	two, .-two
	.p2align 4
	.globl	flags
	.type	flags, @function
flags:
	endbr64		# 39	[c=0 l=4]  nop_endbr
	cmpq	%rdx, %rsi	# 10	[c=4 l=3]  *cmpdi_1/0
	movl	$1, %eax	# 7	[c=4 l=5]  *movsi_internal/0
	setl	(%rdi)	# 12	[c=4 l=3]  *setcc_qi
	jge	.L24	# 14	[c=13 l=2]  *jcc
	movl	(%rcx), %eax	# 16	[c=5 l=2]  *movsi_internal/0
.L24:
	ret		# 36	[c=0 l=1]  simple_return_internal
	.size	flags, .-flags
	.p2align 4
	.globl	own
	.type	own, @function
own:
	endbr64		# 106	[c=0 l=4]  nop_endbr
	pxor	%xmm0, %xmm0	# 11	[c=4 l=4]  movv16qi_internal/0
	movaps	%xmm0, -40(%rsp)	# 12	[c=4 l=5]  movv16qi_internal/3
	movaps	%xmm0, -24(%rsp)	# 13	[c=4 l=5]  movv16qi_internal/3
	testq	%rsi, %rsi	# 16	[c=4 l=3]  *cmpdi_ccno_1/0
	jle	.L31	# 17	[c=13 l=6]  *jcc
	movzbl	(%rdi), %eax	# 21	[c=9 l=3]  zero_extendqidi2/0
	leaq	table(%rip), %r9	# 19	[c=1 l=7]  *movdi_internal/4
	movl	(%r9,%rax,4), %edx	# 22	[c=10 l=4]  *movsi_internal/0
	movl	$1, %eax	# 5	[c=4 l=5]  *movdi_internal/2
	movl	%edx, -40(%rsp)	# 23	[c=4 l=4]  *movsi_internal/1
	cmpq	$1, %rsi	# 24	[c=4 l=4]  *cmpdi_1/0
	je	.L30	# 25	[c=13 l=2]  *jcc
	.p2align 6,,31
	.p2align 5,,15
.L29:
	movzbl	(%rdi,%rax), %r8d	# 38	[c=13 l=5]  zero_extendqidi2/0
	movq	%rax, %rcx	# 86	[c=4 l=3]  *movdi_internal/3
	addq	$1, %rax	# 41	[c=4 l=4]  *adddi_1/0
	andl	$7, %ecx	# 35	[c=4 l=3]  *anddi_1/0
	xorl	(%r9,%r8,4), %edx	# 39	[c=14 l=4]  *xorsi_1/1
	addl	%edx, -40(%rsp,%rcx,4)	# 40	[c=14 l=4]  *addsi_1/0
	cmpq	%rax, %rsi	# 42	[c=4 l=3]  *cmpdi_1/0
	jne	.L29	# 43	[c=13 l=2]  *jcc
.L30:
	movl	%edx, %ecx	# 84	[c=4 l=2]  *movsi_internal/0
	movzbl	%dl, %eax	# 27	[c=4 l=3]  zero_extendqidi2/0
	andl	$7, %ecx	# 81	[c=5 l=3]  *andsi_1_zext
	movl	-40(%rsp,%rcx,4), %ecx	# 30	[c=10 l=4]  *movsi_internal/0
	movl	%ecx, (%r9,%rax,4)	# 52	[c=4 l=4]  *movsi_internal/1
	movl	%edx, %eax	# 56	[c=4 l=2]  *movsi_internal/0
	ret		# 90	[c=0 l=1]  simple_return_internal
	.p2align 4,,10
	.p2align 3
.L31:
	xorl	%eax, %eax	# 93	[c=4 l=2]  *movdi_xor
	xorl	%ecx, %ecx	# 92	[c=4 l=2]  *movdi_xor
	leaq	table(%rip), %r9	# 66	[c=1 l=7]  *movdi_internal/4
	xorl	%edx, %edx	# 94	[c=4 l=2]  *movdi_xor
	movl	%ecx, (%r9,%rax,4)	# 96	[c=4 l=4]  *movsi_internal/1
	movl	%edx, %eax	# 97	[c=4 l=2]  *movsi_internal/0
	ret		# 100	[c=0 l=1]  simple_return_internal
	.size	own, .-own
	.local	table
	.comm	table,1024,32
	.text
	.globl	high
	.type	high, @function
high:
	endbr64
	movl	%esi, %ecx
	movb	%ch, -1(%rdi)
	addb	(%rdi), %ch
	movl	%ecx, %eax
	ret
	.size	high, .-high
