/* What setjmp costs by itself, and with longjmp: in the same function, and out of one and of eleven others.
 *   gcc -O2 bench/setjmp.c -o build/setjmp && build/setjmp
 *   ringfence cc -O2 bench/setjmp.c -o build/setjmp.rf && ringfence run build/setjmp.rf
 * print nanoseconds, the least of 30 rounds. Rows are for docs/performance-causes.md. */
#include <setjmp.h>
#include <stdio.h>
#include <time.h>

enum { TURNS = 20 * 1000, ROUNDS = 30 };

static jmp_buf back;
static volatile long count;

__attribute__((noinline)) static void leave(int functions)
{
    if (functions > 0)
        leave(functions - 1);
    else if (count >= 0)
        longjmp(back, 1);
    count++;
}

__attribute__((noinline)) static int alone(void)
{
    return setjmp(back);
}

__attribute__((noinline)) static int same(void)
{
    if (setjmp(back) == 0)
        longjmp(back, 1);
    return 1;
}

__attribute__((noinline)) static int out_of(int functions)
{
    if (setjmp(back) == 0)
        leave(functions - 1);
    return 1;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* The least of all rounds, for one turn. */
#define LEAST(call, best)                                                                                                       \
    do {                                                                                                                        \
        double from = now();                                                                                                    \
        for (int i = 0; i < TURNS; i++)                                                                                         \
            count += call;                                                                                                      \
        double took = (now() - from) / TURNS;                                                                                   \
        best = took < best ? took : best;                                                                                       \
    } while (0)

int main(void)
{
    double best[] = {1e9, 1e9, 1e9, 1e9};
    for (int round = 0; round < ROUNDS; round++) {
        LEAST(alone(), best[0]);
        LEAST(same(), best[1]);
        LEAST(out_of(1), best[2]);
        LEAST(out_of(11), best[3]);
    }
    printf("setjmp %.1f, and longjmp in the same function %.1f, out of one %.1f, out of eleven %.1f\n", best[0], best[1], best[2], best[3]);
    return 0;
}
