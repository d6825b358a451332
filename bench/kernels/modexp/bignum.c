/* Sums, differences and comparisons. */
#include "bignum.h"

uint64_t number_add(number *to, const number *a, const number *b, size_t limbs)
{
    wide carry = 0;
    for (size_t i = 0; i < limbs; i++) {
        carry += (wide)a->limb[i] + b->limb[i];
        to->limb[i] = (uint64_t)carry;
        carry >>= 64;
    }
    return (uint64_t)carry;
}

uint64_t number_subtract(number *to, const number *a, const number *b, size_t limbs)
{
    uint64_t borrow = 0;
    for (size_t i = 0; i < limbs; i++) {
        wide difference = (wide)a->limb[i] - b->limb[i] - borrow;
        to->limb[i] = (uint64_t)difference;
        borrow = (uint64_t)(difference >> 64) & 1;
    }
    return borrow;
}

int number_compare(const number *a, const number *b, size_t limbs)
{
    while (limbs--)
        if (a->limb[limbs] != b->limb[limbs])
            return a->limb[limbs] < b->limb[limbs] ? -1 : 1;
    return 0;
}

uint64_t number_double(number *to, size_t limbs)
{
    return number_add(to, to, to, limbs);
}

uint64_t number_hash(const number *a, size_t limbs)
{
    uint64_t sum = 1;
    for (size_t i = 0; i < limbs; i++)
        sum = mix(sum, a->limb[i]);
    return sum;
}

void number_random(number *to, size_t limbs, uint64_t *random)
{
    for (size_t i = 0; i < limbs; i++)
        to->limb[i] = next_random(random);
}
