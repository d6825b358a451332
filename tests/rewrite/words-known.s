# options: words
	.text
	.p2align 4
	.globl	calls
	.type	calls, @function
calls:
	endbr64		# 88	[c=0 l=4]  nop_endbr
	pushq	%r13	# 51	[c=4 l=2]  *pushdi2_rex64/0
	pushq	%r12	# 52	[c=4 l=2]  *pushdi2_rex64/0
	pushq	%rbp	# 53	[c=4 l=1]  *pushdi2_rex64/0
	pushq	%rbx	# 54	[c=4 l=1]  *pushdi2_rex64/0
	subq	$8, %rsp	# 55	[c=4 l=4]  pro_epilogue_adjust_stack_add_di/0
	testl	%esi, %esi	# 12	[c=4 l=2]  *cmpsi_ccno_1/0
	jle	.L4	# 13	[c=13 l=2]  *jcc
	movq	%rdi, %r13	# 64	[c=4 l=3]  *movdi_internal/3
	movslq	%esi, %rbp	# 15	[c=4 l=3]  *extendsidi2_rex64/1
	xorl	%r12d, %r12d	# 71	[c=4 l=3]  *movdi_xor
	xorl	%ebx, %ebx	# 72	[c=4 l=2]  *movdi_xor
	.p2align 6,,31
	.p2align 5,,15
.L3:
	movq	%r12, %rdi	# 17	[c=4 l=3]  *movdi_internal/3
	addq	$1, %r12	# 24	[c=4 l=4]  *adddi_1/0
	call	see@PLT	# 18	[c=10 l=5]  *call_value
	addq	8(%r13), %rax	# 21	[c=13 l=4]  *adddi_1/1
	movq	%rax, 8(%r13)	# 22	[c=4 l=4]  *movdi_internal/5
	addq	%rax, %rbx	# 23	[c=4 l=3]  *adddi_1/0
	cmpq	%rbp, %r12	# 26	[c=4 l=3]  *cmpdi_1/0
	jne	.L3	# 27	[c=13 l=2]  *jcc
	addq	$8, %rsp	# 58	[c=4 l=4]  pro_epilogue_adjust_stack_add_di/0
	movq	%rbx, %rax	# 33	[c=4 l=3]  *movdi_internal/3
	popq	%rbx	# 59	[c=9 l=1]  *popdi1
	popq	%rbp	# 60	[c=9 l=1]  *popdi1
	popq	%r12	# 61	[c=9 l=2]  *popdi1
	popq	%r13	# 62	[c=9 l=2]  *popdi1
	ret		# 63	[c=0 l=1]  simple_return_internal
	.p2align 4,,10
	.p2align 3
.L4:
	addq	$8, %rsp	# 77	[c=4 l=4]  pro_epilogue_adjust_stack_add_di/0
	xorl	%ebx, %ebx	# 70	[c=4 l=2]  *movdi_xor
	movq	%rbx, %rax	# 74	[c=4 l=3]  *movdi_internal/3
	popq	%rbx	# 78	[c=9 l=1]  *popdi1
	popq	%rbp	# 79	[c=9 l=1]  *popdi1
	popq	%r12	# 80	[c=9 l=2]  *popdi1
	popq	%r13	# 81	[c=9 l=2]  *popdi1
	ret		# 82	[c=0 l=1]  simple_return_internal
	.size	calls, .-calls
	.p2align 4
	.globl	small
	.type	small, @function
small:
	endbr64		# 55	[c=0 l=4]  nop_endbr
	movzbl	(%rsi), %eax	# 9	[c=9 l=3]  zero_extendqidi2/0
	xorl	%edx, %edx	# 53	[c=4 l=2]  *movdi_xor
	testb	%al, %al	# 10	[c=4 l=2]  *cmpqi_ccno_1/0
	je	.L8	# 11	[c=13 l=2]  *jcc
	.p2align 6,,31
	.p2align 5,,15
.L10:
	addq	$1, %rsi	# 13	[c=4 l=4]  *adddi_1/0
	addq	(%rdi,%rax,8), %rdx	# 19	[c=14 l=4]  *adddi_1/1
	movzbl	(%rsi), %eax	# 20	[c=9 l=3]  zero_extendqidi2/0
	testb	%al, %al	# 22	[c=4 l=2]  *cmpqi_ccno_1/0
	jne	.L10	# 23	[c=13 l=2]  *jcc
.L8:
	movq	%rdx, %rax	# 29	[c=4 l=3]  *movdi_internal/3
	ret		# 51	[c=0 l=1]  simple_return_internal
	.size	small, .-small
	.p2align 4
	.globl	move
	.type	move, @function
move:
	endbr64		# 32	[c=0 l=4]  nop_endbr
	movl	%esi, %eax	# 25	[c=4 l=2]  *movsi_internal/0
	shrl	$7, %esi	# 14	[c=4 l=3]  *lshrsi3_1/0
	shrl	$16, %eax	# 7	[c=4 l=3]  *lshrsi3_1/0
	movzbl	%sil, %esi	# 16	[c=4 l=4]  zero_extendqidi2/0
	movzbl	%al, %eax	# 9	[c=4 l=3]  zero_extendqidi2/0
	salq	$4, %rsi	# 17	[c=4 l=4]  *ashldi3_1/0
	salq	$4, %rax	# 10	[c=4 l=4]  *ashldi3_1/0
	movdqu	(%rdi,%rax), %xmm0	# 12	[c=13 l=5]  movv2di_internal/2
	movups	%xmm0, (%rdi,%rsi)	# 19	[c=4 l=4]  movv2di_internal/3
	ret		# 29	[c=0 l=1]  simple_return_internal
	.size	move, .-move
	.p2align 4
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
	.section	.note.gnu.property,"a"
	.align 8
	.long	1f - 0f
	.long	4f - 1f
	.long	5
0:
	.string	"GNU"
1:
	.align 8
	.long	0xc0000002
	.long	3f - 2f
2:
	.long	0x1
3:
	.align 8
4:
	.text
	.globl	frame
	.type	frame, @function
frame:
	endbr64
	subq	$40, %rsp
	movq	%rsp, %rdi
	movl	$1, (%rdi)
	call	see
	addq	$40, %rsp
	ret
	.size	frame, .-frame
