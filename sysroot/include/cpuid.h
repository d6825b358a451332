/* gcc's header of that name, with the window's header page for an answer: fenced code cannot ask the processor. */
#ifndef RF_CPUID_H
#define RF_CPUID_H

#include_next <cpuid.h>

static inline void __rf_cpuid(unsigned leaf, unsigned sub, unsigned *a, unsigned *b, unsigned *c, unsigned *d)
{
	/* isa::window::HEADER_FEATURES and isa::window::feature */
	const unsigned f = *(const volatile unsigned *)0x1000C;
#define RF_HAS(bit, mask) ((f >> (bit) & 1) ? (unsigned)(mask) : 0u)
	*a = *b = *c = *d = 0;
	if (leaf == 0) {
		*a = 7;
		*b = 0x676E6952; /* "RingfenceDom" */
		*d = 0x636E6566;
		*c = 0x6D6F4465;
	} else if (leaf == 1) {
		*d = bit_SSE | bit_SSE2 | bit_CMOV | bit_CMPXCHG8B;
		*c = RF_HAS(0, bit_SSE3 | bit_SSSE3) | RF_HAS(1, bit_SSE4_1 | bit_SSE4_2 | bit_POPCNT) | RF_HAS(2, bit_AVX | bit_XSAVE | bit_OSXSAVE) |
		     RF_HAS(4, bit_FMA) | RF_HAS(6, bit_MOVBE) | RF_HAS(7, bit_F16C) | RF_HAS(8, bit_AES | bit_PCLMUL) | bit_CMPXCHG16B;
	} else if (leaf == 7 && sub == 0) {
		*b = RF_HAS(3, bit_AVX2) | RF_HAS(5, bit_BMI | bit_BMI2) | RF_HAS(9, bit_SHA) | RF_HAS(10, 1u << 9) | RF_HAS(11, bit_ADX);
	} else if (leaf == 0x80000000u) {
		*a = 0x80000001u;
	} else if (leaf == 0x80000001u) {
		*c = RF_HAS(5, bit_LZCNT) | bit_LAHF_LM;
		*d = bit_LM;
	}
#undef RF_HAS
}

static inline unsigned __rf_get_cpuid_max(unsigned base, unsigned *signature)
{
	if (signature)
		*signature = 0x676E6952;
	return base ? 0x80000001u : 7;
}

static inline int __rf_get_cpuid_count(unsigned leaf, unsigned sub, unsigned *a, unsigned *b, unsigned *c, unsigned *d)
{
	if (leaf > __rf_get_cpuid_max(leaf & 0x80000000u, 0))
		return 0;
	__rf_cpuid(leaf, sub, a, b, c, d);
	return 1;
}

#undef __cpuid
#undef __cpuid_count
#define __cpuid(leaf, a, b, c, d) __rf_cpuid(leaf, 0, (unsigned *)&(a), (unsigned *)&(b), (unsigned *)&(c), (unsigned *)&(d))
#define __cpuid_count(leaf, sub, a, b, c, d)                                                                  \
	__rf_cpuid(leaf, sub, (unsigned *)&(a), (unsigned *)&(b), (unsigned *)&(c), (unsigned *)&(d))
#define __get_cpuid_max __rf_get_cpuid_max
#define __get_cpuid_count __rf_get_cpuid_count
#define __get_cpuid(leaf, a, b, c, d) __rf_get_cpuid_count(leaf, 0, a, b, c, d)

#endif
