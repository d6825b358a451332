/* Pictures through a codec and back: two passes to encode, one to decode. */
#include "codec.h"

enum { WIDTH = AMOUNT(512, 64), HEIGHT = AMOUNT(256, 32), BLOCKS = WIDTH * HEIGHT / AREA };

static uint8_t picture[HEIGHT * WIDTH], decoded[HEIGHT * WIDTH], stream[HEIGHT * WIDTH * 4];
static int16_t blocks[BLOCKS][AREA];
static struct codes codes;

static void count_symbol(void *context, int symbol, uint32_t value, int count)
{
    uint32_t *frequency = context;
    (void)value;
    (void)count;
    frequency[symbol]++;
}

static void write_symbol(void *context, int symbol, uint32_t value, int count)
{
    struct bits *bits = context;
    bits_put(bits, codes.code[symbol], codes.length[symbol]);
    bits_put(bits, value, count);
}

static size_t encode(void)
{
    uint32_t frequency[SYMBOLS] = {0};
    struct bits bits;
    int last = 0;
    for (int b = 0; b < BLOCKS; b++) {
        int x = b % (WIDTH / EDGE) * EDGE, y = b / (WIDTH / EDGE) * EDGE;
        forward_transform(picture + y * WIDTH + x, WIDTH, blocks[b]);
        block_symbols(blocks[b], &last, count_symbol, frequency);
    }
    codes_make(&codes, frequency);
    bits_begin(&bits, stream, sizeof stream);
    for (int s = 0; s < SYMBOLS; s++)
        bits_put(&bits, codes.length[s], 4);
    last = 0;
    for (int b = 0; b < BLOCKS; b++)
        block_symbols(blocks[b], &last, write_symbol, &bits);
    bits_flush(&bits);
    return (size_t)(bits.at - stream);
}

static void decode(size_t size)
{
    struct bits bits;
    int16_t block[AREA];
    int last = 0;
    bits_begin(&bits, stream, size);
    for (int s = 0; s < SYMBOLS; s++) {
        codes.length[s] = (uint8_t)bits_peek(&bits, 4);
        bits_drop(&bits, 4);
    }
    codes_number(&codes);
    codes_fill_lookup(&codes);
    for (int b = 0; b < BLOCKS; b++) {
        int x = b % (WIDTH / EDGE) * EDGE, y = b / (WIDTH / EDGE) * EDGE;
        block_read(block, &last, &codes, &bits);
        REQUIRE(!memcmp(block, blocks[b], sizeof block));
        inverse_transform(block, decoded + y * WIDTH + x, WIDTH);
    }
}

/* Slopes, edges, and a little noise. */
static void draw(uint64_t *random)
{
    uint64_t r = next_random(random);
    int cx = (int)(r % WIDTH), cy = (int)((r >> 20) % HEIGHT), slope = (int)(r >> 60) + 1;
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++) {
            int dx = x - cx, dy = y - cy, value = (x * slope + y * 3) / 8;
            if (dx * dx + dy * dy < HEIGHT * HEIGHT / 9)
                value = 255 - value / 2;
            if ((x ^ y) & 64)
                value += (int)(next_random(random) >> 60);
            picture[y * WIDTH + x] = (uint8_t)(value & 255);
        }
}

WORKLOAD(codec)
{
    uint64_t random = 113, sum = 1;
    for (uint64_t round = 0; round < part(AMOUNT(90, 6), permille); round++) {
        draw(&random);
        quality = 2 + (int)(round % 3) * 3;
        size_t size = encode();
        decode(size);
        uint64_t error = 0;
        for (int i = 0; i < WIDTH * HEIGHT; i++)
            error += (uint64_t)((picture[i] - decoded[i]) * (picture[i] - decoded[i]));
        REQUIRE(error / (WIDTH * HEIGHT) < 400);
        sum = mix(mix(sum, size), error);
        for (size_t i = 0; i < size; i += 7)
            sum = mix(sum, stream[i]);
    }
    return sum;
}
