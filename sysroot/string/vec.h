/* What the memory and string functions share: vectors of RF_VEC bytes, and the choice between them.
 *
 * Every *_vec.c is compiled twice, with RF_VEC=16 (SSE2, any processor) and RF_VEC=32 (AVX2); which one runs is decided
 * by the feature word of the window's header page. GNU C, because inline vectors are. */
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
static inline vec splat(int c) { return (vec){0} + (char)c; }
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

/* An access of n bytes at p stays within one page. */
#define WITHIN_PAGE(p, n) (((uintptr_t)(p) & 4095) <= 4096 - (n))

/* The header page's feature word: isa::window::HEADER_FEATURES and isa::window::feature. Addresses of a
 * domain are taken modulo 4 GiB, so that the offset in the window is an address as it stands. */
#define RF_FEATURE_AVX2 (1u << 3)
#define RF_FEATURE_ERMS (1u << 10)
#ifdef RF_FEATURES_SYMBOL /* unfenced, for tests */
extern uint32_t RF_FEATURES_SYMBOL;
#define RF_FEATURES RF_FEATURES_SYMBOL
#else
#define RF_FEATURES (*(const uint32_t *)0x1000C)
#endif

/* A function is written once, as NAME_body. The AVX2 build gives it its public name and goes to the SSE2 build's where
 * the processor has no AVX2: the usual case then has no jump. */
#define BODY static inline __attribute__((always_inline))
#if !defined RF_VEC || RF_VEC == 32
#define ENTRY(ret, name, params, args) ENTRY_AFTER(, ret, name, params, args)
/* What comes first has to run on any processor. */
#define ENTRY_AFTER(first, ret, name, params, args)                                                          \
	ret __rf_##name##_sse2 params HIDDEN;                                                                \
	WEAK ret name params                                                                                 \
	{                                                                                                    \
		first                                                                                        \
		if (UNLIKELY(!(RF_FEATURES & RF_FEATURE_AVX2)))                                              \
			return __rf_##name##_sse2 args;                                                      \
		return name##_body args;                                                                     \
	}
#else
#define ENTRY_AFTER(first, ret, name, params, args) ENTRY(ret, name, params, args)
#define ENTRY(ret, name, params, args)                                                                       \
	ret __rf_##name##_sse2 params HIDDEN;                                                                \
	ret __rf_##name##_sse2 params { return name##_body args; }
#endif

#endif
