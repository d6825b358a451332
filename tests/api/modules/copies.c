/* Stores and indirect jumps, as many as there is time for: whose `gs` is another one meets it at once. */
#include <stdint.h>

typedef uint64_t (*step)(uint64_t);
static uint64_t add(uint64_t n) { return n + 1; }
static uint64_t turn(uint64_t n) { return n << 7 | n >> 57; }
static step volatile steps[2] = {add, turn};
static volatile uint64_t cells[1024];

/* A number that depends on every store and every jump. */
uint64_t work(uint64_t seed, uint64_t rounds) {
    uint64_t sum = seed;
    for (uint64_t i = 0; i < 1024; i++)
        cells[i] = seed;
    for (uint64_t i = 0; i < rounds; i++) {
        volatile uint64_t *cell = &cells[sum >> 20 & 1023];
        *cell = steps[i & 1](*cell ^ sum);
        sum = sum * 6364136223846793005u + *cell;
    }
    return sum;
}

uint64_t crash(void) { return *(volatile uint64_t *)0; }
