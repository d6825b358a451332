/* Arithmetic of big numbers: an exchange of keys by powers modulo odd numbers of several sizes, a search for primes. */
#include "bignum.h"

/* Both sides' powers of powers are the same number. */
static uint64_t exchange(size_t limbs, uint64_t *random)
{
    struct modulus m;
    number n, base, mine, yours, left, right;
    number_random(&n, limbs, random);
    n.limb[0] |= 1;
    n.limb[limbs - 1] |= (uint64_t)1 << 63;
    modulus_init(&m, &n, limbs);
    number_random(&base, limbs, random);
    base.limb[limbs - 1] >>= 1;
    number_random(&mine, limbs, random);
    number_random(&yours, limbs, random);
    to_montgomery(&base, &base, &m);
    power(&left, &base, &mine, limbs * 64, &m);
    power(&left, &left, &yours, limbs * 64, &m);
    power(&right, &base, &yours, limbs * 64, &m);
    power(&right, &right, &mine, limbs * 64, &m);
    REQUIRE(!number_compare(&left, &right, limbs));
    from_montgomery(&left, &left, &m);
    return number_hash(&left, limbs);
}

/* The first probable prime from a number on; gives how far it is. */
static uint64_t search(size_t limbs, uint64_t *random)
{
    struct modulus m;
    number n, two = {{2}};
    uint64_t steps = 0;
    number_random(&n, limbs, random);
    n.limb[0] |= 1;
    n.limb[limbs - 1] |= (uint64_t)1 << 63;
    for (;; steps++) {
        modulus_init(&m, &n, limbs);
        if (probably_prime(&m, 2) && probably_prime(&m, 3))
            return mix(number_hash(&n, limbs), steps);
        REQUIRE(!number_add(&n, &n, &two, limbs));
    }
}

WORKLOAD(modexp)
{
    static const size_t sizes[] = {4, 8, AMOUNT(16, 4), AMOUNT(32, 6)};
    uint64_t random = 101, sum = 1;
    products = 0;
    for (uint64_t round = 0; round < part(AMOUNT(24, 4), permille); round++) {
        sum = mix(sum, exchange(sizes[round % 4], &random));
        sum = mix(sum, search(2 + round % AMOUNT(3, 1), &random));
    }
    return mix(sum, products);
}
