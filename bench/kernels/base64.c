/* Base64, both ways, with table look-ups. */
#include "kernel.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static uint8_t reverse_of[256], data[AMOUNT(3 << 14, 3 << 8)], text[AMOUNT(4 << 14, 4 << 8)], back[AMOUNT(3 << 14, 3 << 8)];

WORKLOAD(base64)
{
    uint64_t state = 53, sum = 0;
    for (int i = 0; i < 64; i++)
        reverse_of[(uint8_t)digits[i]] = (uint8_t)i;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(next_random(&state) >> 56);
    for (int round = 0; round < (int)part(10000, permille); round++) {
        size_t j = 0;
        for (size_t i = 0; i < sizeof data; i += 3, j += 4) {
            uint32_t v = (uint32_t)data[i] << 16 | (uint32_t)data[i + 1] << 8 | data[i + 2];
            text[j] = (uint8_t)digits[v >> 18];
            text[j + 1] = (uint8_t)digits[v >> 12 & 63];
            text[j + 2] = (uint8_t)digits[v >> 6 & 63];
            text[j + 3] = (uint8_t)digits[v & 63];
        }
        for (size_t i = 0, k = 0; i < j; i += 4, k += 3) {
            uint32_t v = (uint32_t)reverse_of[text[i]] << 18 | (uint32_t)reverse_of[text[i + 1]] << 12 |
                         (uint32_t)reverse_of[text[i + 2]] << 6 | reverse_of[text[i + 3]];
            back[k] = (uint8_t)(v >> 16), back[k + 1] = (uint8_t)(v >> 8), back[k + 2] = (uint8_t)v;
        }
        sum = mix(sum, back[(size_t)round * 31 % sizeof back]);
        data[(size_t)round * 17 % sizeof data]++;
    }
    return sum;
}
