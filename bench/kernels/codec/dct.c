/* The cosine transform in integers, even and odd parts apart, with quantisation. */
#include "codec.h"

int quality = 4;

/* cos(k π / 16) / 2, in 1/8192 */
static const int32_t cosine[8] = {2896, 4017, 3784, 3406, 2896, 2276, 1567, 799};

static const uint8_t steps[AREA] = {
    16, 11, 10, 16, 24,  40,  51,  61,  12, 12, 14, 19, 26,  58,  60,  55,
    14, 13, 16, 24, 40,  57,  69,  56,  14, 17, 22, 29, 51,  87,  80,  62,
    18, 22, 37, 56, 68,  109, 103, 77,  24, 35, 55, 64, 81,  104, 113, 92,
    49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99,
};

static void forward(const int32_t *in, int32_t *out, int stride)
{
    int32_t s[4], d[4];
    for (int i = 0; i < 4; i++) {
        s[i] = in[i] + in[7 - i];
        d[i] = in[i] - in[7 - i];
    }
    int32_t outer = s[0] + s[3], inner = s[1] + s[2], p = s[0] - s[3], q = s[1] - s[2];
    out[0 * stride] = ((outer + inner) * cosine[4] + 4096) >> 13;
    out[4 * stride] = ((outer - inner) * cosine[4] + 4096) >> 13;
    out[2 * stride] = (p * cosine[2] + q * cosine[6] + 4096) >> 13;
    out[6 * stride] = (p * cosine[6] - q * cosine[2] + 4096) >> 13;
    out[1 * stride] = (d[0] * cosine[1] + d[1] * cosine[3] + d[2] * cosine[5] + d[3] * cosine[7] + 4096) >> 13;
    out[3 * stride] = (d[0] * cosine[3] - d[1] * cosine[7] - d[2] * cosine[1] - d[3] * cosine[5] + 4096) >> 13;
    out[5 * stride] = (d[0] * cosine[5] - d[1] * cosine[1] + d[2] * cosine[7] + d[3] * cosine[3] + 4096) >> 13;
    out[7 * stride] = (d[0] * cosine[7] - d[1] * cosine[5] + d[2] * cosine[3] - d[3] * cosine[1] + 4096) >> 13;
}

static void inverse(const int32_t *in, int32_t *out, int stride)
{
    int32_t even[4], odd[4];
    int32_t a = (in[0] + in[4]) * cosine[4], b = (in[0] - in[4]) * cosine[4];
    int32_t p = in[2] * cosine[2] + in[6] * cosine[6], q = in[2] * cosine[6] - in[6] * cosine[2];
    even[0] = a + p;
    even[1] = b + q;
    even[2] = b - q;
    even[3] = a - p;
    odd[0] = in[1] * cosine[1] + in[3] * cosine[3] + in[5] * cosine[5] + in[7] * cosine[7];
    odd[1] = in[1] * cosine[3] - in[3] * cosine[7] - in[5] * cosine[1] - in[7] * cosine[5];
    odd[2] = in[1] * cosine[5] - in[3] * cosine[1] + in[5] * cosine[7] + in[7] * cosine[3];
    odd[3] = in[1] * cosine[7] - in[3] * cosine[5] + in[5] * cosine[3] - in[7] * cosine[1];
    for (int i = 0; i < 4; i++) {
        out[i * stride] = (even[i] + odd[i] + 4096) >> 13;
        out[(7 - i) * stride] = (even[i] - odd[i] + 4096) >> 13;
    }
}

static int32_t step_of(int i)
{
    int32_t step = steps[i] * quality / 4;
    return step ? step : 1;
}

void forward_transform(const uint8_t *pixels, int stride, int16_t out[AREA])
{
    int32_t rows[AREA], line[EDGE], both[AREA];
    for (int y = 0; y < EDGE; y++, pixels += stride) {
        for (int x = 0; x < EDGE; x++)
            line[x] = pixels[x] - 128;
        forward(line, rows + y, EDGE); /* turned, so that columns lie in rows */
    }
    for (int x = 0; x < EDGE; x++)
        forward(rows + x * EDGE, both + x, EDGE);
    for (int i = 0; i < AREA; i++) {
        int32_t step = step_of(i), value = both[i];
        out[i] = (int16_t)((value + (value < 0 ? -step : step) / 2) / step);
    }
}

void inverse_transform(const int16_t in[AREA], uint8_t *pixels, int stride)
{
    int32_t rows[AREA], line[EDGE], both[AREA];
    for (int y = 0; y < EDGE; y++) {
        for (int x = 0; x < EDGE; x++)
            line[x] = in[y * EDGE + x] * step_of(y * EDGE + x);
        inverse(line, rows + y, EDGE);
    }
    for (int x = 0; x < EDGE; x++)
        inverse(rows + x * EDGE, both + x, EDGE);
    for (int y = 0; y < EDGE; y++, pixels += stride)
        for (int x = 0; x < EDGE; x++) {
            int32_t value = both[y * EDGE + x] + 128;
            pixels[x] = (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
        }
}
