/* A codec of pictures in grey: blocks of 8 by 8, cosine transform, quantisation, Huffman codes for each picture. */
#ifndef CODEC_H
#define CODEC_H

#include "kernel.h"

enum { EDGE = 8, AREA = EDGE * EDGE, SYMBOLS = 256, LONGEST = 15 };

/* dct.c */
extern int quality;
void forward_transform(const uint8_t *pixels, int stride, int16_t out[AREA]);
void inverse_transform(const int16_t in[AREA], uint8_t *pixels, int stride);

/* bits.c */
struct bits {
    uint8_t *at, *end;
    uint64_t window;
    int count;
};
void bits_begin(struct bits *bits, uint8_t *memory, size_t size);
void bits_put(struct bits *bits, uint32_t value, int count);
void bits_flush(struct bits *bits);
uint32_t bits_peek(struct bits *bits, int count);
void bits_drop(struct bits *bits, int count);

/* huffman.c: codes in order of their lengths */
struct codes {
    uint8_t length[SYMBOLS];
    uint16_t code[SYMBOLS];
    uint16_t lookup[1 << LONGEST]; /* symbol and length */
};
void codes_make(struct codes *codes, const uint32_t *frequency);
void codes_number(struct codes *codes);
void codes_fill_lookup(struct codes *codes);

/* blocks.c: the runs and values of a block, as symbols and bits */
typedef void symbol_sink(void *context, int symbol, uint32_t value, int count);
extern const uint8_t zigzag[AREA];
void block_symbols(const int16_t block[AREA], int *last, symbol_sink *sink, void *context);
void block_read(int16_t block[AREA], int *last, const struct codes *codes, struct bits *bits);

#endif
