/* All levels, strategies and wrappers, streams in pieces, dictionaries, gz files, damaged input. */
#include "rfcheck.h"
#include <zlib.h>

#define SIZE (3u << 20)

static unsigned char *plain, *packed, *back;
static uLong room;

static size_t pack(int level, int bits, int memory, int strategy, size_t n, size_t piece, const char *dictionary)
{
	z_stream s = {0};
	RF_REQUIRE(deflateInit2(&s, level, Z_DEFLATED, bits, memory, strategy) == Z_OK);
	if (dictionary)
		RF_REQUIRE(deflateSetDictionary(&s, (const Bytef *)dictionary, (uInt)strlen(dictionary)) == Z_OK);
	s.next_out = packed;
	s.avail_out = (uInt)room;
	s.next_in = plain;
	int r = Z_OK, flush = 0;
	for (size_t at = 0; at < n;) {
		size_t k = n - at < piece ? n - at : piece;
		s.avail_in = (uInt)k;
		at += k;
		flush++;
		r = deflate(&s, at == n ? Z_FINISH : flush % 7 == 0 ? Z_SYNC_FLUSH : flush % 11 == 0 ? Z_FULL_FLUSH : Z_NO_FLUSH);
		RF_REQUIRE(s.avail_in == 0 && r >= 0);
	}
	RF_REQUIRE(r == Z_STREAM_END);
	size_t total = s.total_out;
	RF_REQUIRE(deflateEnd(&s) == Z_OK);
	return total;
}

static int unpack(size_t packed_size, int bits, size_t n, size_t piece, const char *dictionary)
{
	z_stream s = {0};
	RF_REQUIRE(inflateInit2(&s, bits) == Z_OK);
	if (dictionary && bits < 0)
		RF_REQUIRE(inflateSetDictionary(&s, (const Bytef *)dictionary, (uInt)strlen(dictionary)) == Z_OK);
	s.next_in = packed;
	s.next_out = back;
	int r = Z_OK;
	size_t in = 0, out = 0;
	while (r == Z_OK || r == Z_BUF_ERROR) {
		size_t k = packed_size - in < piece ? packed_size - in : piece, o = n - out < piece ? n - out : piece;
		if (r == Z_BUF_ERROR && !k && !o)
			break;
		s.avail_in = (uInt)k;
		s.avail_out = (uInt)o;
		r = inflate(&s, Z_NO_FLUSH);
		in += k - s.avail_in;
		out += o - s.avail_out;
		if (r == Z_NEED_DICT && dictionary)
			r = inflateSetDictionary(&s, (const Bytef *)dictionary, (uInt)strlen(dictionary));
		if (r == Z_BUF_ERROR && in == packed_size)
			break;
	}
	inflateEnd(&s);
	return r;
}

static void round_trips(void)
{
	static const size_t pieces[] = {SIZE, 65536, 1000, 17};
	for (int level = 0; level <= 9; level++)
		for (int strategy = 0; strategy <= Z_FIXED; strategy++)
			for (int wrap = 0; wrap < 3; wrap++) {
				size_t piece = pieces[(level + strategy + wrap) % 4], n = piece < 100 ? 20000 : piece < 10000 ? 200000 : 700000;
				int bits = wrap == 0 ? 15 : wrap == 1 ? -12 : 15 + 16;
				size_t size = pack(level, bits, 1 + (level + strategy) % 9, strategy, n, piece, NULL);
				memset(back, 0, n);
				int r = unpack(size, bits, n, piece, NULL);
				printf("level %d strategy %d wrap %d: %zu -> %zu %016llx\n", level, strategy, wrap, n, size,
				       (unsigned long long)rf_digest(packed, size));
				RF_REQUIRE(r == Z_STREAM_END && !memcmp(plain, back, n));
			}
}

static void dictionaries(void)
{
	const char *words = "tarinokeshimuloanenisorathulvisade tari noke shimu loan";
	for (int bits = -15; bits <= 15; bits += 30) {
		size_t size = pack(6, bits, 8, 0, 5000, 5000, words);
		RF_REQUIRE(unpack(size, bits, 5000, 700, words) == Z_STREAM_END && !memcmp(plain, back, 5000));
		printf("dictionary: %zu %016llx\n", size, (unsigned long long)rf_digest(packed, size));
	}
}

static void damage(void)
{
	size_t size = pack(6, 15, 8, 0, 100000, 100000, NULL);
	unsigned char *copy = malloc(size);
	memcpy(copy, packed, size);
	uint64_t seed = 7;
	for (int i = 0; i < 400; i++) {
		memcpy(packed, copy, size);
		size_t at = rf_random(&seed) % size;
		packed[at] ^= (unsigned char)(1u << (rf_random(&seed) & 7));
		z_stream s = {0};
		inflateInit(&s);
		s.next_in = packed;
		s.avail_in = (uInt)(i & 1 ? size : at + 1);
		s.next_out = back;
		s.avail_out = 100000;
		int r = inflate(&s, Z_FINISH);
		printf("damage at %zu: %d %lu %s\n", at, r, s.total_out, s.msg ? s.msg : "");
		inflateEnd(&s);
	}
	free(copy);
}

static void checksums(void)
{
	for (size_t n = 0; n < 300000; n = n * 3 / 2 + 1) {
		uLong a = adler32(1, plain, (uInt)n), b = adler32(1, plain + n, (uInt)n);
		uLong c = crc32(0, plain, (uInt)n), d = crc32(0, plain + n, (uInt)n);
		RF_REQUIRE(adler32(1, plain, (uInt)(2 * n)) == adler32_combine(a, b, (z_off_t)n));
		RF_REQUIRE(crc32(0, plain, (uInt)(2 * n)) == crc32_combine(c, d, (z_off_t)n));
		printf("%zu: %08lx %08lx\n", n, a, c);
	}
}

static void files(void)
{
	gzFile f = gzopen("check.gz", "wb9");
	RF_REQUIRE(f);
	RF_REQUIRE(gzwrite(f, plain, 500000) == 500000);
	RF_REQUIRE(gzprintf(f, "%d %s\n", 42, "formatted") > 0);
	RF_REQUIRE(gzclose(f) == Z_OK);
	f = gzopen("check.gz", "rb");
	RF_REQUIRE(f && gzread(f, back, 300000) == 300000 && !memcmp(plain, back, 300000));
	RF_REQUIRE(gzseek(f, 500000, SEEK_SET) == 500000);
	char line[64];
	RF_REQUIRE(gzgets(f, line, sizeof line));
	printf("gz: %s", line);
	RF_REQUIRE(gzclose(f) == Z_OK);
	RF_REQUIRE(!gzopen("missing.gz", "rb"));
}

static void bench(void)
{
	size_t size = 0;
	uLong sum = 0;
	RF_BENCH("deflate-6", 5, size = pack(6, 15, 8, 0, SIZE, SIZE, NULL));
	RF_BENCH("inflate", 20, unpack(size, 15, SIZE, SIZE, NULL));
	RF_BENCH("crc32", 40, sum += crc32(0, plain, SIZE));
	RF_REQUIRE(sum != 1);
}

int main(int argc, char **argv)
{
	(void)argv;
	room = compressBound(SIZE) * 2;
	plain = malloc(SIZE);
	back = malloc(SIZE);
	packed = malloc(room);
	RF_REQUIRE(plain && back && packed);
	rf_text(plain, SIZE, 1);
	rf_noise(plain + 400000, 100000, 2);
	memset(plain + 560000, 'z', 90000);
	if (argc > 1) {
		bench();
		return 0;
	}
	printf("zlib %s\n", zlibVersion());
	round_trips();
	dictionaries();
	damage();
	checksums();
	files();
	return 0;
}
