/* What single instructions of the gates take, ten of them in a row.
 *   gcc -O2 -mfsgsbase bench/instructions.c -o build/instructions && build/instructions
 * prints nanoseconds of processor time, the least of 40 rounds. Rows are for docs/performance-causes.md. Needs a kernel that lets
 * programs write gs's base (Linux 5.9). */
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

enum { TURNS = 20 * 1000, ROUNDS = 40, IN_A_ROW = 10 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

#define VECTORS                                                                                                                 \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",\
        "xmm15"

/* `rdx` is gs's base as it is; `rax`, `rcx` and the vector registers are free. */
#define INSTRUCTION(name, text)                                                                                                 \
    do {                                                                                                                        \
        double best = 1e9;                                                                                                      \
        for (int round = 0; round < ROUNDS; round++) {                                                                          \
            double from = now();                                                                                                \
            for (int i = 0; i < TURNS; i++)                                                                                     \
                __asm__ volatile(".rept 10\n\t" text "\n\t.endr" : : "d"(base) : "rax", "rcx", "memory", "cc", VECTORS);        \
            double took = (now() - from) / (TURNS * IN_A_ROW);                                                                  \
            best = took < best ? took : best;                                                                                   \
        }                                                                                                                       \
        printf("%-12s %.2f\n", name, best);                                                                                     \
    } while (0)

int main(void)
{
    uint64_t base = _readgsbase_u64();
    INSTRUCTION("add", "addq $1, %%rcx");
    INSTRUCTION("rdgsbase", "rdgsbase %%rax");
    INSTRUCTION("wrgsbase", "wrgsbase %%rdx");
    INSTRUCTION("lock add", "lock addq $0, (%%rsp)");
    INSTRUCTION("vzeroupper", "vzeroupper");
    INSTRUCTION("vzeroall", "vzeroall");
    INSTRUCTION("fnclex", "fnclex");
    INSTRUCTION("fnstsw", "fnstsw %%ax");
    return 0;
}
