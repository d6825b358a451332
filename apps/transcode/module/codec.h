/* The picture's way through the module: input from the host, a decoder, rows that are made smaller as they come, an encoder, output to
 * the host. One picture at a time; the host resets the domain behind each. */
#ifndef TRANSCODE_CODEC_H
#define TRANSCODE_CODEC_H

#include "../functions/picture.h"
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

/* How a step ended; `src/codec.rs` has the same numbers. */
enum status {
	DONE,
	MALFORMED,  /* the library refuses the picture; `transcode_message` is its reason */
	UNKNOWN,    /* no format that is decoded here */
	TOO_LARGE,  /* more pixels than the host allows */
	NO_MEMORY,  /* the library got none */
	NO_INPUT,   /* the host's function for input failed: it knows why */
	NO_OUTPUT,  /* the host's function for output failed: it knows why */
};

/* `src/codec.rs` has the same numbers. */
enum format { JPEG = 1, PNG, WEBP, PNM };

/* Where a step gives up: `stop` jumps there. */
extern jmp_buf stopped;
/* Ends the step. */
void stop(enum status, const char *message) __attribute__((noreturn));

/* What has come of the input and is not read yet. */
struct input {
	const unsigned char *at;
	size_t left;
};
extern struct input input;
/* Gets more of the input when nothing is left: 0 at its end. */
size_t input_more(void);
/* Reads exactly so many bytes; 0 if the input ends before. */
int input_take(void *into, size_t n);

/* Sends to the host. */
void output(const void *from, size_t n);

/* Memory that `transcode_clear` frees, whatever happens in between. */
void *keep(size_t n);

/* Stops if the host does not allow so many pixels. */
void allow(uint64_t width, uint64_t height);
/* The size that the host wants of a picture of this size; never a larger one. */
void wanted(int width, int height, int *to_width, int *to_height);

/* Rows of a decoded picture, from the top; they become the picture of the wanted size. */
void rows_begin(int width, int height, int channels, int to_width, int to_height);
/* Where the next row is to be put. */
unsigned char *rows_next(void);
/* It was put there. */
void rows_done(void);

/* A row of the picture without opacity, on white. */
const unsigned char *opaque(const struct picture *, int y, unsigned char *room);

void jpeg_decode(void);
void png_decode(void);
void webp_decode(void);
void pnm_decode(void);
void jpeg_encode(const struct picture *, int quality);
void png_encode(const struct picture *);
void webp_encode(const struct picture *, int quality);
void pnm_encode(const struct picture *);
/* Free what the libraries hold. */
void jpeg_clear(void);
void png_clear(void);
void webp_clear(void);

/* The picture that is on its way. */
extern struct picture transcode_picture;

#endif
