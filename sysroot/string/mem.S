/* memmove (and memcpy), memset and memcmp with vectors of 32 bytes, confined by hand (confined.h). */
#include "confined.h"

/* Above this, string instructions are faster than the loops, where the processor says that they are fast. */
#define REP_MOVE 2048
#define REP_SET 2048

	.text
FUNCTION(memmove)
	movq	%rdi, %rax
	cmpq	$32, %rdx
	jbe	.Lmove_32
	cmpq	$64, %rdx
	ja	.Lmove_above_2
	vmovdqu	G(0, si), %ymm0
	vmovdqu	GX(-32, si, dx), %ymm1
	vmovdqu	%ymm0, G(0, di)
	vmovdqu	%ymm1, GX(-32, di, dx)
	RETURN
	.p2align 4, 0xcc
.Lmove_32:
	cmpl	$16, %edx
	jb	.Lmove_15
	movdqu	G(0, si), %xmm0
	movdqu	GX(-16, si, dx), %xmm1
	movdqu	%xmm0, G(0, di)
	movdqu	%xmm1, GX(-16, di, dx)
	ret
	.p2align 4, 0xcc
.Lmove_above_2:
	cmpq	$128, %rdx
	ja	.Lmove_above_4
	vmovdqu	G(0, si), %ymm0
	vmovdqu	G(32, si), %ymm1
	vmovdqu	GX(-64, si, dx), %ymm2
	vmovdqu	GX(-32, si, dx), %ymm3
	HOLD(di)
	STORE_TWO(0, 1)
	HOLDX(-64, di, dx)
	STORE_TWO(2, 3)
	RETURN
	.p2align 4, 0xcc
.Lmove_above_4:
	cmpq	$256, %rdx
	ja	.Lmove_above_8
	/* Everything is loaded before the first store, so overlap does not matter. */
	HOLD(si)
	LOAD_FOUR(0, 1, 2, 3)
	HOLDX(-128, si, dx)
	LOAD_FOUR(4, 5, 6, 7)
	HOLD(di)
	STORE_FOUR(vmovdqu, 0, 1, 2, 3)
	HOLDX(-128, di, dx)
	STORE_FOUR(vmovdqu, 4, 5, 6, 7)
	RETURN
	.p2align 4, 0xcc
.Lmove_above_8:
	movq	%rdi, %rcx
	subq	%rsi, %rcx
	cmpq	%rdx, %rcx
	jb	.Lbackward
	cmpq	$REP_MOVE, %rdx
	ja	.Lmove_much
	/* The ends are loaded first and stored last, the middle goes to aligned addresses. */
.Lforward:
	vmovdqu	G(0, si), %ymm4
	HOLDX(-128, si, dx)
	LOAD_FOUR(5, 6, 7, 8)
	leaq	-128(%rdi,%rdx), %rdx
	subq	%rdi, %rsi
	addq	$32, %rdi
	andq	$-32, %rdi
	addq	%rdi, %rsi
	.p2align 6
1:
	HOLD(si)
	LOAD_FOUR(0, 1, 2, 3)
	subq	$-128, %rsi
	HOLD(di)
	STORE_FOUR(vmovdqa, 0, 1, 2, 3)
	subq	$-128, %rdi
	cmpq	%rdx, %rdi
	jb	1b
	HOLD(dx)
	STORE_FOUR(vmovdqu, 5, 6, 7, 8)
	vmovdqu	%ymm4, G(0, ax)
	RETURN
	.p2align 4, 0xcc
.Lbackward:
	vmovdqu	GX(-32, si, dx), %ymm4
	vmovdqu	G(0, si), %ymm5
	vmovdqu	G(32, si), %ymm6
	vmovdqu	G(64, si), %ymm7
	vmovdqu	G(96, si), %ymm8
	leaq	-1(%rdi,%rdx), %rcx
	andq	$-32, %rcx
	subq	%rdi, %rsi
	addq	%rcx, %rsi
	leaq	-32(%rdi,%rdx), %rdx
	subq	$-128, %rdi
	.p2align 6
1:
	addq	$-128, %rcx
	HOLD(cx)
	vmovdqu	G(-32, si), %ymm0
	vmovdqu	G(-64, si), %ymm1
	vmovdqa	%ymm0, H(96)
	vmovdqa	%ymm1, H(64)
	vmovdqu	G(-96, si), %ymm2
	vmovdqu	G(-128, si), %ymm3
	vmovdqa	%ymm2, H(32)
	vmovdqa	%ymm3, H(0)
	addq	$-128, %rsi
	cmpq	%rdi, %rcx
	ja	1b
	HOLD(ax)
	STORE_FOUR(vmovdqu, 5, 6, 7, 8)
	vmovdqu	%ymm4, G(0, dx)
	RETURN
	.p2align 4, 0xcc
.Lmove_much:
	movq	%rsi, %r8
	subq	%rdi, %r8
	cmpq	%rdx, %r8
	jb	.Lforward
	ABSOLUTE testb HAS_ERMS
	jz	.Lforward
	/* AMD's take twenty times as long where the target is 1 to 15 bytes behind the source within their
	 * pages. Backwards, no load looks like one from what was just stored. */
	leal	-1(%rcx), %r8d
	andl	$4095, %r8d
	cmpl	$15, %r8d
	jb	.Lbackward
	/* 64 bytes of vectors, then from an aligned address. */
	vmovdqu	G(0, si), %ymm0
	vmovdqu	G(32, si), %ymm1
	vmovdqu	%ymm0, G(0, di)
	vmovdqu	%ymm1, G(32, di)
	movl	%edi, %ecx
	negl	%ecx
	andl	$63, %ecx
	addq	%rcx, %rdi
	addq	%rcx, %rsi
	subq	%rcx, %rdx
	movq	%rdx, %rcx
	REBUILD(di)
	REBUILD(si)
	rep movsb
	RETURN
	.p2align 4, 0xcc
.Lmove_15:
	cmpl	$8, %edx
	jb	1f
	movq	G(0, si), %rcx
	movq	GX(-8, si, dx), %rsi
	movq	%rcx, G(0, di)
	movq	%rsi, GX(-8, di, dx)
	ret
1:	cmpl	$4, %edx
	jb	1f
	movl	G(0, si), %ecx
	movl	GX(-4, si, dx), %esi
	movl	%ecx, G(0, di)
	movl	%esi, GX(-4, di, dx)
	ret
1:	cmpl	$1, %edx
	jb	2f
	movzbl	G(0, si), %ecx
	je	1f
	movzwl	GX(-2, si, dx), %esi
	movw	%si, GX(-2, di, dx)
1:	movb	%cl, G(0, di)
2:	ret
END(memmove)

FUNCTION(memset)
	movq	%rdi, %rax
	cmpq	$32, %rdx
	jbe	.Lset_32
	cmpq	$64, %rdx
	ja	.Lset_above_2
	SPREAD(0)
	vmovdqu	%ymm0, G(0, di)
	vmovdqu	%ymm0, GX(-32, di, dx)
	RETURN
	.p2align 4, 0xcc
.Lset_32:
	movabsq	$0x0101010101010101, %rcx
	movzbl	%sil, %esi
	imulq	%rcx, %rsi
	cmpl	$16, %edx
	jb	.Lset_15
	movq	%rsi, %xmm0
	punpcklqdq %xmm0, %xmm0
	movdqu	%xmm0, G(0, di)
	movdqu	%xmm0, GX(-16, di, dx)
	ret
	.p2align 4, 0xcc
.Lset_above_2:
	cmpq	$128, %rdx
	ja	.Lset_above_4
	SPREAD(0)
	HOLD(di)
	STORE_TWO(0, 0)
	HOLDX(-64, di, dx)
	STORE_TWO(0, 0)
	RETURN
	.p2align 4, 0xcc
.Lset_above_4:
	cmpq	$256, %rdx
	ja	.Lset_above_8
	SPREAD(0)
	HOLD(di)
	STORE_FOUR(vmovdqu, 0, 0, 0, 0)
	HOLDX(-128, di, dx)
	STORE_FOUR(vmovdqu, 0, 0, 0, 0)
	RETURN
	.p2align 4, 0xcc
.Lset_above_8:
	SPREAD(0)
	cmpq	$REP_SET, %rdx
	ja	.Lset_much
.Lset_loops:
	HOLD(di)
	STORE_FOUR(vmovdqu, 0, 0, 0, 0)
	leaq	-128(%rdi,%rdx), %rcx
	subq	$-128, %rdi
	andq	$-32, %rdi
	cmpq	%rcx, %rdi
	jae	2f
	.p2align 6
1:
	HOLD(di)
	STORE_FOUR(vmovdqa, 0, 0, 0, 0)
	subq	$-128, %rdi
	cmpq	%rcx, %rdi
	jb	1b
2:
	HOLD(cx)
	STORE_FOUR(vmovdqu, 0, 0, 0, 0)
	RETURN
	.p2align 4, 0xcc
.Lset_much:
	ABSOLUTE testb HAS_ERMS
	jz	.Lset_loops
	vmovdqu	%ymm0, G(0, di)
	vmovdqu	%ymm0, G(32, di)
	movq	%rax, %r8
	movl	%edi, %ecx
	negl	%ecx
	andl	$63, %ecx
	addq	%rcx, %rdi
	subq	%rcx, %rdx
	movq	%rdx, %rcx
	movl	%esi, %eax
	REBUILD(di)
	rep stosb
	movq	%r8, %rax
	RETURN
	.p2align 4, 0xcc
.Lset_15:
	cmpl	$8, %edx
	jb	1f
	movq	%rsi, G(0, di)
	movq	%rsi, GX(-8, di, dx)
	ret
1:	cmpl	$4, %edx
	jb	1f
	movl	%esi, G(0, di)
	movl	%esi, GX(-4, di, dx)
	ret
1:	cmpl	$1, %edx
	jb	2f
	movb	%sil, G(0, di)
	je	2f
	movw	%si, GX(-2, di, dx)
2:	ret
END(memset)

/* `vector` becomes ones where the bytes `at` from rdi are like those as far from rdi + rsi. */
#define LIKE(at, vector)                                                                                     \
	vmovdqu GX(at, si, di), vector; vpcmpeqb G(at, di), vector, vector
/* Tests are dear: as many vectors as there are for sure share one, and only after it is told which of them differs.
 * eax becomes 0 if all bits of a vector are ones, else the lowest bit that is set tells the first that is not. */
#define DIFFERENCE(vector)                                                                                   \
	vpmovmskb vector, %eax; incl %eax
/* The flag for four vectors at rdi. */
#define ALL_LIKE                                                                                             \
	LIKE(0, %ymm0); LIKE(32, %ymm1); LIKE(64, %ymm2); LIKE(96, %ymm3);                                   \
	vpand %ymm1, %ymm0, %ymm0; vpand %ymm3, %ymm2, %ymm2; vpand %ymm2, %ymm0, %ymm0; DIFFERENCE(%ymm0)

FUNCTION(memcmp)
	cmpq	$32, %rdx
	jbe	.Lcmp_32
	cmpq	$64, %rdx
	ja	.Lcmp_above_2
	vmovdqu	G(0, di), %ymm0
	vmovdqu	GX(-32, di, dx), %ymm1
	vpcmpeqb G(0, si), %ymm0, %ymm0
	vpcmpeqb GX(-32, si, dx), %ymm1, %ymm1
	vpand	%ymm0, %ymm1, %ymm1
	DIFFERENCE(%ymm1)
	jnz	.Lcmp_either
	RETURN
.Lcmp_above_2:
	cmpq	$128, %rdx
	ja	.Lcmp_above_4
	vmovdqu	G(0, di), %ymm0
	vmovdqu	G(32, di), %ymm1
	vmovdqu	GX(-64, di, dx), %ymm2
	vmovdqu	GX(-32, di, dx), %ymm3
	vpcmpeqb G(0, si), %ymm0, %ymm0
	vpcmpeqb G(32, si), %ymm1, %ymm1
	vpcmpeqb GX(-64, si, dx), %ymm2, %ymm2
	vpcmpeqb GX(-32, si, dx), %ymm3, %ymm3
	vpand	%ymm1, %ymm0, %ymm4
	vpand	%ymm3, %ymm2, %ymm2
	vpand	%ymm2, %ymm4, %ymm2
	DIFFERENCE(%ymm2)
	jnz	1f
	RETURN
1:	/* In the first, the second, the last but one or the last. */
	DIFFERENCE(%ymm0)
	jnz	.Lcmp_first
	subq	%rdi, %rsi
	DIFFERENCE(%ymm1)
	jnz	.Lcmp_at_32
	leaq	-64(%rdi,%rdx), %rdi
	jmp	.Lcmp_four
	.p2align 4, 0xcc
.Lcmp_32:
	cmpl	$16, %edx
	jb	.Lcmp_15
	movdqu	G(0, di), %xmm0
	movdqu	G(0, si), %xmm1
	pcmpeqb	%xmm1, %xmm0
	pmovmskb %xmm0, %eax
	subl	$0xffff, %eax
	jnz	.Lcmp_first_16
	movdqu	GX(-16, di, dx), %xmm0
	movdqu	GX(-16, si, dx), %xmm1
	pcmpeqb	%xmm1, %xmm0
	pmovmskb %xmm0, %eax
	subl	$0xffff, %eax
	jnz	.Lcmp_end_16
	ret
.Lcmp_end_16:
	leaq	-16(%rdi,%rdx), %rdi
	leaq	-16(%rsi,%rdx), %rsi
.Lcmp_first_16:
	bsfl	%eax, %eax
	SUBTRACT(GX(0, si, ax), GX(0, di, ax))
	ret
	.p2align 4, 0xcc
.Lcmp_either:
	DIFFERENCE(%ymm0)
	jnz	.Lcmp_first
	DIFFERENCE(%ymm1)
	leaq	-32(%rdi,%rdx), %rdi
	leaq	-32(%rsi,%rdx), %rsi
.Lcmp_first:
	bsfl	%eax, %eax
	SUBTRACT(GX(0, si, ax), GX(0, di, ax))
	RETURN
	.p2align 4, 0xcc
.Lcmp_above_4:
	subq	%rdi, %rsi
	ALL_LIKE
	jnz	.Lcmp_four
	leaq	-128(%rdi,%rdx), %rcx
	cmpq	$256, %rdx
	jbe	4f
	subq	$-128, %rdi
	andq	$-32, %rdi
	.p2align 6
1:
	ALL_LIKE
	jnz	.Lcmp_four
	subq	$-128, %rdi
	cmpq	%rcx, %rdi
	jb	1b
2:	/* The last four vectors, which overlap, or the last two. */
	leaq	64(%rcx), %rax
	cmpq	%rax, %rdi
	jae	3f
4:	movq	%rcx, %rdi
	ALL_LIKE
	jnz	.Lcmp_four
	RETURN
3:	movq	%rax, %rdi
	LIKE(0, %ymm0); LIKE(32, %ymm1)
	vpand	%ymm1, %ymm0, %ymm0
	DIFFERENCE(%ymm0)
	jnz	.Lcmp_four
	RETURN
	.p2align 4, 0xcc
.Lcmp_four:
	/* One of four vectors differs. */
	LIKE(0, %ymm0)
	DIFFERENCE(%ymm0)
	jnz	.Lcmp_at_0
	LIKE(32, %ymm0)
	DIFFERENCE(%ymm0)
	jnz	.Lcmp_at_32
	LIKE(64, %ymm0)
	DIFFERENCE(%ymm0)
	jnz	.Lcmp_at_64
	LIKE(96, %ymm0)
	DIFFERENCE(%ymm0)
	addq	$32, %rdi
.Lcmp_at_64:
	addq	$32, %rdi
.Lcmp_at_32:
	addq	$32, %rdi
.Lcmp_at_0:
	bsfl	%eax, %eax
	addq	%rax, %rdi
	SUBTRACT(GX(0, si, di), G(0, di))
	RETURN
	.p2align 4, 0xcc
.Lcmp_15:
	cmpl	$8, %edx
	jb	1f
	movq	G(0, di), %rax
	movq	G(0, si), %rcx
	cmpq	%rcx, %rax
	jne	3f
	movq	GX(-8, di, dx), %rax
	movq	GX(-8, si, dx), %rcx
	cmpq	%rcx, %rax
	jne	3f
	xorl	%eax, %eax
	ret
1:	cmpl	$4, %edx
	jb	1f
	/* The first four bytes above the last four. */
	movl	GX(-4, di, dx), %eax
	movl	GX(-4, si, dx), %ecx
	movl	G(0, di), %edi
	movl	G(0, si), %esi
	shlq	$32, %rax
	shlq	$32, %rcx
	orq	%rdi, %rax
	orq	%rsi, %rcx
3:	/* Which is more, read as big-endian numbers. */
	bswapq	%rax
	bswapq	%rcx
	xorl	%edx, %edx
	cmpq	%rcx, %rax
	seta	%dl
	sbbl	$0, %edx
	movl	%edx, %eax
	ret
1:	testl	%edx, %edx
	jz	2f
	movzbl	G(0, di), %eax
	movzbl	G(0, si), %ecx
	subl	%ecx, %eax
	jnz	1f
	/* Two or three bytes, of which the first are equal; or one. */
	cmpl	$2, %edx
	jb	1f
	movzbl	G(1, di), %eax
	movzbl	G(1, si), %ecx
	subl	%ecx, %eax
	jnz	1f
	movzbl	GX(-1, di, dx), %eax
	movzbl	GX(-1, si, dx), %ecx
	subl	%ecx, %eax
1:	ret
2:	xorl	%eax, %eax
	ret
	/* The last function ends here, whatever follows in the file. */
	int3
END(memcmp)

	/* One function for both: calls that overlap by mistake then work, too. */
	ALSO(memcpy, memmove)
	ALSO(bcmp, memcmp)
	.section .note.GNU-stack, "", @progbits
