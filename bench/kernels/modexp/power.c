/* Powers by windows of four bits, and Miller and Rabin's test. */
#include "bignum.h"

/* Numbers in the field, base and result alike. */
void power(number *to, const number *base, const number *exponent, size_t bits, const struct modulus *m)
{
    number table[16], result = m->one;
    table[0] = m->one;
    for (int i = 1; i < 16; i++)
        montgomery_multiply(&table[i], &table[i - 1], base, m);
    for (size_t at = (bits + 3) / 4; at--;) {
        for (int i = 0; i < 4; i++)
            montgomery_multiply(&result, &result, &result, m);
        uint64_t digit = exponent->limb[at / 16] >> (at % 16 * 4) & 15;
        if (digit)
            montgomery_multiply(&result, &result, &table[digit], m);
    }
    *to = result;
}

int probably_prime(const struct modulus *m, uint64_t base)
{
    number minus_one, exponent = m->n, x = {{base}};
    size_t limbs = m->limbs, twos = 0;
    number_subtract(&minus_one, &m->n, &m->one, limbs);
    exponent.limb[0] &= ~(uint64_t)1;
    while (!(exponent.limb[0] & 1)) {
        for (size_t i = 0; i < limbs; i++)
            exponent.limb[i] = exponent.limb[i] >> 1 | (i + 1 < limbs ? exponent.limb[i + 1] << 63 : 0);
        twos++;
    }
    to_montgomery(&x, &x, m);
    power(&x, &x, &exponent, limbs * 64, m);
    if (!number_compare(&x, &m->one, limbs))
        return 1;
    for (size_t i = 0; i < twos; i++) {
        if (!number_compare(&x, &minus_one, limbs))
            return 1;
        montgomery_multiply(&x, &x, &x, m);
    }
    return 0;
}
