/* hash_any and its like: Bob Jenkins' lookup3, with the server's starting values, so that hashes are the server's. */
#include "guest.h"

#include "common/hashfn.h"

#include <string.h>

struct state {
	uint32 a, b, c;
};

static inline uint32 rotate(uint32 x, int k)
{
	return (x << k) | (x >> (32 - k));
}

#define STEP(x, y, z, k) ((x) -= (z), (x) ^= rotate(z, k), (z) += (y))
#define LAST(x, y, k) ((x) ^= (y), (x) -= rotate(y, k))

static void mix(struct state *s)
{
	STEP(s->a, s->b, s->c, 4);
	STEP(s->b, s->c, s->a, 6);
	STEP(s->c, s->a, s->b, 8);
	STEP(s->a, s->b, s->c, 16);
	STEP(s->b, s->c, s->a, 19);
	STEP(s->c, s->a, s->b, 4);
}

static void finish(struct state *s)
{
	LAST(s->c, s->b, 14);
	LAST(s->a, s->c, 11);
	LAST(s->b, s->a, 25);
	LAST(s->c, s->b, 16);
	LAST(s->a, s->c, 4);
	LAST(s->b, s->a, 14);
	LAST(s->c, s->b, 24);
}

static struct state start(uint32 length, uint64 seed)
{
	uint32 value = 0x9e3779b9u + length + 3923095u;
	struct state s = {value, value, value};

	if (seed != 0) {
		s.a += (uint32) (seed >> 32);
		s.b += (uint32) seed;
		mix(&s);
	}
	return s;
}

static struct state hash(const unsigned char *key, int length, uint64 seed)
{
	struct state s = start((uint32) length, seed);
	uint32 words[3];
	unsigned char tail[12] = {0};

	for (; length >= 12; length -= 12, key += 12) {
		memcpy(words, key, sizeof words);
		s.a += words[0];
		s.b += words[1];
		s.c += words[2];
		mix(&s);
	}
	/* The last word's low byte is left to the length. */
	memcpy(tail, key, Min(length, 8));
	if (length > 8)
		memcpy(tail + 9, key + 8, length - 8);
	memcpy(words, tail, sizeof words);
	s.a += words[0];
	s.b += words[1];
	s.c += words[2];
	finish(&s);
	return s;
}

uint32 hash_bytes(const unsigned char *key, int length)
{
	return hash(key, length, 0).c;
}

uint64 hash_bytes_extended(const unsigned char *key, int length, uint64 seed)
{
	struct state s = hash(key, length, seed);

	return (uint64) s.b << 32 | s.c;
}

uint32 hash_bytes_uint32(uint32 key)
{
	struct state s = start(sizeof key, 0);

	s.a += key;
	finish(&s);
	return s.c;
}

uint64 hash_bytes_uint32_extended(uint32 key, uint64 seed)
{
	struct state s = start(sizeof key, seed);

	s.a += key;
	finish(&s);
	return (uint64) s.b << 32 | s.c;
}

uint32 string_hash(const void *key, Size size)
{
	return hash_bytes(key, (int) strnlen(key, size - 1));
}

uint32 tag_hash(const void *key, Size size)
{
	return hash_bytes(key, (int) size);
}

uint32 uint32_hash(const void *key, Size size)
{
	return hash_bytes_uint32(*(const uint32 *) key);
}
