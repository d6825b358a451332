/* Counts the ways to place queens, by recursion over bit sets. */
#include "kernel.h"

volatile unsigned queens_n = AMOUNT(11, 6);

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

WORKLOAD(queens)
{
    uint64_t sum = 0;
    for (int i = 0; i < (int)part(350, permille); i++)
        sum += place((1u << queens_n) - 1, 0, 0, 0);
    return sum;
}
