/* Sieve of Eratosthenes: byte stores with strides. */
#include "kernel.h"

static uint8_t composite[AMOUNT(1 << 20, 1 << 13)];

WORKLOAD(sieve)
{
    uint64_t count = 0;
    for (int round = 0; round < (int)part(260, permille); round++) {
        memset(composite, 0, sizeof composite);
        for (size_t i = 2; i < sizeof composite; i++) {
            if (composite[i])
                continue;
            count++;
            for (uint64_t j = (uint64_t)i * i; j < sizeof composite; j += i)
                composite[j] = 1;
        }
    }
    return count;
}
