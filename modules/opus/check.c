/* Speech, music and noise through the coder at every rate and application, packets lost and damaged, and repacketised. */
#include "rfcheck.h"
#include <opus.h>

#define RATE 48000
#define SECONDS 4

static opus_int16 sound[RATE * SECONDS * 2], heard[RATE * SECONDS * 2];

/* Tones whose pitch and strength change, and noise; in integers, so that they are the same everywhere. */
static void tune(int channels, uint64_t seed)
{
	uint32_t phase[5] = {0};
	for (int i = 0; i < RATE * SECONDS; i++)
		for (int c = 0; c < channels; c++) {
			int value = (int)(rf_random(&seed) % 600) - 300;
			for (int k = 0; k < 5; k++) {
				phase[k] += (uint32_t)((k + 1) * (9000000 + (i >> 12) % 7 * 700000 + c * 1000));
				int32_t saw = (int32_t)phase[k] >> 16;
				int32_t hump = saw * (32767 - abs(saw)) / 8192; /* nearly a sine */
				value += hump * ((i >> 11) % (k + 3)) / 40;
			}
			sound[i * channels + c] = (opus_int16)(value > 32767 ? 32767 : value < -32768 ? -32768 : value);
		}
}

struct packets {
	int count, size[RATE * SECONDS / 120];
	unsigned char data[400000];
};
static struct packets packets;

static void encode(int rate, int channels, int application, int bitrate, int milliseconds, int complexity)
{
	int error, frame = rate * milliseconds / 1000, step = RATE / rate;
	OpusEncoder *e = opus_encoder_create(rate, channels, application, &error);
	RF_REQUIRE(e && error == OPUS_OK);
	opus_encoder_ctl(e, OPUS_SET_BITRATE(bitrate));
	opus_encoder_ctl(e, OPUS_SET_COMPLEXITY(complexity));
	opus_encoder_ctl(e, OPUS_SET_INBAND_FEC(1));
	static opus_int16 part[RATE / 10];
	size_t used = 0;
	packets.count = 0;
	for (int at = 0; at + frame * step <= RATE * SECONDS; at += frame * step) {
		for (int i = 0; i < frame * channels; i++)
			part[i] = sound[(at + i / channels * step) * channels + i % channels];
		int n = opus_encode(e, part, frame, packets.data + used, (opus_int32)(sizeof packets.data - used));
		RF_REQUIRE(n > 0);
		packets.size[packets.count++] = n;
		used += (size_t)n;
	}
	opus_encoder_destroy(e);
}

/* A digest of what is heard; every `lost`th packet does not arrive. */
static uint64_t decode(int rate, int channels, int lost)
{
	int error;
	OpusDecoder *d = opus_decoder_create(rate, channels, &error);
	RF_REQUIRE(d && error == OPUS_OK);
	uint64_t digest = 0;
	size_t at = 0;
	int frame = 0;
	for (int i = 0; i < packets.count; i++) {
		int gone = lost && i % lost == lost - 1;
		int n = opus_decode(d, gone ? NULL : packets.data + at, gone ? 0 : packets.size[i], heard, gone ? frame : RATE / 8, 0);
		if (n > 0)
			frame = n;
		digest = digest * 31 + (n < 0 ? (uint64_t)-n : rf_digest(heard, (size_t)n * (size_t)channels * sizeof *heard));
		at += (size_t)packets.size[i];
	}
	opus_decoder_destroy(d);
	return digest;
}

static void check(void)
{
	static const int rates[] = {8000, 12000, 16000, 24000, 48000}, applications[] = {OPUS_APPLICATION_VOIP, OPUS_APPLICATION_AUDIO, OPUS_APPLICATION_RESTRICTED_LOWDELAY};
	for (int channels = 1; channels <= 2; channels++) {
		tune(channels, 91);
		for (int r = 0; r < 5; r++)
			for (int a = 0; a < 3; a++) {
				int bitrate = 8000 + 14000 * r * channels, ms = a == 2 ? 10 : 20;
				encode(rates[r], channels, applications[a], bitrate, ms, 3 * a + r / 2);
				size_t all = 0;
				for (int i = 0; i < packets.count; i++)
					all += (size_t)packets.size[i];
				printf("%d Hz, %d channels, application %d: %zu %016llx", rates[r], channels, a, all, (unsigned long long)rf_digest(packets.data, all));
				printf(" %016llx lost %016llx", (unsigned long long)decode(rates[r], channels, 0), (unsigned long long)decode(48000, channels, 5));
				uint64_t seed = 92;
				for (int i = 0; i < 40; i++)
					packets.data[rf_random(&seed) % all] ^= (unsigned char)(1 + rf_random(&seed) % 255);
				printf(" damaged %016llx\n", (unsigned long long)decode(rates[r], channels, 0));
			}
	}
	OpusRepacketizer *r = opus_repacketizer_create();
	encode(48000, 2, OPUS_APPLICATION_AUDIO, 64000, 20, 5);
	int bytes = 0;
	for (int i = 0; i < 3; i++) {
		RF_REQUIRE(opus_repacketizer_cat(r, packets.data + bytes, packets.size[i]) == OPUS_OK);
		bytes += packets.size[i];
	}
	unsigned char together[4000];
	int n = opus_repacketizer_out(r, together, sizeof together);
	printf("three in one: %d %016llx, %d frames\n", n, (unsigned long long)rf_digest(together, (size_t)n), opus_packet_get_nb_frames(together, n));
	opus_repacketizer_destroy(r);
}

int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1) {
		tune(2, 93);
		RF_BENCH("encode", 5, encode(48000, 2, OPUS_APPLICATION_AUDIO, 96000, 20, 9));
		RF_BENCH("decode", 7, decode(48000, 2, 0));
		tune(1, 93);
		RF_BENCH("encode-speech", 5, encode(16000, 1, OPUS_APPLICATION_VOIP, 20000, 20, 8));
		return 0;
	}
	check();
	return 0;
}
