/* Music in stereo and speech through an audio codec, there and back. */
#include "kernel.h"
#include "rfcheck.h"
#include <opus.h>
#include <stdlib.h>

#define RATE 48000
#define FRAME (RATE / 50)
#define FRAMES AMOUNT(100, 1)

static opus_int16 sound[FRAME * FRAMES * 2], heard[FRAME * 6 * 2];
static unsigned char data[FRAMES * 1500];
static int sizes[FRAMES];

/* Tones whose pitch and strength change, and noise; in integers, so that they are the same everywhere. */
static void tune(void)
{
    uint64_t seed = 94;
    uint32_t phase[5] = {0};
    for (int i = 0; i < FRAME * FRAMES * 2; i++) {
        int value = (int)(rf_random(&seed) % 600) - 300;
        for (int k = 0; k < 5; k++) {
            phase[k] += (uint32_t)((k + 1) * (9000000 + (i >> 13) % 7 * 700000));
            int32_t saw = (int32_t)phase[k] >> 16;
            int32_t hump = saw * (32767 - abs(saw)) / 8192; // nearly a sine
            value += hump * ((i >> 12) % (k + 3)) / 40;
        }
        sound[i] = (opus_int16)(value > 32767 ? 32767 : value < -32768 ? -32768 : value);
    }
}

static size_t encode(int rate, int channels, int application, int bitrate)
{
    int error, frame = rate / 50;
    OpusEncoder *e = opus_encoder_create(rate, channels, application, &error);
    REQUIRE(e);
    opus_encoder_ctl(e, OPUS_SET_BITRATE(bitrate));
    size_t used = 0;
    for (int i = 0; i < FRAMES; i++) {
        sizes[i] = opus_encode(e, sound + i * frame * channels, frame, data + used, 1500);
        REQUIRE(sizes[i] > 0);
        used += (size_t)sizes[i];
    }
    opus_encoder_destroy(e);
    return used;
}

static uint64_t decode(int rate, int channels)
{
    int error;
    OpusDecoder *d = opus_decoder_create(rate, channels, &error);
    REQUIRE(d);
    uint64_t sum = 1;
    const unsigned char *p = data;
    for (int i = 0; i < FRAMES; i++) {
        int n = opus_decode(d, p, sizes[i], heard, FRAME * 6, 0);
        REQUIRE(n > 0);
        sum = mix(sum, (uint16_t)heard[(i * 37) % n]);
        p += sizes[i];
    }
    opus_decoder_destroy(d);
    return sum;
}

WORKLOAD(encode)
{
    uint64_t sum = 1;
    tune();
    for (uint64_t round = 0; round < part(9, permille); round++)
        sum = mix(sum, rf_digest(data, encode(RATE, 2, OPUS_APPLICATION_AUDIO, 96000)));
    return sum;
}

WORKLOAD(encode_speech)
{
    uint64_t sum = 1;
    tune();
    for (uint64_t round = 0; round < part(16, permille); round++)
        sum = mix(sum, rf_digest(data, encode(16000, 1, OPUS_APPLICATION_VOIP, 20000)));
    return sum;
}

WORKLOAD(decode)
{
    uint64_t sum = 1;
    tune();
    encode(RATE, 2, OPUS_APPLICATION_AUDIO, 96000);
    for (uint64_t round = 0; round < part(36, permille); round++)
        sum = mix(sum, decode(RATE, 2));
    return sum;
}
