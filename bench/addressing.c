/* What each way to reach memory takes, pattern by pattern: plain, through `gs`, and by way of `r14` (docs/rewriter.md). Native
 * code that sets the registers as a fenced module has them, so that a processor is asked and not a compiler.
 *   gcc -O2 bench/addressing.c -o build/addressing && build/addressing
 * prints cycles' worth of time (nanoseconds) for one turn of each pattern; rows are for docs/performance-causes.md. */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* `rdi`, `rsi`, `rdx` and `r8` are addresses 4 KiB apart, `rcx` is 0; `rax`, `r9`, `r10`, `r11`, `rbx` and `xmm0` are free. */
#define TURNS(body)                                                                                                             \
    __asm__ volatile("mov %[window], %%r14\n\t.p2align 6\n1:\t" body "\n\tdec %[n]\n\tjnz 1b"                                  \
                     : [n] "+r"(n), "+D"(a), "+S"(b), "+d"(c), "+c"(zero)                                                      \
                     : [window] "r"(window), "r"(d)                                                                             \
                     : "rax", "rbx", "r9", "r10", "r11", "r14", "xmm0", "memory", "cc")

#define PATTERN(name, plain, through_gs, through_r14)                                                                           \
    static void name(int form, uint64_t n, char *window, char *a)                                                               \
    {                                                                                                                           \
        char *b = a + 4096, *c = a + 8192;                                                                                      \
        register char *d __asm__("r8") = a + 12288;                                                                             \
        uint64_t zero = 0;                                                                                                      \
        if (form == 0)                                                                                                          \
            TURNS(plain);                                                                                                       \
        else if (form == 1)                                                                                                     \
            TURNS(through_gs);                                                                                                  \
        else                                                                                                                    \
            TURNS(through_r14);                                                                                                 \
    }

#define TWICE(x) x "\n\t" x
#define FOUR(x) TWICE(TWICE(x))

/* each load's address is what the one before loaded */
PATTERN(chain, FOUR("mov (%%rdi), %%rdi"), FOUR("mov %%gs:(%%edi), %%rdi"), FOUR("mov %%edi, %%r11d\n\tmov (%%r14,%%r11), %%rdi"))
PATTERN(chain_at, FOUR("mov 8(%%rdi), %%rdi"), FOUR("mov %%gs:8(%%edi), %%rdi"), FOUR("mov %%edi, %%r11d\n\tmov 8(%%r14,%%r11), %%rdi"))
PATTERN(chain_indexed, FOUR("mov (%%rdi,%%rcx,8), %%rdi"), FOUR("mov %%gs:(%%edi,%%ecx,8), %%rdi"),
        FOUR("lea (%%rdi,%%rcx,8), %%r11d\n\tmov (%%r14,%%r11), %%rdi"))
/* nothing waits for a load: eight fields of one object; a field each of four objects; elements of four arrays */
PATTERN(fields,
        "mov (%%rdi), %%rax\n\tmov 8(%%rdi), %%rax\n\tmov 16(%%rdi), %%rax\n\tmov 24(%%rdi), %%rax\n\t"
        "mov 32(%%rdi), %%rax\n\tmov 40(%%rdi), %%rax\n\tmov 48(%%rdi), %%rax\n\tmov 56(%%rdi), %%rax",
        "mov %%gs:(%%edi), %%rax\n\tmov %%gs:8(%%edi), %%rax\n\tmov %%gs:16(%%edi), %%rax\n\tmov %%gs:24(%%edi), %%rax\n\t"
        "mov %%gs:32(%%edi), %%rax\n\tmov %%gs:40(%%edi), %%rax\n\tmov %%gs:48(%%edi), %%rax\n\tmov %%gs:56(%%edi), %%rax",
        "mov %%edi, %%r11d\n\t"
        "mov (%%r14,%%r11), %%rax\n\tmov 8(%%r14,%%r11), %%rax\n\tmov 16(%%r14,%%r11), %%rax\n\tmov 24(%%r14,%%r11), %%rax\n\t"
        "mov 32(%%r14,%%r11), %%rax\n\tmov 40(%%r14,%%r11), %%rax\n\tmov 48(%%r14,%%r11), %%rax\n\tmov 56(%%r14,%%r11), %%rax")
PATTERN(objects, TWICE("mov 8(%%rdi), %%rax\n\tmov 8(%%rsi), %%rax\n\tmov 8(%%rdx), %%rax\n\tmov 8(%%r8), %%rax"),
        TWICE("mov %%gs:8(%%edi), %%rax\n\tmov %%gs:8(%%esi), %%rax\n\tmov %%gs:8(%%edx), %%rax\n\tmov %%gs:8(%%r8d), %%rax"),
        TWICE("mov %%edi, %%r11d\n\tmov 8(%%r14,%%r11), %%rax\n\tmov %%esi, %%r11d\n\tmov 8(%%r14,%%r11), %%rax\n\t"
              "mov %%edx, %%r11d\n\tmov 8(%%r14,%%r11), %%rax\n\tmov %%r8d, %%r11d\n\tmov 8(%%r14,%%r11), %%rax"))
PATTERN(elements, TWICE("mov (%%rdi,%%rcx,8), %%rax\n\tmov (%%rsi,%%rcx,8), %%rax\n\tmov (%%rdx,%%rcx,8), %%rax\n\tmov (%%r8,%%rcx,8), %%rax"),
        TWICE("mov %%gs:(%%edi,%%ecx,8), %%rax\n\tmov %%gs:(%%esi,%%ecx,8), %%rax\n\tmov %%gs:(%%edx,%%ecx,8), %%rax\n\t"
              "mov %%gs:(%%r8d,%%ecx,8), %%rax"),
        TWICE("lea (%%rdi,%%rcx,8), %%r11d\n\tmov (%%r14,%%r11), %%rax\n\tlea (%%rsi,%%rcx,8), %%r11d\n\tmov (%%r14,%%r11), %%rax\n\t"
              "lea (%%rdx,%%rcx,8), %%r11d\n\tmov (%%r14,%%r11), %%rax\n\tlea (%%r8,%%rcx,8), %%r11d\n\tmov (%%r14,%%r11), %%rax"))
/* eight stores to one object; one to each of four */
PATTERN(stores,
        "mov %%rax, (%%rdi)\n\tmov %%rax, 8(%%rdi)\n\tmov %%rax, 16(%%rdi)\n\tmov %%rax, 24(%%rdi)\n\t"
        "mov %%rax, 32(%%rdi)\n\tmov %%rax, 40(%%rdi)\n\tmov %%rax, 48(%%rdi)\n\tmov %%rax, 56(%%rdi)",
        "mov %%rax, %%gs:(%%edi)\n\tmov %%rax, %%gs:8(%%edi)\n\tmov %%rax, %%gs:16(%%edi)\n\tmov %%rax, %%gs:24(%%edi)\n\t"
        "mov %%rax, %%gs:32(%%edi)\n\tmov %%rax, %%gs:40(%%edi)\n\tmov %%rax, %%gs:48(%%edi)\n\tmov %%rax, %%gs:56(%%edi)",
        "mov %%edi, %%r11d\n\t"
        "mov %%rax, (%%r14,%%r11)\n\tmov %%rax, 8(%%r14,%%r11)\n\tmov %%rax, 16(%%r14,%%r11)\n\tmov %%rax, 24(%%r14,%%r11)\n\t"
        "mov %%rax, 32(%%r14,%%r11)\n\tmov %%rax, 40(%%r14,%%r11)\n\tmov %%rax, 48(%%r14,%%r11)\n\tmov %%rax, 56(%%r14,%%r11)")
PATTERN(stores_apart, TWICE("mov %%rax, 8(%%rdi)\n\tmov %%rax, 8(%%rsi)\n\tmov %%rax, 8(%%rdx)\n\tmov %%rax, 8(%%r8)"),
        TWICE("mov %%rax, %%gs:8(%%edi)\n\tmov %%rax, %%gs:8(%%esi)\n\tmov %%rax, %%gs:8(%%edx)\n\tmov %%rax, %%gs:8(%%r8d)"),
        TWICE("mov %%edi, %%r11d\n\tmov %%rax, 8(%%r14,%%r11)\n\tmov %%esi, %%r11d\n\tmov %%rax, 8(%%r14,%%r11)\n\t"
              "mov %%edx, %%r11d\n\tmov %%rax, 8(%%r14,%%r11)\n\tmov %%r8d, %%r11d\n\tmov %%rax, 8(%%r14,%%r11)"))
PATTERN(vector_stores, TWICE("movaps %%xmm0, (%%rdi)\n\tmovaps %%xmm0, 16(%%rdi)\n\tmovaps %%xmm0, 32(%%rdi)\n\tmovaps %%xmm0, 48(%%rdi)"),
        TWICE("movaps %%xmm0, %%gs:(%%edi)\n\tmovaps %%xmm0, %%gs:16(%%edi)\n\tmovaps %%xmm0, %%gs:32(%%edi)\n\tmovaps %%xmm0, %%gs:48(%%edi)"),
        TWICE("mov %%edi, %%r11d\n\tmovaps %%xmm0, (%%r14,%%r11)\n\tmovaps %%xmm0, 16(%%r14,%%r11)\n\t"
              "movaps %%xmm0, 32(%%r14,%%r11)\n\tmovaps %%xmm0, 48(%%r14,%%r11)"))
PATTERN(vector_loads, TWICE("movaps (%%rdi), %%xmm0\n\tmovaps 16(%%rdi), %%xmm0\n\tmovaps 32(%%rdi), %%xmm0\n\tmovaps 48(%%rdi), %%xmm0"),
        TWICE("movaps %%gs:(%%edi), %%xmm0\n\tmovaps %%gs:16(%%edi), %%xmm0\n\tmovaps %%gs:32(%%edi), %%xmm0\n\tmovaps %%gs:48(%%edi), %%xmm0"),
        TWICE("mov %%edi, %%r11d\n\tmovaps (%%r14,%%r11), %%xmm0\n\tmovaps 16(%%r14,%%r11), %%xmm0\n\t"
              "movaps 32(%%r14,%%r11), %%xmm0\n\tmovaps 48(%%r14,%%r11), %%xmm0"))
/* counters in memory: what is loaded was stored a moment ago */
PATTERN(counter, FOUR("addl $1, 64(%%rdi)"), FOUR("addl $1, %%gs:64(%%edi)"), FOUR("mov %%edi, %%r11d\n\taddl $1, 64(%%r14,%%r11)"))
PATTERN(counter_apart, FOUR("mov 64(%%rdi), %%eax\n\tadd $1, %%eax\n\tmov %%eax, 64(%%rdi)"),
        FOUR("mov %%gs:64(%%edi), %%eax\n\tadd $1, %%eax\n\tmov %%eax, %%gs:64(%%edi)"),
        FOUR("mov %%edi, %%r11d\n\tmov 64(%%r14,%%r11), %%eax\n\tadd $1, %%eax\n\tmov %%eax, 64(%%r14,%%r11)"))
PATTERN(counter_mixed, FOUR("mov 64(%%rdi), %%eax\n\tadd $1, %%eax\n\tmov %%eax, 64(%%rdi)"),
        FOUR("mov %%edi, %%r11d\n\tmov 64(%%r14,%%r11), %%eax\n\tadd $1, %%eax\n\tmov %%eax, %%gs:64(%%edi)"),
        FOUR("mov %%gs:64(%%edi), %%eax\n\tadd $1, %%eax\n\tmov %%edi, %%r11d\n\tmov %%eax, 64(%%r14,%%r11)"))
/* bytes from both ends, exchanged: two loads and two stores a turn, by pointers that move */
PATTERN(exchange, TWICE("movzbl 128(%%rdi), %%eax\n\tmovzbl 128(%%rsi), %%ebx\n\tmov %%al, 128(%%rsi)\n\tmov %%bl, 128(%%rdi)\n\t"
                        "xor $1, %%rdi\n\txor $1, %%rsi"),
        TWICE("movzbl %%gs:128(%%edi), %%eax\n\tmovzbl %%gs:128(%%esi), %%ebx\n\tmov %%al, %%gs:128(%%esi)\n\tmov %%bl, %%gs:128(%%edi)\n\t"
              "xor $1, %%rdi\n\txor $1, %%rsi"),
        TWICE("mov %%edi, %%r11d\n\tmovzbl 128(%%r14,%%r11), %%eax\n\tmov %%esi, %%r11d\n\tmovzbl 128(%%r14,%%r11), %%ebx\n\t"
              "mov %%al, 128(%%r14,%%r11)\n\tmov %%bl, %%gs:128(%%edi)\n\txor $1, %%rdi\n\txor $1, %%rsi"))

static const struct {
    const char *what;
    void (*run)(int form, uint64_t n, char *window, char *a);
    int times;
} patterns[] = {
    {"load, its address from the load before", chain, 4},
    {"the same with a displacement", chain_at, 4},
    {"the same with an index", chain_indexed, 4},
    {"loads, fields of one object", fields, 8},
    {"loads, a field each of several objects", objects, 8},
    {"loads with an index", elements, 8},
    {"stores, fields of one object", stores, 8},
    {"stores, a field each of several objects", stores_apart, 8},
    {"stores of vectors", vector_stores, 8},
    {"loads of vectors", vector_loads, 8},
    {"counter, one instruction", counter, 4},
    {"counter, load and store", counter_apart, 4},
    {"counter, loaded by r14 and stored by gs; the other way round", counter_mixed, 4},
    {"bytes exchanged (r14: with one store by gs)", exchange, 8},
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(void)
{
    const size_t window_size = (size_t)1 << 32, turns = 200000;
    char *room = mmap(NULL, 2 * window_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
        return perror("mmap"), 1;
    char *window = (char *)(((uintptr_t)room + window_size - 1) & ~(window_size - 1)), *a = window + (1 << 20);
    if (mprotect(a, 1 << 20, PROT_READ | PROT_WRITE) || syscall(SYS_arch_prctl, ARCH_SET_GS, window))
        return perror("window"), 1;
    printf("| pattern | plain, ns | through gs | by way of r14 |\n|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        double best[3] = {1e30, 1e30, 1e30};
        for (int round = 0; round < 15; round++)
            for (int form = 0; form < 3; form++) {
                memset(a, 0, 1 << 14);
                memcpy(a, &a, sizeof a); // the chain leads to itself
                memcpy(a + 8, &a, sizeof a);
                double start = now();
                patterns[i].run(form, turns, window, a);
                double took = (now() - start) / (double)turns / patterns[i].times;
                best[form] = took < best[form] ? took : best[form];
            }
        printf("| %s | %.3f | %.2f | %.2f |\n", patterns[i].what, best[0], best[1] / best[0], best[2] / best[0]);
    }
    return 0;
}
