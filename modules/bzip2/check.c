/* Block sizes and work factors, pieces, damaged input. */
#include "rfcheck.h"
#include <bzlib.h>

#define SIZE (2u << 20)

void bz_internal_error(int code)
{
	printf("internal error %d\n", code);
	abort();
}

int main(int argc, char **argv)
{
	(void)argv;
	unsigned room = SIZE + SIZE / 50 + 1000, size, n;
	char *plain = malloc(SIZE), *packed = malloc(room), *back = malloc(SIZE);
	RF_REQUIRE(plain && packed && back);
	rf_text((unsigned char *)plain, SIZE, 3);
	if (argc > 1) {
		size = room;
		RF_BENCH("compress", 3, size = room; RF_REQUIRE(!BZ2_bzBuffToBuffCompress(packed, &size, plain, SIZE, 9, 0, 0)));
		RF_BENCH("decompress", 5, n = SIZE; RF_REQUIRE(!BZ2_bzBuffToBuffDecompress(back, &n, packed, size, 0, 0)));
		return 0;
	}
	rf_noise((unsigned char *)plain + 500000, 60000, 4);
	memset(plain + 600000, 'q', 300000);
	for (int block = 1; block <= 9; block += 2)
		for (int work = 0; work <= 250; work += 125) {
			size = room;
			n = SIZE;
			RF_REQUIRE(BZ2_bzBuffToBuffCompress(packed, &size, plain, SIZE, block, 0, work) == BZ_OK);
			RF_REQUIRE(BZ2_bzBuffToBuffDecompress(back, &n, packed, size, work != 0, 0) == BZ_OK);
			RF_REQUIRE(n == SIZE && !memcmp(plain, back, SIZE));
			printf("block %d work %d: %u %016llx\n", block, work, size, (unsigned long long)rf_digest(packed, size));
		}
	size = room;
	RF_REQUIRE(BZ2_bzBuffToBuffCompress(packed, &size, plain, 300000, 1, 0, 0) == BZ_OK);
	char *copy = malloc(size);
	memcpy(copy, packed, size);
	uint64_t seed = 5;
	for (int i = 0; i < 100; i++) {
		memcpy(packed, copy, size);
		packed[rf_random(&seed) % size] ^= (char)(1 << (rf_random(&seed) & 7));
		n = SIZE;
		int r = BZ2_bzBuffToBuffDecompress(back, &n, packed, i & 1 ? size : (unsigned)(rf_random(&seed) % size), 0, 0);
		printf("damage: %d %u\n", r, n);
	}
	return 0;
}
