/* strlen, strchr, strrchr, memchr and their kin with vectors of 32 bytes, confined by hand (confined.h). The first vector is loaded
 * where it is, if it stays in its page, then four aligned ones are looked at one by one, then four at a time: from a boundary of four
 * they are in one page, so whatever is in the first of them may be loaded with the others. Which of four it was two words of 64
 * bits tell, a bit for each byte: tests that are guessed wrong are dearer. */
#include "confined.h"

/* Whether the vector at rdi stays in its page. */
#define FITS movl %edi, %eax; andl $4095, %eax; cmpl $4096 - 32, %eax
/* The bits of what comes before rdi in its aligned vector go. */
#define FROM_RDI(bits) movl %edi, %ecx; shrl %cl, bits; testl bits, bits
/* `low` with 32 bits above it; tells whether any is set. */
#define JOIN(high, low) shlq $32, high; orq high, low
/* In front of the loop: rdi is aligned to one vector, and the five from it on have been looked at. The first loop turn adds 128. */
#define BEFORE_FOUR addq $32, %rdi; andq $-128, %rdi
#define NEXT_FOUR subq $-128, %rdi

	.text
FUNCTION(strlen)
	FITS
	ja	.Llen_edge
	vpxor	%xmm0, %xmm0, %xmm0
	vpcmpeqb G(0, di), %ymm0, %ymm1
	vpmovmskb %ymm1, %eax
	testl	%eax, %eax
	jz	.Llen_more
	tzcntl	%eax, %eax
	RETURN
	.p2align 4, 0xcc
.Llen_edge:
	vpxor	%xmm0, %xmm0, %xmm0
	movq	%rdi, %rsi
	andq	$-32, %rsi
	vpcmpeqb G(0, si), %ymm0, %ymm1
	vpmovmskb %ymm1, %eax
	FROM_RDI(%eax)
	jz	.Llen_more
	tzcntl	%eax, %eax
	RETURN
	.p2align 4, 0xcc
.Llen_more:
	movq	%rdi, %rdx
	andq	$-32, %rdi
	vpcmpeqb G(32, di), %ymm0, %ymm1
	vpmovmskb %ymm1, %eax
	testl	%eax, %eax
	jnz	.Llen_at_32
	vpcmpeqb G(64, di), %ymm0, %ymm1
	vpmovmskb %ymm1, %eax
	testl	%eax, %eax
	jnz	.Llen_at_64
	vpcmpeqb G(96, di), %ymm0, %ymm1
	vpmovmskb %ymm1, %eax
	testl	%eax, %eax
	jnz	.Llen_at_96
	vpcmpeqb G(128, di), %ymm0, %ymm1
	vpmovmskb %ymm1, %eax
	testl	%eax, %eax
	jnz	.Llen_at_128
	BEFORE_FOUR
	.p2align 6
1:
	NEXT_FOUR
	vmovdqa	G(0, di), %ymm1
	vpminub	G(32, di), %ymm1, %ymm2
	vmovdqa	G(64, di), %ymm3
	vpminub	G(96, di), %ymm3, %ymm4
	vpminub	%ymm2, %ymm4, %ymm4
	ZEROES(%ymm4, %ecx)
	testl	%ecx, %ecx
	jz	1b
	subq	%rdx, %rdi
	ZEROES(%ymm1, %eax)
	testl	%eax, %eax
	jnz	2f
	ZEROES(%ymm2, %eax)
	testl	%eax, %eax
	jnz	3f
	ZEROES(%ymm3, %eax)
	JOIN(%rcx, %rax)
	tzcntq	%rax, %rax
	leaq	64(%rdi,%rax), %rax
	RETURN
2:	tzcntl	%eax, %eax
	addq	%rdi, %rax
	RETURN
3:	tzcntl	%eax, %eax
	leaq	32(%rdi,%rax), %rax
	RETURN
#define AT(place)                                                                                            \
	.p2align 4, 0xcc; .Llen_at_##place: tzcntl %eax, %eax; subq %rdx, %rdi; leaq place(%rdi,%rax), %rax; RETURN
	AT(32); AT(64); AT(96); AT(128)
#undef AT
END(strlen)

/* strchr and strchrnul: the character, or the end. A byte is either if it is 0, or is after an exclusive or with the character. */
#define MARK(vector, to) vpxor %ymm1, vector, to; vpminub vector, to, to
#define LOOK(at) vmovdqa G(at, di), %ymm2; MARK(%ymm2, %ymm3); ZEROES(%ymm3, %eax); testl %eax, %eax
.macro FIND name, nul
	FITS
	ja	.Ledge_\name
	SPREAD(1)
	vpxor	%xmm0, %xmm0, %xmm0
	vmovdqu	G(0, di), %ymm2
	MARK(%ymm2, %ymm3)
	ZEROES(%ymm3, %eax)
	testl	%eax, %eax
	jz	.Lmore_\name
	tzcntl	%eax, %eax
	addq	%rdi, %rax
	CHOOSE	\nul
	RETURN
	.p2align 4, 0xcc
.Ledge_\name:
	SPREAD(1)
	vpxor	%xmm0, %xmm0, %xmm0
	movq	%rdi, %rdx
	andq	$-32, %rdx
	vmovdqa	G(0, dx), %ymm2
	MARK(%ymm2, %ymm3)
	ZEROES(%ymm3, %eax)
	FROM_RDI(%eax)
	jz	.Lmore_\name
	tzcntl	%eax, %eax
	addq	%rdi, %rax
	CHOOSE	\nul
	RETURN
	.p2align 4, 0xcc
.Lmore_\name:
	andq	$-32, %rdi
	LOOK(32)
	jnz	.Lat_32_\name
	LOOK(64)
	jnz	.Lat_64_\name
	LOOK(96)
	jnz	.Lat_96_\name
	LOOK(128)
	jnz	.Lat_128_\name
	BEFORE_FOUR
	.p2align 6
1:
	NEXT_FOUR
	vmovdqa	G(0, di), %ymm2
	vmovdqa	G(32, di), %ymm3
	vmovdqa	G(64, di), %ymm4
	vmovdqa	G(96, di), %ymm5
	MARK(%ymm2, %ymm6)
	MARK(%ymm3, %ymm7)
	MARK(%ymm4, %ymm8)
	MARK(%ymm5, %ymm9)
	vpminub	%ymm6, %ymm7, %ymm7
	vpminub	%ymm8, %ymm9, %ymm9
	vpminub	%ymm7, %ymm9, %ymm9
	ZEROES(%ymm9, %ecx)
	testl	%ecx, %ecx
	jz	1b
	ZEROES(%ymm6, %eax)
	testl	%eax, %eax
	jnz	.Lat_0_\name
	ZEROES(%ymm7, %eax)
	testl	%eax, %eax
	jnz	.Lat_32_\name
	ZEROES(%ymm8, %eax)
	JOIN(%rcx, %rax)
	tzcntq	%rax, %rax
	leaq	64(%rdi,%rax), %rax
	CHOOSE	\nul
	RETURN
	FOUND	0, \name, \nul
	FOUND	32, \name, \nul
	FOUND	64, \name, \nul
	FOUND	96, \name, \nul
	FOUND	128, \name, \nul
.endm
.macro FOUND place, name, nul
	.p2align 4, 0xcc
.Lat_\place\()_\name:
	tzcntl	%eax, %eax
	leaq	\place(%rdi,%rax), %rax
	CHOOSE	\nul
	RETURN
.endm
/* Null, unless the character is what stands there. */
.macro CHOOSE nul
.if !\nul
	xorl	%edx, %edx
	cmpb	%sil, G(0, ax)
	cmovneq	%rdx, %rax
.endif
.endm

FUNCTION(strchr)
	FIND	strchr, 0
END(strchr)

FUNCTION(strchrnul)
	FIND	strchrnul, 1
END(strchrnul)
#undef MARK
#undef LOOK

/* The bits of `hits` up to the lowest one of `end`, itself included. */
#define UP_TO(end, hits) blsmsk end, end; and end, hits

FUNCTION(strrchr)
	FITS
	ja	.Lrchr_edge
	SPREAD(1)
	vpxor	%xmm0, %xmm0, %xmm0
	vmovdqu	G(0, di), %ymm2
	vpcmpeqb %ymm1, %ymm2, %ymm3
	vpcmpeqb %ymm0, %ymm2, %ymm2
	vpmovmskb %ymm3, %eax
	vpmovmskb %ymm2, %ecx
	movq	%rdi, %r8
	testl	%ecx, %ecx
	jz	.Lrchr_more
.Lrchr_first:
	UP_TO(%ecx, %eax)
	jz	1f
	HIGHEST_32
	addq	%r8, %rax
1:	RETURN
	.p2align 4, 0xcc
.Lrchr_edge:
	SPREAD(1)
	vpxor	%xmm0, %xmm0, %xmm0
	movq	%rdi, %r8
	movq	%rdi, %rdx
	andq	$-32, %rdx
	vmovdqa	G(0, dx), %ymm2
	vpcmpeqb %ymm1, %ymm2, %ymm3
	vpcmpeqb %ymm0, %ymm2, %ymm2
	vpmovmskb %ymm3, %eax
	vpmovmskb %ymm2, %edx
	movl	%edi, %ecx
	shrl	%cl, %eax
	shrl	%cl, %edx
	movl	%edx, %ecx
	testl	%ecx, %ecx
	jnz	.Lrchr_first
.Lrchr_more:
	/* Of what came before, eax has the last hits, from r8 on. r9 is the last four vectors with any, 0 if there were none. */
	xorl	%r9d, %r9d
	andq	$-32, %rdi
.irp place, 32, 64, 96
	vmovdqa	G(\place, di), %ymm2
	vpcmpeqb %ymm1, %ymm2, %ymm3
	vpcmpeqb %ymm0, %ymm2, %ymm2
	vpmovmskb %ymm3, %edx
	vpmovmskb %ymm2, %ecx
	leaq	\place(%rdi), %rsi
	testl	%ecx, %ecx
	jnz	.Lrchr_single
	testl	%edx, %edx
	cmovnzl	%edx, %eax
	cmovnzq	%rsi, %r8
.endr
	andq	$-128, %rdi
	.p2align 6
1:
	NEXT_FOUR
	vmovdqa	G(0, di), %ymm2
	vmovdqa	G(32, di), %ymm3
	vmovdqa	G(64, di), %ymm4
	vmovdqa	G(96, di), %ymm5
	vpminub	%ymm2, %ymm3, %ymm6
	vpminub	%ymm4, %ymm5, %ymm7
	vpminub	%ymm6, %ymm7, %ymm7
	ZEROES(%ymm7, %ecx)
	testl	%ecx, %ecx
	jnz	2f
	vpcmpeqb %ymm1, %ymm2, %ymm2
	vpcmpeqb %ymm1, %ymm3, %ymm3
	vpcmpeqb %ymm1, %ymm4, %ymm4
	vpcmpeqb %ymm1, %ymm5, %ymm5
	vpor	%ymm2, %ymm3, %ymm3
	vpor	%ymm4, %ymm5, %ymm5
	vpor	%ymm3, %ymm5, %ymm5
	vpmovmskb %ymm5, %edx
	testl	%edx, %edx
	cmovnzq	%rdi, %r9
	jmp	1b
2:	/* The end is in one of these. */
	ZEROES(%ymm6, %esi)
	testl	%esi, %esi
	jnz	3f
	/* In the third or the fourth. */
	vpcmpeqb %ymm1, %ymm4, %ymm8
	vpcmpeqb %ymm1, %ymm5, %ymm9
	vpmovmskb %ymm8, %esi
	vpmovmskb %ymm9, %r11d
	shlq	$32, %r11
	orq	%r11, %rsi
	ZEROES(%ymm4, %r10d)
	JOIN(%rcx, %r10)
	UP_TO(%r10, %rsi)
	jz	4f
	lzcntq	%rsi, %rax
	xorl	$63, %eax
	leaq	64(%rdi,%rax), %rax
	RETURN
	.p2align 4, 0xcc
3:	vpcmpeqb %ymm0, %ymm2, %ymm8
	vpmovmskb %ymm8, %r10d
	JOIN(%rsi, %r10)
	blsmsk	%r10, %r10
	jmp	6f
4:	movq	$-1, %r10
6:	vpcmpeqb %ymm1, %ymm2, %ymm2
	vpcmpeqb %ymm1, %ymm3, %ymm3
	vpmovmskb %ymm2, %edx
	vpmovmskb %ymm3, %r11d
	JOIN(%r11, %rdx)
	andq	%r10, %rdx
	jz	5f
	lzcntq	%rdx, %rax
	xorl	$63, %eax
	addq	%rdi, %rax
	RETURN
5:	testq	%r9, %r9
	jz	.Lrchr_before
	movq	%r9, %rdi
	vpcmpeqb G(64, di), %ymm1, %ymm2
	vpcmpeqb G(96, di), %ymm1, %ymm3
	vpmovmskb %ymm2, %eax
	vpmovmskb %ymm3, %ecx
	addq	$64, %rdi
	JOIN(%rcx, %rax)
	jnz	7f
	subq	$64, %rdi
	vpcmpeqb G(0, di), %ymm1, %ymm2
	vpcmpeqb G(32, di), %ymm1, %ymm3
	vpmovmskb %ymm2, %eax
	vpmovmskb %ymm3, %ecx
	JOIN(%rcx, %rax)
7:	HIGHEST_64
	addq	%rdi, %rax
	RETURN
	.p2align 4, 0xcc
.Lrchr_single:
	UP_TO(%ecx, %edx)
	cmovnzl	%edx, %eax
	cmovnzq	%rsi, %r8
.Lrchr_before:
	testl	%eax, %eax
	jz	1f
	HIGHEST_32
	addq	%r8, %rax
1:	RETURN
END(strrchr)

/* One vector's bits in eax, those of the character that ymm1 is full of. */
#define BYTES(operand, to) vpcmpeqb operand, %ymm1, %ymm2; vpmovmskb %ymm2, to
#define LOOK(operand) BYTES(operand, %eax); testl %eax, %eax

/* What eax says was found `place` behind rdi, or null if that is not within the size. */
.macro WITHIN place
	tzcntl	%eax, %eax
	leaq	\place(%rdi,%rax), %rcx
.if \place
	addl	$\place, %eax
.endif
	cmpq	%rdx, %rax
	movl	$0, %eax
	cmovbq	%rcx, %rax
	RETURN
.endm

FUNCTION(memchr)
	testq	%rdx, %rdx
	jz	.Lmchr_empty
	FITS
	ja	.Lmchr_edge
	SPREAD(1)
	LOOK(G(0, di))
	jz	.Lmchr_beyond
.Lmchr_first:
	WITHIN	0
	.p2align 4, 0xcc
.Lmchr_beyond:
	cmpq	$32, %rdx
	jbe	.Lmchr_none
.Lmchr_more:
	/* From here on rdx counts from the next aligned vector. */
	movl	%edi, %eax
	orl	$-32, %eax
	negl	%eax
	addq	%rax, %rdi
	subq	%rax, %rdx
	jbe	.Lmchr_none
	cmpq	$128, %rdx
	jbe	.Lmchr_few
	/* What is found in these four is within the size. */
	LOOK(G(0, di))
	jnz	.Lmchr_at_0
	LOOK(G(32, di))
	jnz	.Lmchr_at_32
	LOOK(G(64, di))
	jnz	.Lmchr_at_64
	LOOK(G(96, di))
	jnz	.Lmchr_at_96
	NEXT_FOUR
	addq	$-128, %rdx
	cmpq	$128, %rdx
	jbe	.Lmchr_few
	/* To the boundary before, and rdx from the end of the first four on. */
	leaq	-128(%rdx,%rdi), %rdx
	andq	$-128, %rdi
	subq	%rdi, %rdx
	.p2align 6
1:
	vpcmpeqb G(0, di), %ymm1, %ymm2
	vpcmpeqb G(32, di), %ymm1, %ymm3
	vpcmpeqb G(64, di), %ymm1, %ymm4
	vpcmpeqb G(96, di), %ymm1, %ymm5
	vpor	%ymm2, %ymm3, %ymm3
	vpor	%ymm4, %ymm5, %ymm5
	vpor	%ymm3, %ymm5, %ymm5
	vpmovmskb %ymm5, %ecx
	testl	%ecx, %ecx
	jnz	2f
	NEXT_FOUR
	addq	$-128, %rdx
	jc	1b
	subq	$-128, %rdx
	jz	.Lmchr_none
.Lmchr_few:
	/* A vector is loaded if one byte of it is wanted. */
.irp place, 0, 32, 64
	LOOK(G(\place, di))
	jnz	.Lmchr_few_\place
	cmpl	$\place + 32, %edx
	jbe	.Lmchr_none
.endr
	LOOK(G(96, di))
	jnz	.Lmchr_few_96
.Lmchr_none:
	vzeroupper
.Lmchr_empty:
	xorl	%eax, %eax
	ret
	.p2align 4, 0xcc
2:	vpmovmskb %ymm2, %eax
	testl	%eax, %eax
	jnz	.Lmchr_at_0
	vpmovmskb %ymm3, %eax
	testl	%eax, %eax
	jnz	.Lmchr_at_32
	vpmovmskb %ymm4, %eax
	JOIN(%rcx, %rax)
	tzcntq	%rax, %rax
	leaq	64(%rdi,%rax), %rax
	RETURN
.irp place, 0, 32, 64, 96
	.p2align 4, 0xcc
.Lmchr_few_\place:
	WITHIN	\place
.endr
.irp place, 0, 32, 64, 96
	.p2align 4, 0xcc
.Lmchr_at_\place:
	tzcntl	%eax, %eax
	leaq	\place(%rdi,%rax), %rax
	RETURN
.endr
	.p2align 4, 0xcc
.Lmchr_edge:
	SPREAD(1)
	movq	%rdi, %rsi
	andq	$-32, %rsi
	LOOK(G(0, si))
	FROM_RDI(%eax)
	jnz	.Lmchr_first
	jmp	.Lmchr_more
END(memchr)

FUNCTION(memrchr)
	testq	%rdx, %rdx
	jz	.Lmrchr_empty
	SPREAD(1)
	jmp	2f
	.p2align 6
1:	/* rdx is at least 128. */
	vpcmpeqb GX(-128, di, dx), %ymm1, %ymm2
	vpcmpeqb GX(-96, di, dx), %ymm1, %ymm3
	vpcmpeqb GX(-64, di, dx), %ymm1, %ymm4
	vpcmpeqb GX(-32, di, dx), %ymm1, %ymm5
	vpor	%ymm2, %ymm3, %ymm6
	vpor	%ymm4, %ymm5, %ymm7
	vpor	%ymm6, %ymm7, %ymm7
	vpmovmskb %ymm7, %eax
	testl	%eax, %eax
	jnz	.Lmrchr_four
	addq	$-128, %rdx
2:	cmpq	$128, %rdx
	jae	1b
	cmpl	$32, %edx
	jb	4f
3:	LOOK(GX(-32, di, dx))
	jnz	.Lmrchr_one
	subl	$32, %edx
	cmpl	$32, %edx
	jae	3b
4:	testl	%edx, %edx
	jz	.Lmrchr_none
	/* Less than a vector, by one that begins with it or one that ends with it: one of the two stays in its page. */
	movl	%edi, %eax
	andl	$4095, %eax
	cmpl	$4096 - 32, %eax
	ja	5f
	BYTES(G(0, di), %eax)
	bzhi	%edx, %eax, %eax
	jmp	6f
5:	BYTES(GX(-32, di, dx), %eax)
	movl	$32, %ecx
	subl	%edx, %ecx
	shrl	%cl, %eax
6:	testl	%eax, %eax
	jz	.Lmrchr_none
	HIGHEST_32
	addq	%rdi, %rax
	RETURN
.Lmrchr_none:
	vzeroupper
.Lmrchr_empty:
	xorl	%eax, %eax
	ret
.Lmrchr_one:
	HIGHEST_32
	addq	%rdx, %rdi
	leaq	-32(%rdi,%rax), %rax
	RETURN
.Lmrchr_four:
	addq	%rdx, %rdi
	vpmovmskb %ymm4, %eax
	vpmovmskb %ymm5, %ecx
	JOIN(%rcx, %rax)
	jnz	1f
	addq	$-64, %rdi
	vpmovmskb %ymm2, %eax
	vpmovmskb %ymm3, %ecx
	JOIN(%rcx, %rax)
1:	HIGHEST_64
	leaq	-64(%rdi,%rax), %rax
	RETURN
END(memrchr)

FUNCTION(rawmemchr)
	SPREAD(1)
	movq	%rdi, %rsi
	andq	$-32, %rsi
	LOOK(G(0, si))
	FROM_RDI(%eax)
	jnz	2f
	.p2align 6
1:	addq	$32, %rsi
	LOOK(G(0, si))
	jz	1b
	movq	%rsi, %rdi
2:	tzcntl	%eax, %eax
	addq	%rdi, %rax
	RETURN
	/* The last function ends here, whatever follows in the file. */
	int3
END(rawmemchr)

	ALSO(__strchrnul, strchrnul)
	ALSO(index, strchr)
	ALSO(rindex, strrchr)
	ALSO(__memrchr, memrchr)
	.section .note.GNU-stack, "", @progbits
