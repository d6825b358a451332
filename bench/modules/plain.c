/* The same functions without a fence: what a plug-in costs today. */
#include <stdint.h>

void nothing(void)
{
}

int64_t add(int64_t a, int64_t b)
{
    return a + b;
}

void reverse(uint8_t *s, uint64_t length)
{
    for (uint8_t *end = s + length; s < end--; s++) {
        uint8_t c = *s;
        *s = *end;
        *end = c;
    }
}
