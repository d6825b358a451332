/* Tables and bit counts that the server's headers use. */
#include "guest.h"

#include "port/pg_bitutils.h"

#include <string.h>

static inline uint64 popcount(uint64 x)
{
	x -= (x >> 1) & UINT64CONST(0x5555555555555555);
	x = (x & UINT64CONST(0x3333333333333333)) + ((x >> 2) & UINT64CONST(0x3333333333333333));
	x = (x + (x >> 4)) & UINT64CONST(0x0f0f0f0f0f0f0f0f);
	return (x * UINT64CONST(0x0101010101010101)) >> 56;
}

static int popcount32(uint32 word)
{
	return (int) popcount(word);
}

static int popcount64(uint64 word)
{
	return (int) popcount(word);
}

int (*pg_popcount32)(uint32 word) = popcount32;
int (*pg_popcount64)(uint64 word) = popcount64;

uint64 pg_popcount(const char *bytes, int count)
{
	uint64 sum = 0, word;

	for (; count >= 8; count -= 8, bytes += 8) {
		memcpy(&word, bytes, 8);
		sum += popcount(word);
	}
	for (; count > 0; count--)
		sum += popcount((unsigned char) *bytes++);
	return sum;
}

/* Of each byte: the number of its ones, and the places of its highest and its lowest one. */
#define BYTES(f) \
	FOUR(f, 0) FOUR(f, 16) FOUR(f, 32) FOUR(f, 48) FOUR(f, 64) FOUR(f, 80) FOUR(f, 96) FOUR(f, 112) FOUR(f, 128) FOUR(f, 144) \
	FOUR(f, 160) FOUR(f, 176) FOUR(f, 192) FOUR(f, 208) FOUR(f, 224) FOUR(f, 240)
#define FOUR(f, n) ONE(f, n) ONE(f, (n) + 4) ONE(f, (n) + 8) ONE(f, (n) + 12)
#define ONE(f, n) f(n), f((n) + 1), f((n) + 2), f((n) + 3),
#define ONES(n) __builtin_popcount(n)
#define HIGHEST(n) ((n) == 0 ? 0 : 31 - __builtin_clz((n) | ((n) == 0)))
#define LOWEST(n) ((n) == 0 ? 0 : __builtin_ctz((n) | ((n) == 0)))

const uint8 pg_number_of_ones[256] = {BYTES(ONES)};
const uint8 pg_leftmost_one_pos[256] = {BYTES(HIGHEST)};
const uint8 pg_rightmost_one_pos[256] = {BYTES(LOWEST)};
