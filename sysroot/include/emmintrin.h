/* gcc's header of that name, with the one SSE2 instruction whose address is implicit, and so refused, spelt out. */
#ifndef RF_EMMINTRIN_H
#define RF_EMMINTRIN_H

#include_next <emmintrin.h>

static __inline void __rf_maskmove(__m128i data, __m128i mask, char *to)
{
	unsigned bits = (unsigned)_mm_movemask_epi8(mask);
	union {
		__m128i v;
		char b[16];
	} u = {data};
	for (; bits; bits &= bits - 1)
		to[__builtin_ctz(bits)] = u.b[__builtin_ctz(bits)];
}
#define _mm_maskmoveu_si128(data, mask, to) __rf_maskmove(data, mask, to)

#endif
