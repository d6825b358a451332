/* What a function gets, and may change: where the pixels are, how they lie, how many there are. It stands in front of each text. */
struct picture {
	unsigned char *pixels;       /* rows from the top; others may be put here, in memory from `room` */
	long stride;                 /* bytes from a row to the next */
	int width, height;           /* in pixels */
	int channels;                /* bytes of a pixel: 1 grey, 3 red, green, blue, 4 with opacity */
};
void *room(unsigned long length);   /* memory that goes with the picture */
void *malloc(unsigned long length); /* memory that stays */
void free(void *memory);
