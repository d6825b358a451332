/* A compressor whose inner loops are SSE2: differences of neighbours, matches, copies, sums. */
#ifndef SIMD_LZ_H
#define SIMD_LZ_H

#include "kernel.h"

enum { BLOCK = 1 << 16, PAD = 64, BOUND = BLOCK + BLOCK / 64 + 64 };

/* filter.c: `stride` is 1 to 16; buffers have PAD bytes after them */
void delta_encode(uint8_t *to, const uint8_t *from, size_t size, size_t stride);
void delta_decode(uint8_t *to, const uint8_t *from, size_t size, size_t stride);
uint64_t byte_roughness(const uint8_t *data, size_t size);

/* match.c */
size_t match_length(const uint8_t *a, const uint8_t *b, const uint8_t *end);
void copy_wide(uint8_t *to, const uint8_t *from, size_t size);
void copy_match(uint8_t *to, size_t distance, size_t size);
uint32_t block_sum(const uint8_t *data, size_t size);

/* pack.c, unpack.c */
extern uint64_t matches_found, literal_bytes;
size_t pack(uint8_t *to, const uint8_t *from, size_t size);
size_t unpack(uint8_t *to, size_t room, const uint8_t *from, size_t size);

#endif
