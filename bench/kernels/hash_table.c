/* Inserts, look-ups and deletions in an open-addressing table of short strings. */
#include "kernel.h"

#define SLOTS AMOUNT(1u << 16, 1u << 8)
struct slot {
    char key[16];
    uint32_t length, hash;
    uint64_t value;
};
static struct slot table[SLOTS];

static uint32_t hash(const char *key, uint32_t length)
{
    uint32_t h = 2166136261u;
    for (uint32_t i = 0; i < length; i++)
        h = (h ^ (uint8_t)key[i]) * 16777619u;
    return h | 1;
}

static struct slot *find(const char *key, uint32_t length, uint32_t h)
{
    uint32_t i = h >> 8;
    for (;; i++) {
        struct slot *s = &table[i % SLOTS];
        if (s->hash == 0 || (s->hash == h && s->length == length && memcmp(s->key, key, length) == 0))
            return s;
    }
}

static uint32_t make_key(char *key, uint64_t number)
{
    uint32_t length = 0;
    do
        key[length++] = (char)('a' + number % 26);
    while ((number /= 26) != 0 && length < 15);
    return length;
}

WORKLOAD(hash_table)
{
    uint64_t state = 23, sum = 0;
    char key[16];
    for (int round = 0; round < (int)part(56, permille); round++) {
        memset(table, 0, sizeof table);
        for (int i = 0; i < AMOUNT(40000, 160); i++) {
            uint32_t length = make_key(key, next_random(&state) % AMOUNT(60000, 240) + 100000);
            uint32_t h = hash(key, length);
            struct slot *s = find(key, length, h);
            if (s->hash == 0) {
                s->hash = h;
                s->length = length;
                memcpy(s->key, key, length);
            }
            s->value += (uint64_t)i;
        }
        for (int i = 0; i < AMOUNT(200000, 800); i++) {
            uint32_t length = make_key(key, next_random(&state) % AMOUNT(80000, 320) + 100000);
            const struct slot *s = find(key, length, hash(key, length));
            sum += s->hash ? s->value : 1;
        }
    }
    return sum;
}
