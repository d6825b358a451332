/* Natural numbers of a fixed number of limbs, the least significant first. */
#ifndef BIGNUM_H
#define BIGNUM_H

#include "kernel.h"

typedef unsigned __int128 wide;

enum { MOST_LIMBS = 32 };

typedef struct {
    uint64_t limb[MOST_LIMBS];
} number;

struct modulus {
    number n;
    number one;    /* 1 and R² in the field, where R is 2 to the 64 times limbs */
    number square;
    uint64_t inverse; /* -1/n modulo 2 to the 64 */
    size_t limbs;
};

/* bignum.c */
uint64_t number_add(number *to, const number *a, const number *b, size_t limbs);
uint64_t number_subtract(number *to, const number *a, const number *b, size_t limbs);
int number_compare(const number *a, const number *b, size_t limbs);
uint64_t number_double(number *to, size_t limbs);
uint64_t number_hash(const number *a, size_t limbs);
void number_random(number *to, size_t limbs, uint64_t *random);

/* montgomery.c */
extern uint64_t products;
void modulus_init(struct modulus *m, const number *n, size_t limbs);
void montgomery_multiply(number *to, const number *a, const number *b, const struct modulus *m);
void to_montgomery(number *to, const number *a, const struct modulus *m);
void from_montgomery(number *to, const number *a, const struct modulus *m);

/* power.c */
void power(number *to, const number *base, const number *exponent, size_t bits, const struct modulus *m);
int probably_prime(const struct modulus *m, uint64_t base);

#endif
