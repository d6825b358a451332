/* What a global variable costs that several places of a program load and store: reached relative to `rip`, as in an executable
 * (and a fenced module), and through a register that holds its address, as in a shared object.
 *   gcc -O2 -fno-gcse -fno-crossjumping bench/globals.c -o build/globals && build/globals
 * prints nanoseconds for one turn: a jump to one of so many places, which adds to the variable. Rows are for
 * docs/performance-causes.md. */
#include <stdint.h>
#include <stdio.h>
#include <time.h>

enum { PATTERN = 1024, TURNS = 10 * 1000 * 1000, ROUNDS = 9 };

int variable;
static uint8_t pattern[PATTERN];

#define RELATIVE(k) __asm__ volatile("mov variable(%%rip), %%eax; add $" #k ", %%eax; mov %%eax, variable(%%rip)" ::: "eax", "memory");
#define BY_REGISTER(k) __asm__ volatile("mov (%0), %%eax; add $" #k ", %%eax; mov %%eax, (%0)" ::"r"(address) : "eax", "memory");
#define WITHOUT(k) __asm__ volatile("add $" #k ", %%eax" ::: "eax");

#define PLACE(label, add, k)                                                                                                    \
    label:                                                                                                                      \
    add(k) if (++i >= TURNS) goto done;                                                                                         \
    goto *places[pattern[i % PATTERN]];

/* Nanoseconds for a turn. Each place ends with a jump of its own, which the processor learns. */
#define FORM(name, add)                                                                                                         \
    __attribute__((noinline)) static double name(int *address)                                                                  \
    {                                                                                                                           \
        static void *const places[] = {&&a, &&b, &&c, &&d, &&e, &&f, &&g, &&h};                                                 \
        struct timespec from, to;                                                                                               \
        uint32_t i = 0;                                                                                                         \
        (void)address;                                                                                                          \
        clock_gettime(CLOCK_MONOTONIC, &from);                                                                                  \
        goto *places[pattern[0]];                                                                                               \
        PLACE(a, add, 1)                                                                                                        \
        PLACE(b, add, 2)                                                                                                        \
        PLACE(c, add, 3)                                                                                                        \
        PLACE(d, add, 4)                                                                                                        \
        PLACE(e, add, 5)                                                                                                        \
        PLACE(f, add, 6)                                                                                                        \
        PLACE(g, add, 7)                                                                                                        \
        PLACE(h, add, 8)                                                                                                        \
    done:                                                                                                                       \
        clock_gettime(CLOCK_MONOTONIC, &to);                                                                                    \
        return ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) / TURNS;                         \
    }

FORM(relative, RELATIVE)
FORM(by_register, BY_REGISTER)
FORM(without, WITHOUT)

int main(void)
{
    puts("places   rip   register   no variable");
    for (uint32_t places = 1; places <= 8; places *= 2) {
        uint32_t state = 1;
        for (int i = 0; i < PATTERN; i++) {
            state = state * 1664525 + 1013904223;
            pattern[i] = (uint8_t)((state >> 24) % places);
        }
        double best[3] = {1e9, 1e9, 1e9};
        for (int round = 0; round < ROUNDS; round++) {
            double now[] = {relative(&variable), by_register(&variable), without(&variable)};
            for (int form = 0; form < 3; form++)
                best[form] = now[form] < best[form] ? now[form] : best[form];
        }
        printf("%6u %5.2f %10.2f %13.2f\n", places, best[0], best[1], best[2]);
    }
    return 0;
}
