/* All levels, streaming in pieces, a trained dictionary, damaged input. */
#include "rfcheck.h"
#include <zdict.h>
#include <zstd.h>
#include <zstd_errors.h>

#define SIZE (2u << 20)

static unsigned char *plain, *packed, *back;
static size_t room;

static size_t stream(int level, size_t n, size_t piece, int checksum)
{
	ZSTD_CCtx *c = ZSTD_createCCtx();
	RF_REQUIRE(c);
	ZSTD_CCtx_setParameter(c, ZSTD_c_compressionLevel, level);
	ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, checksum);
	ZSTD_CCtx_setParameter(c, ZSTD_c_enableLongDistanceMatching, level & 1);
	ZSTD_outBuffer out = {packed, room, 0};
	for (size_t at = 0; at < n;) {
		size_t k = n - at < piece ? n - at : piece;
		ZSTD_inBuffer in = {plain + at, k, 0};
		at += k;
		size_t left;
		do {
			left = ZSTD_compressStream2(c, &out, &in, at == n ? ZSTD_e_end : ZSTD_e_continue);
			RF_REQUIRE(!ZSTD_isError(left));
		} while (in.pos < in.size || (at == n && left));
	}
	ZSTD_freeCCtx(c);
	ZSTD_DCtx *d = ZSTD_createDCtx();
	ZSTD_outBuffer o = {back, SIZE, 0};
	for (size_t at = 0; at < out.pos;) {
		size_t k = out.pos - at < piece ? out.pos - at : piece;
		ZSTD_inBuffer in = {packed + at, k, 0};
		while (in.pos < in.size)
			RF_REQUIRE(!ZSTD_isError(ZSTD_decompressStream(d, &o, &in)));
		at += k;
	}
	ZSTD_freeDCtx(d);
	RF_REQUIRE(o.pos == n && !memcmp(plain, back, n));
	return out.pos;
}

static void dictionary(void)
{
	size_t sizes[500];
	for (int i = 0; i < 500; i++)
		sizes[i] = 800 + (size_t)i;
	static unsigned char dict[16384];
	size_t n = ZDICT_trainFromBuffer(dict, sizeof dict, plain, sizes, 500);
	printf("dictionary: %s %016llx\n", ZDICT_isError(n) ? ZDICT_getErrorName(n) : "trained",
	       ZDICT_isError(n) ? 0ULL : (unsigned long long)rf_digest(dict, n));
	if (ZDICT_isError(n))
		return;
	ZSTD_CCtx *c = ZSTD_createCCtx();
	ZSTD_DCtx *d = ZSTD_createDCtx();
	for (int level = 1; level < 20; level += 3) {
		size_t size = ZSTD_compress_usingDict(c, packed, room, plain + 600000, 3000, dict, n, level);
		RF_REQUIRE(!ZSTD_isError(size));
		RF_REQUIRE(ZSTD_decompress_usingDict(d, back, SIZE, packed, size, dict, n) == 3000 && !memcmp(back, plain + 600000, 3000));
		printf("with it, level %d: %zu %016llx\n", level, size, (unsigned long long)rf_digest(packed, size));
	}
	ZSTD_freeCCtx(c);
	ZSTD_freeDCtx(d);
}

int main(int argc, char **argv)
{
	(void)argv;
	room = ZSTD_compressBound(SIZE) + 1000;
	plain = malloc(SIZE);
	packed = malloc(room);
	back = malloc(SIZE);
	RF_REQUIRE(plain && packed && back);
	rf_text(plain, SIZE, 21);
	size_t size = 0;
	if (argc > 1) {
		RF_BENCH("compress-3", 10, size = ZSTD_compress(packed, room, plain, SIZE, 3));
		RF_BENCH("decompress", 30, RF_REQUIRE(ZSTD_decompress(back, SIZE, packed, size) == SIZE));
		RF_BENCH("compress-15", 1, size = ZSTD_compress(packed, room, plain, SIZE, 15));
		return 0;
	}
	printf("zstd %s\n", ZSTD_versionString());
	rf_noise(plain + 700000, 100000, 22);
	memset(plain + 900000, 1, 200000);
	for (int level = -5; level <= 19; level++) {
		size_t n = level > 12 ? SIZE / 4 : SIZE;
		size = ZSTD_compress(packed, room, plain, n, level);
		RF_REQUIRE(!ZSTD_isError(size));
		RF_REQUIRE(ZSTD_decompress(back, SIZE, packed, size) == n && !memcmp(plain, back, n));
		printf("level %d: %zu %016llx\n", level, size, (unsigned long long)rf_digest(packed, size));
	}
	for (int level = 1; level <= 12; level += 2) {
		size = stream(level, 600000, level & 2 ? 1000 : 77777, level & 4);
		printf("stream %d: %zu %016llx\n", level, size, (unsigned long long)rf_digest(packed, size));
	}
	dictionary();
	size = ZSTD_compress(packed, room, plain, 100000, 5);
	uint64_t seed = 23;
	for (int i = 0; i < 200; i++) {
		size_t at = rf_random(&seed) % size, r;
		unsigned char bit = (unsigned char)(1u << (rf_random(&seed) & 7));
		packed[at] ^= bit;
		r = ZSTD_decompress(back, SIZE, packed, size);
		printf("damage: %s\n", ZSTD_isError(r) ? ZSTD_getErrorName(r) : "undetected");
		packed[at] ^= bit;
	}
	return 0;
}
