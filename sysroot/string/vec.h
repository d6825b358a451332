/* What the memory and string functions share: vectors of RF_VEC bytes, and the choice between them.
 *
 * Every *_vec.c is compiled twice, with RF_VEC=16 (SSE2, any processor) and RF_VEC=32 (AVX2); which one runs is decided
 * by words of the window's header page. GNU C, because inline vectors are. */
#ifndef RF_VEC_H
#define RF_VEC_H

#include <stddef.h>
#include <stdint.h>

typedef uint16_t u16u __attribute__((aligned(1), may_alias));
typedef uint32_t u32u __attribute__((aligned(1), may_alias));
typedef uint64_t u64u __attribute__((aligned(1), may_alias));
typedef char v16 __attribute__((vector_size(16), may_alias));
typedef char v16u __attribute__((vector_size(16), aligned(1), may_alias));
typedef char v32 __attribute__((vector_size(32), may_alias));
typedef char v32u __attribute__((vector_size(32), aligned(1), may_alias));

#ifdef RF_VEC
#if RF_VEC == 32
typedef v32 vec;
typedef v32u vecu;
#define MASK(v) ((uint32_t)__builtin_ia32_pmovmskb256((v32)(v)))
#define MIN(a, b) ((vec)__builtin_ia32_pminub256((v32)(a), (v32)(b)))
#define ALL 0xFFFFFFFFu
#else
typedef v16 vec;
typedef v16u vecu;
#define MASK(v) ((uint32_t)__builtin_ia32_pmovmskb128((v16)(v)))
#define MIN(a, b) ((vec)__builtin_ia32_pminub128((v16)(a), (v16)(b)))
#define ALL 0xFFFFu
#endif
#define V ((size_t)RF_VEC)
#define LOAD(p) (*(const vec *)(p))
#define LOADU(p) ((vec) * (const vecu *)(p))
#define STORE(p, v) (*(vec *)(p) = (v))
#define STOREU(p, v) (*(vecu *)(p) = (vecu)(v))
#define ZERO ((vec){0})
static inline vec splat(int c)
{
#if RF_VEC == 32
	/* Volatile: not before it is known that there is AVX2, even if both branches of a condition need it. */
	vec v;
	__asm__ volatile("vmovd %1, %x0\n\tvpbroadcastb %x0, %0" : "=x"(v) : "r"(c));
	return v;
#else
	return (vec){0} + (char)c;
#endif
}
/* The same for zeroes. */
static inline vec zeroes(void)
{
#if RF_VEC == 32
	vec v;
	__asm__ volatile("vpxor %x0, %x0, %x0" : "=x"(v));
	return v;
#else
	return ZERO;
#endif
}
/* In a register from here on: the compiler would rather load a value twice than keep it. */
static inline vec keep(vec v)
{
	__asm__("" : "+x"(v));
	return v;
}
#endif

#define HIDDEN __attribute__((visibility("hidden")))
/* A program may define any of these functions itself; those in the same object are its then, too. */
#define WEAK __attribute__((weak))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* The header page: isa::window::HEADER_FEATURES, isa::window::feature, HEADER_VECTOR_ROOM, HEADER_VECTOR_SIZES. Addresses of a
 * domain are taken modulo 4 GiB, so that the offset in the window is an address as it stands. */
#define RF_FEATURE_AVX2 (1u << 3)
#define RF_FEATURE_ERMS (1u << 10)
#ifdef RF_HEADER_SYMBOL /* unfenced, for tests */
extern uint64_t RF_HEADER_SYMBOL[];
#define RF_HEADER(type, offset) (*(const type *)((const char *)RF_HEADER_SYMBOL + (offset)))
#else
#define RF_HEADER(type, offset) (*(const type *)(uintptr_t)(0x10000 + (offset)))
#endif
typedef uint32_t header32 __attribute__((may_alias));
typedef uint64_t header64 __attribute__((may_alias));
#define RF_FEATURES RF_HEADER(header32, 12)

/* Which variant runs is decided without an instruction of its own: the AVX2 build, which has the public names, asks whether
 * one or four vectors at p stay within a page, or whether n is at most 2, 4 or 8 vectors, by comparing with words of
 * the header page, and no answer is yes where the processor has no AVX2. So nothing but a no has to look at the feature
 * word: OTHERWISE goes on in the SSE2 build's function then. */
#define BODY static inline __attribute__((always_inline))
#if RF_VEC == 32
#define FITS(p) LIKELY(((uint32_t)(uintptr_t)(p) & 4095) < RF_HEADER(header32, 0x20))
#define FITS4(p) LIKELY(((uint32_t)(uintptr_t)(p) & 4095) < RF_HEADER(header32, 0x24))
#define FITS4_BOTH(p, q) LIKELY((((uint32_t)(uintptr_t)(p) | (uint32_t)(uintptr_t)(q)) & 4095) < RF_HEADER(header32, 0x24))
#define UP_TO_2V(n) ((n) <= RF_HEADER(header64, 0x28))
#define UP_TO_4V(n) ((n) <= RF_HEADER(header64, 0x30))
#define UP_TO_8V(n) ((n) <= RF_HEADER(header64, 0x38))
#define VARIANT(ret, name, params)                                                                           \
	ret __rf_##name##_sse2 params HIDDEN;                                                                \
	WEAK ret name params
#define OTHERWISE(name, args)                                                                                \
	if (UNLIKELY(!(RF_FEATURES & RF_FEATURE_AVX2)))                                                      \
		return __rf_##name##_sse2 args;
#elif defined RF_VEC
#define FITS(p) LIKELY(((uintptr_t)(p) & 4095) <= 4096 - V)
#define FITS4(p) LIKELY(((uintptr_t)(p) & 4095) <= 4096 - 4 * V)
#define FITS4_BOTH(p, q) LIKELY((((uintptr_t)(p) | (uintptr_t)(q)) & 4095) <= 4096 - 4 * V)
#define UP_TO_2V(n) ((n) <= 2 * V)
#define UP_TO_4V(n) ((n) <= 4 * V)
#define UP_TO_8V(n) ((n) <= 8 * V)
#define VARIANT(ret, name, params)                                                                           \
	ret __rf_##name##_sse2 params HIDDEN;                                                                \
	ret __rf_##name##_sse2 params
#define OTHERWISE(name, args)
#endif

#endif
