/* In place of zstd's common/cpu.h, which asks the processor: a plain x86-64, for the builds that ask at all. */
#ifndef RF_ZSTD_CPU_SHIM_H
#define RF_ZSTD_CPU_SHIM_H
typedef struct {
	int nothing;
} ZSTD_cpuid_t;
static inline ZSTD_cpuid_t ZSTD_cpuid(void) { return (ZSTD_cpuid_t){0}; }
static inline int ZSTD_cpuid_bmi1(ZSTD_cpuid_t c) { return c.nothing; }
static inline int ZSTD_cpuid_bmi2(ZSTD_cpuid_t c) { return c.nothing; }
#endif
