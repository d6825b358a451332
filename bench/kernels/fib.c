/* Recursive Fibonacci: nothing but calls and returns. */
#include "kernel.h"

volatile int fib_n = AMOUNT(24, 14);

__attribute__((noinline)) static uint64_t fib(int n)
{
    return n < 2 ? (uint64_t)n : fib(n - 1) + fib(n - 2);
}

WORKLOAD(fib)
{
    uint64_t sum = 0;
    for (int i = 0; i < (int)part(3570, permille); i++)
        sum = mix(sum, fib(fib_n));
    return sum;
}
