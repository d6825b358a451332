/* Recursive Fibonacci: nothing but calls and returns. */
#include "kernel.h"

volatile int fib_n = 41;

__attribute__((noinline)) static uint64_t fib(int n)
{
    return n < 2 ? (uint64_t)n : fib(n - 1) + fib(n - 2);
}

uint64_t run(void)
{
    return fib(fib_n);
}
