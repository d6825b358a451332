/* Every level and acceleration, partial output, damaged input. */
#include "rfcheck.h"
#include <lz4.h>
#include <lz4frame.h>
#include <lz4hc.h>

#define SIZE (4 << 20)

int main(int argc, char **argv)
{
	(void)argv;
	int room = LZ4_compressBound(SIZE), size = 0;
	char *plain = malloc(SIZE), *packed = malloc((size_t)room), *back = malloc(SIZE);
	RF_REQUIRE(plain && packed && back);
	rf_text((unsigned char *)plain, SIZE, 11);
	if (argc > 1) {
		RF_BENCH("compress", 20, size = LZ4_compress_default(plain, packed, SIZE, room));
		RF_BENCH("decompress", 40, RF_REQUIRE(LZ4_decompress_safe(packed, back, size, SIZE) == SIZE));
		RF_BENCH("compress-hc", 2, size = LZ4_compress_HC(plain, packed, SIZE, room, 9));
		return 0;
	}
	rf_noise((unsigned char *)plain + 700000, 300000, 4);
	memset(plain + 1100000, 0, 500000);
	for (int acceleration = 1; acceleration < 40; acceleration += 6) {
		size = LZ4_compress_fast(plain, packed, SIZE, room, acceleration);
		RF_REQUIRE(LZ4_decompress_safe(packed, back, size, SIZE) == SIZE && !memcmp(plain, back, SIZE));
		printf("fast %d: %d %016llx\n", acceleration, size, (unsigned long long)rf_digest(packed, (size_t)size));
	}
	for (int level = 1; level <= 12; level++) {
		size = LZ4_compress_HC(plain, packed, SIZE / 2, room, level);
		RF_REQUIRE(LZ4_decompress_safe(packed, back, size, SIZE) == SIZE / 2 && !memcmp(plain, back, SIZE / 2));
		printf("hc %d: %d %016llx\n", level, size, (unsigned long long)rf_digest(packed, (size_t)size));
	}
	size = LZ4_compress_default(plain, packed, 200000, room);
	uint64_t seed = 9;
	for (int i = 0; i < 200; i++) {
		int part = (int)(rf_random(&seed) % 200000);
		int r = LZ4_decompress_safe_partial(packed, back, size, part, 200000);
		RF_REQUIRE(r >= part && !memcmp(plain, back, (size_t)part));
		size_t at = rf_random(&seed) % (size_t)size;
		packed[at] ^= 1;
		printf("damage: %d\n", LZ4_decompress_safe(packed, back, size, 200000));
		packed[at] ^= 1;
	}
	return 0;
}
