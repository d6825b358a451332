/* Montgomery's multiplication: products of two numbers and 1/R modulo an odd number. */
#include "bignum.h"

uint64_t products;

void montgomery_multiply(number *to, const number *a, const number *b, const struct modulus *m)
{
    uint64_t t[MOST_LIMBS + 2] = {0};
    size_t limbs = m->limbs;
    products++;
    for (size_t i = 0; i < limbs; i++) {
        wide carry = 0;
        for (size_t j = 0; j < limbs; j++) {
            carry += (wide)a->limb[j] * b->limb[i] + t[j];
            t[j] = (uint64_t)carry;
            carry >>= 64;
        }
        carry += t[limbs];
        t[limbs] = (uint64_t)carry;
        t[limbs + 1] = (uint64_t)(carry >> 64);
        uint64_t q = t[0] * m->inverse;
        carry = ((wide)q * m->n.limb[0] + t[0]) >> 64;
        for (size_t j = 1; j < limbs; j++) {
            carry += (wide)q * m->n.limb[j] + t[j];
            t[j - 1] = (uint64_t)carry;
            carry >>= 64;
        }
        carry += t[limbs];
        t[limbs - 1] = (uint64_t)carry;
        t[limbs] = t[limbs + 1] + (uint64_t)(carry >> 64);
    }
    uint64_t above = t[limbs];
    memcpy(to->limb, t, limbs * sizeof *t);
    if (above || number_compare(to, &m->n, limbs) >= 0)
        number_subtract(to, to, &m->n, limbs);
}

void modulus_init(struct modulus *m, const number *n, size_t limbs)
{
    REQUIRE(n->limb[0] & 1 && n->limb[limbs - 1] >> 63);
    m->n = *n;
    m->limbs = limbs;
    uint64_t inverse = n->limb[0]; /* right in three bits, and in twice as many after each step */
    for (int i = 0; i < 5; i++)
        inverse *= 2 - n->limb[0] * inverse;
    m->inverse = -inverse;
    memset(&m->one, 0, sizeof m->one);
    number_subtract(&m->one, &m->one, n, limbs); /* R - n, as n has its highest bit */
    m->square = m->one;
    for (size_t i = 0; i < limbs * 64; i++)
        if (number_double(&m->square, limbs) || number_compare(&m->square, n, limbs) >= 0)
            number_subtract(&m->square, &m->square, n, limbs);
}

void to_montgomery(number *to, const number *a, const struct modulus *m)
{
    montgomery_multiply(to, a, &m->square, m);
}

void from_montgomery(number *to, const number *a, const struct modulus *m)
{
    number one = {{1}};
    montgomery_multiply(to, a, &one, m);
}
