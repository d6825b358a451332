/* Counts the ways to place queens, by recursion over bit sets. */
#include "kernel.h"

volatile unsigned queens_n = 13;

static uint64_t place(unsigned all, unsigned columns, unsigned left, unsigned right)
{
    if (columns == all)
        return 1;
    uint64_t count = 0;
    for (unsigned free = all & ~(columns | left | right); free; free &= free - 1) {
        unsigned bit = free & -free;
        count += place(all, columns | bit, (left | bit) << 1, (right | bit) >> 1);
    }
    return count;
}

uint64_t run(void)
{
    uint64_t sum = 0;
    for (int i = 0; i < 13; i++)
        sum += place((1u << queens_n) - 1, 0, 0, 0);
    return sum;
}
