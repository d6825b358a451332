/* Reverses strings in place, the classic test of a protected call's body. */
#include "kernel.h"

static char text[4096 + 1];

static void reverse(char *s)
{
    char *end = s + strlen(s);
    while (s < end--) {
        char c = *s;
        *s++ = *end;
        *end = c;
    }
}

WORKLOAD(string_reverse)
{
    uint64_t sum = 0, state = 37;
    for (size_t size = 32; size < sizeof text; size *= 2) {
        for (size_t i = 0; i < size; i++)
            text[i] = (char)('!' + next_random(&state) % 90);
        text[size] = 0;
        for (size_t round = 0; round < part(AMOUNT((1u << 29) / 2, 1u << 22), permille) / size; round++)
            reverse(text);
        for (size_t i = 0; i < size; i++)
            sum = mix(sum, (uint8_t)text[i]);
    }
    return sum;
}
