/* Lossy and lossless, methods and filters, alpha, incremental decoding, animation, damaged files. */
#include "rfcheck.h"
#include <src/webp/decode.h>
#include <src/webp/encode.h>
#include <src/webp/mux.h>
#include <src/webp/demux.h>

#define W 320
#define H 240

static void picture(unsigned char *p, int w, int h, uint64_t seed)
{
	for (int y = 0; y < h; y++)
		for (int x = 0; x < w; x++, p += 4) {
			unsigned noise = rf_random(&seed) & 7;
			p[0] = (unsigned char)(x + noise);
			p[1] = (unsigned char)(y * 2 + (x * y >> 6));
			p[2] = (unsigned char)((x / 16 + y / 16) % 2 ? 200 : 40 + noise);
			p[3] = (unsigned char)(x > w / 2 ? 255 : y);
		}
}

static size_t encode(const unsigned char *rgba, int w, int h, int lossless, float quality, int method, uint8_t **out)
{
	WebPConfig config;
	WebPPicture pic;
	WebPMemoryWriter writer;
	RF_REQUIRE(WebPConfigInit(&config) && WebPPictureInit(&pic));
	config.lossless = lossless;
	config.quality = quality;
	config.method = method;
	config.use_sharp_yuv = method == 5;
	config.filter_type = method & 1;
	config.segments = 1 + method % 4;
	RF_REQUIRE(WebPValidateConfig(&config));
	pic.width = w;
	pic.height = h;
	pic.use_argb = lossless;
	RF_REQUIRE(WebPPictureImportRGBA(&pic, rgba, w * 4));
	WebPMemoryWriterInit(&writer);
	pic.writer = WebPMemoryWrite;
	pic.custom_ptr = &writer;
	RF_REQUIRE(WebPEncode(&config, &pic));
	WebPPictureFree(&pic);
	*out = writer.mem;
	return writer.size;
}

static unsigned long long decode(const uint8_t *p, size_t n)
{
	int w = 0, h = 0;
	uint8_t *rgba = WebPDecodeRGBA(p, n, &w, &h);
	unsigned long long digest = rgba ? rf_digest(rgba, (size_t)w * (size_t)h * 4) : 0;
	WebPFree(rgba);
	return digest;
}

int main(int argc, char **argv)
{
	(void)argv;
	uint8_t *file;
	size_t n;
	if (argc > 1) {
		unsigned char *large = malloc(1024 * 768 * 4);
		picture(large, 1024, 768, 61);
		int w, h;
		RF_BENCH("encode-lossy", 3, n = encode(large, 1024, 768, 0, 75, 4, &file));
		RF_BENCH("decode-lossy", 8, WebPFree(WebPDecodeRGBA(file, n, &w, &h)));
		RF_BENCH("encode-lossless", 1, n = encode(large, 1024, 768, 1, 50, 2, &file));
		RF_BENCH("decode-lossless", 8, WebPFree(WebPDecodeRGBA(file, n, &w, &h)));
		return 0;
	}
	static unsigned char rgba[W * H * 4];
	picture(rgba, W, H, 62);
	for (int lossless = 0; lossless < 2; lossless++)
		for (int method = 0; method <= 6; method++) {
			n = encode(rgba, W, H, lossless, (float)(20 + method * 12), method, &file);
			printf("lossless %d method %d: %zu %016llx -> %016llx\n", lossless, method, n, (unsigned long long)rf_digest(file, n), decode(file, n));
			WebPIDecoder *d = WebPINewRGB(MODE_BGRA, NULL, 0, 0);
			VP8StatusCode status = VP8_STATUS_SUSPENDED;
			for (size_t at = 0; at < n && status == VP8_STATUS_SUSPENDED; at += 777)
				status = WebPIAppend(d, file + at, n - at < 777 ? n - at : 777);
			int last, w, h, stride;
			uint8_t *p = WebPIDecGetRGB(d, &last, &w, &h, &stride);
			printf("in pieces: %d %016llx\n", status, p ? (unsigned long long)rf_digest(p, (size_t)(stride * h)) : 0ULL);
			WebPIDelete(d);
			WebPMemoryWriterClear(&(WebPMemoryWriter){.mem = file});
		}
	WebPAnimEncoderOptions options;
	RF_REQUIRE(WebPAnimEncoderOptionsInit(&options));
	WebPAnimEncoder *e = WebPAnimEncoderNew(W, H, &options);
	for (int i = 0; i < 4; i++) {
		WebPPicture pic;
		RF_REQUIRE(WebPPictureInit(&pic));
		pic.use_argb = 1;
		pic.width = W;
		pic.height = H;
		memset(rgba + i * 20000, i * 50, 15000);
		RF_REQUIRE(WebPPictureImportRGBA(&pic, rgba, W * 4) && WebPAnimEncoderAdd(e, &pic, i * 100, NULL));
		WebPPictureFree(&pic);
	}
	WebPData animation;
	RF_REQUIRE(WebPAnimEncoderAdd(e, NULL, 400, NULL) && WebPAnimEncoderAssemble(e, &animation));
	printf("animation: %zu %016llx\n", animation.size, (unsigned long long)rf_digest(animation.bytes, animation.size));
	WebPAnimDecoder *d = WebPAnimDecoderNew(&animation, NULL);
	uint8_t *frame;
	int time;
	while (WebPAnimDecoderHasMoreFrames(d) && WebPAnimDecoderGetNext(d, &frame, &time))
		printf("frame at %d: %016llx\n", time, (unsigned long long)rf_digest(frame, W * H * 4));
	WebPAnimDecoderDelete(d);
	WebPAnimEncoderDelete(e);
	WebPDataClear(&animation);
	uint64_t seed = 63;
	for (int lossless = 0; lossless < 2; lossless++) {
		n = encode(rgba, W, H, lossless, 60, 3, &file);
		for (int i = 0; i < 150; i++) {
			size_t at = rf_random(&seed) % n;
			uint8_t old = file[at];
			file[at] = (uint8_t)rf_random(&seed);
			printf("damage at %zu: %016llx\n", at, decode(file, i % 4 ? n : at));
			file[at] = old;
		}
	}
	return 0;
}
