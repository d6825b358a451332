/* What the functions in processor.S answer with. */
#include <cpuid.h>

struct words {
	unsigned a, b, c, d;
};

/* Nothing but general registers: the caller's others are the program's. */
__attribute__((visibility("hidden"), target("general-regs-only"))) struct words __rf_cpuid_words(unsigned leaf, unsigned sub)
{
	struct words w;
	__rf_cpuid(leaf, sub, &w.a, &w.b, &w.c, &w.d);
	return w;
}

/* The monotonic clock. Where the policy grants none, a trap: as the instruction has where a process may not use it. */
__attribute__((visibility("hidden"))) unsigned long __rf_clock(void)
{
	long time[2], number = 228 /* clock_gettime */, clock = 1;
	register long r10 __asm__("r10") = 0;
	register long r8 __asm__("r8") = 0;
	register long r9 __asm__("r9") = 0;
	long *at = time, third = 0;

	__asm__ volatile("call __rf_syscall"
			 : "+a"(number), "+D"(clock), "+S"(at), "+d"(third), "+r"(r10), "+r"(r8), "+r"(r9)
			 :
			 : "rcx", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
			   "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
	if (number)
		__builtin_trap();
	return (unsigned long)time[0] * 1000000000 + (unsigned long)time[1];
}
