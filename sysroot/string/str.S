/* strcmp, strncmp, strcpy and stpcpy with vectors of 32 bytes, confined by hand (confined.h). */
#include "confined.h"

/* A byte of `stop` is 0 where the strings differ, or both end: what is loaded of the one, where it is like the other. */
#define STOP(at, vector, stop) vmovdqu G(at, si), vector; vpcmpeqb G(at, di), vector, stop; vpand vector, stop, stop
#define LOOK(at) STOP(at, %ymm1, %ymm2); ZEROES(%ymm2, %eax); testl %eax, %eax

/* Returns 0; the upper halves as other code expects them, or not. */
.macro EQUAL name
.Lequal_\name:
	vzeroupper
.Lempty_\name:
	xorl	%eax, %eax
	ret
.endm

/* The difference at place + eax. */
.macro DIFFERENCE place
	tzcntl	%eax, %eax
	SUBTRACT(GX(\place, si, ax), GX(\place, di, ax))
	RETURN
.endm
.macro DIFFERENCE_AT place, name
	.p2align 4, 0xcc
.Lat_\place\()_\name:
	DIFFERENCE \place
.endm
/* The same, if it is within the size. */
.macro DIFFERENCE_WITHIN place, name
	.p2align 4, 0xcc
.Lwithin_\place\()_\name:
	tzcntl	%eax, %ecx
	addl	$\place, %ecx
	cmpl	%edx, %ecx
	jae	.Lequal_\name
	DIFFERENCE \place
.endm
.macro LOOK_WITHIN place, name
	LOOK(\place)
	jnz	.Lwithin_\place\()_\name
	cmpl	$\place + 32, %edx
	jbe	.Lequal_\name
.endm

/* The first four vectors are looked at one by one where they are, if they stay in their pages, then four at a time from a boundary
 * of four of the first string, in which they are in one page. How many fours of the other string are in its page is computed once for
 * each page. */
.macro COMPARE name, bounded
.if \bounded
	testq	%rdx, %rdx
	jz	.Lempty_\name
.endif
	movl	%edi, %eax
	orl	%esi, %eax
	andl	$4095, %eax
	cmpl	$4096 - 128, %eax
	ja	.Ledge_\name
	vpxor	%xmm0, %xmm0, %xmm0
.if \bounded
	cmpq	$128, %rdx
	ja	.Lsure_\name
	LOOK_WITHIN 0, \name
	LOOK_WITHIN 32, \name
	LOOK_WITHIN 64, \name
	LOOK(96)
	jnz	.Lwithin_96_\name
	EQUAL	\name
	DIFFERENCE_WITHIN 0, \name
	DIFFERENCE_WITHIN 32, \name
	DIFFERENCE_WITHIN 64, \name
	DIFFERENCE_WITHIN 96, \name
	.p2align 4, 0xcc
.Lsure_\name:
.endif
	LOOK(0)
	jnz	.Lat_0_\name
	LOOK(32)
	jnz	.Lat_32_\name
	LOOK(64)
	jnz	.Lat_64_\name
	LOOK(96)
	jnz	.Lat_96_\name
.Lmore_\name:
	/* r10: where the first string begins; what precedes rdi is known to be equal, without an end. rsi: the distance of the other. */
	movq	%rdi, %r10
	subq	%rdi, %rsi
	andq	$-128, %rdi
	subq	$-128, %rdi
.if \bounded
	/* r9: how many fours there are within the size. */
	leaq	-1(%r10,%rdx), %r9
	subq	%rdi, %r9
	shrq	$7, %r9
	incq	%r9
.endif
.Lpage_\name:
	leal	(%rdi,%rsi), %ecx
	notl	%ecx
	andl	$4095, %ecx
	incl	%ecx
	movl	%ecx, %r8d
	shrl	$7, %ecx
	jz	.Lover_\name
.if \bounded
	cmpq	%r9, %rcx
	cmovaq	%r9, %rcx
	subq	%rcx, %r9
.endif
	.p2align 6
.Lloop_\name:
	FOUR
	jnz	.Lfour_\name
	subq	$-128, %rdi
	decl	%ecx
	jnz	.Lloop_\name
.if \bounded
	testq	%r9, %r9
	jz	.Lequal_\name
.endif
	jmp	.Lpage_\name

	.p2align 4, 0xcc
.Lover_\name:
	/* The other string leaves its page within the next four, r8 bytes from here, and has to be equal that far, without an end, before
	 * more is loaded. Where that begins in front of the first string's begin, it is known to be. */
.if \bounded
	movq	%rdi, %rax
	subq	%r10, %rax
	addq	%r8, %rax
	decq	%r9
	cmpq	%rax, %rdx
	jbe	.Llast_\name
.endif
	movq	%rdi, %rax
	leaq	-128(%rdi,%r8), %rdi
	cmpq	%r10, %rdi
	jb	1f
	movq	%rax, %r8
	FOUR
	jnz	.Lfour_\name
	movq	%r8, %rax
1:	movq	%rax, %rdi
	movl	$1, %ecx
	jmp	.Lloop_\name
.if \bounded
.Llast_\name:
	/* The size ends before the page. */
	leaq	-128(%rdi,%r8), %rdi
	cmpq	%r10, %rdi
	jb	.Lequal_\name
	FOUR
	jz	.Lequal_\name
.endif

.Lfour_\name:
	vpand	%ymm1, %ymm5, %ymm5
	ZEROES(%ymm5, %ecx)
	testl	%ecx, %ecx
	jnz	1f
	vpand	%ymm9, %ymm11, %ymm11
	ZEROES(%ymm11, %ecx)
	addq	$32, %rdi
	testl	%ecx, %ecx
	jnz	1f
	vpand	%ymm3, %ymm7, %ymm7
	ZEROES(%ymm7, %ecx)
	addq	$32, %rdi
	shlq	$32, %rax
	orq	%rax, %rcx
1:	tzcntq	%rcx, %rcx
	addq	%rcx, %rdi
.if \bounded
	movq	%rdi, %rax
	subq	%r10, %rax
	cmpq	%rdx, %rax
	jae	.Lequal_\name
.endif
	SUBTRACT(GX(0, si, di), G(0, di))
	RETURN

	DIFFERENCE_AT 0, \name
	DIFFERENCE_AT 32, \name
	DIFFERENCE_AT 64, \name
	DIFFERENCE_AT 96, \name
.if !\bounded
	EQUAL	\name
.endif

	.p2align 4, 0xcc
.Ledge_\name:
	vpxor	%xmm0, %xmm0, %xmm0
	/* Vectors while both are in their pages, else a byte, until as much as four vectors has been looked at. */
	leaq	128(%rdi), %r10
1:	movl	%edi, %eax
	movl	%esi, %ecx
	andl	$4095, %eax
	andl	$4095, %ecx
	cmpl	%ecx, %eax
	cmovbl	%ecx, %eax
	cmpl	$4096 - 32, %eax
	ja	2f
	LOOK(0)
.if \bounded
	jnz	.Lvector_\name
	subq	$32, %rdx
	jbe	.Lequal_\name
.else
	jnz	.Lat_0_\name
.endif
	addq	$32, %rdi
	addq	$32, %rsi
	jmp	3f
2:	movzbl	G(0, di), %eax
	movzbl	G(0, si), %ecx
	cmpl	%ecx, %eax
	jne	4f
	testl	%eax, %eax
	jz	.Lequal_\name
.if \bounded
	decq	%rdx
	jz	.Lequal_\name
.endif
	incq	%rdi
	incq	%rsi
3:	cmpq	%r10, %rdi
	jb	1b
	/* Go on as if all had begun four vectors before. */
	addq	$-128, %rdi
	addq	$-128, %rsi
.if \bounded
	subq	$-128, %rdx
.endif
	jmp	.Lmore_\name
4:	subl	%ecx, %eax
	RETURN
.if \bounded
.Lvector_\name:
	tzcntl	%eax, %ecx
	cmpq	%rdx, %rcx
	jae	.Lequal_\name
	DIFFERENCE 0
.endif
.endm

/* Of four vectors at rdi: tells whether any stops. Behind it ymm1 to ymm4 are the other string's, ymm5 to ymm8 where it is like the first,
 * ymm9 and ymm11 both of that for the first two, eax where the last two stop if the first two do not. */
#define LIKE(at, vector, like) vmovdqu GX(at, si, di), vector; vpcmpeqb G(at, di), vector, like
.macro FOUR
	LIKE(0, %ymm1, %ymm5)
	LIKE(32, %ymm2, %ymm6)
	LIKE(64, %ymm3, %ymm7)
	LIKE(96, %ymm4, %ymm8)
	vpand	%ymm5, %ymm6, %ymm9
	vpand	%ymm7, %ymm8, %ymm10
	vpminub	%ymm1, %ymm2, %ymm11
	vpminub	%ymm3, %ymm4, %ymm12
	vpand	%ymm9, %ymm10, %ymm10
	vpminub	%ymm11, %ymm12, %ymm12
	vpand	%ymm10, %ymm12, %ymm12
	ZEROES(%ymm12, %eax)
	testl	%eax, %eax
.endm

	.text
FUNCTION(strcmp)
	COMPARE	strcmp, 0
END(strcmp)

FUNCTION(strncmp)
	COMPARE	strncmp, 1
END(strncmp)
#undef LOOK

/* Where the end is in a vector, if it is: bits in ecx. */
#define ENDS(vector) vpcmpeqb vector, %ymm0, %ymm5; vpmovmskb %ymm5, %ecx
/* rax is what strcpy returns. stpcpy returns where the end is: `at`. */
.macro RESULT ends, at:vararg
.if \ends
	leaq	\at, %rax
.endif
	RETURN
.endm
/* The end is rcx behind `place`, in the vector there. What is left over goes by a vector that ends with it. */
.macro LAST place, ends
	vmovdqu	GX(\place - 31, si, cx), %ymm5
	vmovdqu	%ymm5, GX(\place - 31, di, cx)
	RESULT	\ends, \place(%rdi,%rcx)
.endm
/* Loads the next four, tells whether the end is in them, and stores those before. */
.macro FOUR_ON next1, next2, next3, next4, last1, last2, last3, last4
	vmovdqa	G(128, si), \next1
	vmovdqa	G(160, si), \next2
	vmovdqa	G(192, si), \next3
	vmovdqa	G(224, si), \next4
	vpminub	\next1, \next2, %ymm5
	vpminub	\next3, \next4, %ymm6
	HOLDX(0, si, dx)
	vmovdqu	\last1, H(0)
	vmovdqu	\last2, H(32)
	vmovdqu	\last3, H(64)
	vmovdqu	\last4, H(96)
	vpminub	%ymm5, %ymm6, %ymm6
	ZEROES(%ymm6, %ecx)
	subq	$-128, %rsi
	testl	%ecx, %ecx
.endm
.macro COPY name, ends
	movl	%esi, %ecx
	movq	%rdi, %rax
	andl	$4095, %ecx
	cmpl	$4096 - 128, %ecx
	ja	.Ledge_\name
	vpxor	%xmm0, %xmm0, %xmm0
	vmovdqu	G(0, si), %ymm1
	ENDS(%ymm1)
	testl	%ecx, %ecx
	jnz	.Lshort_\name
	vmovdqu	G(32, si), %ymm2
	ENDS(%ymm2)
	testl	%ecx, %ecx
	jnz	.Ltwo_\name
	vmovdqu	G(64, si), %ymm3
	ENDS(%ymm3)
	HOLD(di)
	STORE_TWO(1, 2)
	testl	%ecx, %ecx
	jnz	.Lthree_\name
	vmovdqu	G(96, si), %ymm4
	ENDS(%ymm4)
	vmovdqu	%ymm3, G(64, di)
	testl	%ecx, %ecx
	jnz	.Lfour_\name
	vmovdqu	%ymm4, G(96, di)
	/* rdx: from the source to the target. */
	movq	%rdi, %rdx
	subq	%rsi, %rdx
	andq	$-128, %rsi
	subq	$-128, %rsi
.Lblocks_\name:
	/* From a boundary of four. The 128 bytes before have been copied. Four are loaded before those in front of them are stored: where
	 * source and target are as far from their pages' begins, or nearly, processors take the loads for ones of what was just stored. */
	vmovdqa	G(0, si), %ymm1
	vmovdqa	G(32, si), %ymm2
	vmovdqa	G(64, si), %ymm3
	vmovdqa	G(96, si), %ymm4
	vpminub	%ymm1, %ymm2, %ymm5
	vpminub	%ymm3, %ymm4, %ymm6
	vpminub	%ymm5, %ymm6, %ymm6
	ZEROES(%ymm6, %ecx)
	testl	%ecx, %ecx
	jnz	2f
	.p2align 6
1:
	FOUR_ON	%ymm7, %ymm8, %ymm9, %ymm10, %ymm1, %ymm2, %ymm3, %ymm4
	jnz	5f
	FOUR_ON	%ymm1, %ymm2, %ymm3, %ymm4, %ymm7, %ymm8, %ymm9, %ymm10
	jz	1b
	jmp	2f
5:	vmovdqa	%ymm7, %ymm1
	vmovdqa	%ymm9, %ymm3
2:	/* By vectors that end with the string. */
	leaq	(%rsi,%rdx), %rdi
	ZEROES(%ymm1, %edx)
	ZEROES(%ymm5, %r8d)
	shlq	$32, %r8
	orq	%r8, %rdx
	jnz	3f
	ZEROES(%ymm3, %edx)
	shlq	$32, %rcx
	orq	%rcx, %rdx
	addq	$64, %rsi
	addq	$64, %rdi
	tzcntq	%rdx, %rcx
	HOLDX(-127, si, cx)
	LOAD_TWO(1, 2)
	HOLDX(-127, di, cx)
	STORE_TWO(1, 2)
	jmp	4f
3:	tzcntq	%rdx, %rcx
4:	HOLDX(-63, si, cx)
	LOAD_TWO(1, 2)
	HOLDX(-63, di, cx)
	STORE_TWO(1, 2)
	RESULT	\ends, (%rdi,%rcx)

	.p2align 4, 0xcc
.Ltwo_\name:
	tzcntl	%ecx, %ecx
	vmovdqu	%ymm1, G(0, di)
	LAST	32, \ends
	.p2align 4, 0xcc
.Lthree_\name:
	tzcntl	%ecx, %ecx
	LAST	64, \ends
	.p2align 4, 0xcc
.Lfour_\name:
	tzcntl	%ecx, %ecx
	LAST	96, \ends
	.p2align 4, 0xcc
.Lshort_\name:
	/* Up to a vector, from rsi to rdi. */
	tzcntl	%ecx, %ecx
	cmpl	$15, %ecx
	jb	1f
	vmovdqu	G(0, si), %xmm1
	vmovdqu	GX(-15, si, cx), %xmm2
	vmovdqu	%xmm1, G(0, di)
	vmovdqu	%xmm2, GX(-15, di, cx)
	RESULT	\ends, (%rdi,%rcx)
1:	cmpl	$7, %ecx
	jb	2f
	movq	G(0, si), %r8
	movq	GX(-7, si, cx), %r9
	movq	%r8, G(0, di)
	movq	%r9, GX(-7, di, cx)
	RESULT	\ends, (%rdi,%rcx)
2:	cmpl	$3, %ecx
	jb	3f
	movl	G(0, si), %r8d
	movl	GX(-3, si, cx), %r9d
	movl	%r8d, G(0, di)
	movl	%r9d, GX(-3, di, cx)
	RESULT	\ends, (%rdi,%rcx)
3:	testl	%ecx, %ecx
	jz	4f
	movzwl	G(0, si), %r8d
	movw	%r8w, G(0, di)
4:	movb	$0, GX(0, di, cx)
	RESULT	\ends, (%rdi,%rcx)

	.p2align 4, 0xcc
.Ledge_\name:
	vpxor	%xmm0, %xmm0, %xmm0
	/* To a boundary of four that has four before it: bytes to the first vector, then vectors. */
	leaq	255(%rsi), %r10
	andq	$-128, %r10
	jmp	6f
9:	movzbl	G(0, si), %ecx
	movb	%cl, G(0, di)
	testl	%ecx, %ecx
	jz	8f
	incq	%rsi
	incq	%rdi
6:	testb	$31, %sil
	jnz	9b
7:	vmovdqa	G(0, si), %ymm1
	ENDS(%ymm1)
	testl	%ecx, %ecx
	jnz	.Lshort_\name
	vmovdqu	%ymm1, G(0, di)
	addq	$32, %rsi
	addq	$32, %rdi
	cmpq	%r10, %rsi
	jb	7b
	movq	%rdi, %rdx
	subq	%rsi, %rdx
	jmp	.Lblocks_\name
8:	RESULT	\ends, (%rdi)
.endm

FUNCTION(strcpy)
	COPY	strcpy, 0
END(strcpy)

FUNCTION(stpcpy)
	COPY	stpcpy, 1
	/* The last function ends here, whatever follows in the file. */
	int3
END(stpcpy)

	ALSO(__stpcpy, stpcpy)
	.section .note.GNU-stack, "", @progbits
