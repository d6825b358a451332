/* For functions with vectors of 32 bytes that are confined by hand: what a compiler makes of the same in C stores through gs, once a
 * cycle, keeps less in registers and jumps to a common end. Accesses follow docs/verifier.md, rule 1: loads go through gs, groups of
 * stores through r14 and r11.
 *
 * With RF_HEADER_SYMBOL the same unfenced, for tests. */
#ifndef RF_CONFINED_H
#define RF_CONFINED_H

#ifdef RF_HEADER_SYMBOL
#define HEADER(offset) RF_HEADER_SYMBOL+offset(%rip)
#define ABSOLUTE
#define G(at, base) at(%r##base)
#define GX(at, base, index) at(%r##base,%r##index)
#define HOLD(base) movq %r##base, %r11
#define HOLDX(at, base, index) leaq at(%r##base,%r##index), %r11
#define H(at) at(%r11)
#define REBUILD(base)
#define MARKER
#else
#define HEADER(offset) %gs:0x10000+offset
#define ABSOLUTE addr32
#define G(at, base) %gs:at(%e##base)
#define GX(at, base, index) %gs:at(%e##base,%e##index)
#define HOLD(base) movl %e##base, %r11d
#define HOLDX(at, base, index) leal at(%r##base,%r##index), %r11d
#ifdef RF_SEGMENT
#define H(at) %gs:at(%r11d)
#else
#define H(at) at(%r14,%r11)
#endif
#define REBUILD(base) movl %e##base, %e##base; leaq (%r14,%r##base), %r##base
#define MARKER nopl 0x629affff(%rax,%rax,1)
#endif

/* isa::window::HEADER_FEATURES by bytes. */
#define HAS_ERMS $1 << 2, HEADER(13)

/* A program may define any of these functions itself. */
#define FUNCTION(name)                                                                                       \
	.weak name; .type name, @function; .p2align 6, 0xcc; name: .cfi_startproc; MARKER
#define END(name) .cfi_endproc; .size name, .-name
#define ALSO(other, name) .weak other; .set other, name

/* Returns with the upper halves as other code expects them. */
#define RETURN vzeroupper; ret

/* A bit for each byte of a vector that is 0; ymm0 is. The vector is ruined. */
#define ZEROES(vector, to) vpcmpeqb %ymm0, vector, vector; vpmovmskb vector, to

/* A vector full of the byte in esi. */
#define SPREAD(n) vmovd %esi, %xmm##n; vpbroadcastb %xmm##n, %ymm##n

/* Vectors that lie behind each other, from what is held on; the stores by `move`, aligned or not. */
#define LOAD_TWO(a, b) vmovdqu H(0), %ymm##a; vmovdqu H(32), %ymm##b
#define STORE_TWO(a, b) vmovdqu %ymm##a, H(0); vmovdqu %ymm##b, H(32)
#define LOAD_FOUR(a, b, c, d)                                                                                \
	LOAD_TWO(a, b); vmovdqu H(64), %ymm##c; vmovdqu H(96), %ymm##d
#define STORE_FOUR(move, a, b, c, d)                                                                         \
	move %ymm##a, H(0); move %ymm##b, H(32); move %ymm##c, H(64); move %ymm##d, H(96)

/* The number of the highest bit of eax, rax. */
#define HIGHEST_32 lzcntl %eax, %eax; xorl $31, %eax
#define HIGHEST_64 lzcntq %rax, %rax; xorl $63, %eax

/* What eax is when one byte is subtracted from another. */
#define SUBTRACT(byte, from) movzbl byte, %ecx; movzbl from, %eax; subl %ecx, %eax

#endif
