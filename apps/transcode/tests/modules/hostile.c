/* A decoder with the interface of ../../module, which does what the first byte of its input says. */
#define _GNU_SOURCE
#include <ringfence/module.h>
#include <stdlib.h>
#include <string.h>

RF_IMPORT(long, transcode_read, (void *into, unsigned long room))
RF_IMPORT(int, transcode_write, (const void *from, unsigned long n))

struct picture {
	unsigned char *pixels;
	long stride;
	int width, height, channels;
};

RF_EXPORT struct picture transcode_picture;
RF_EXPORT char transcode_message[200];
RF_EXPORT int transcode_format = 4;

#define MARK "a mark of the first client's"
#define ROOM (1 << 20)

static unsigned char input[4096];
static unsigned char data[ROOM];
static unsigned char pixel[3];

static __attribute__((noinline)) void crash_here(volatile int *at) { *at = 1; }

static __attribute__((noinline)) int on_stack(int plant)
{
	volatile unsigned char room[200000];
	unsigned found = 0;
	for (unsigned i = 0; i + sizeof MARK <= sizeof room; i += sizeof MARK)
		for (unsigned c = 0; c < sizeof MARK; c++) {
			if (plant)
				room[i + c] = (unsigned char)MARK[c];
			found += room[i + c] == (unsigned char)MARK[c] && MARK[c];
		}
	return found > sizeof room / 2;
}

static int search(const unsigned char *room)
{
	return memmem(room, ROOM, MARK, sizeof MARK) != NULL;
}

RF_EXPORT int transcode_decode(int width, int height, unsigned long pixels)
{
	long n = transcode_read(input, sizeof input);
	unsigned char *heap;
	(void)width, (void)height, (void)pixels;
	switch (n > 0 ? input[0] : 0) {
	case 'F':
		crash_here((volatile int *)24);
		break;
	case 'L':
		for (volatile int i = 0;; i++)
			;
	case 'P': /* plants marks wherever it can */
		heap = malloc(ROOM);
		for (int i = 0; i + (int)sizeof MARK <= ROOM; i += (int)sizeof MARK) {
			memcpy(heap + i, MARK, sizeof MARK);
			memcpy(data + i, MARK, sizeof MARK);
		}
		if (!on_stack(1))
			return 1;
		break;
	case 'S': /* looks for them */
		heap = malloc(ROOM);
		strcpy(transcode_message, "found:");
		if (search(data))
			strcat(transcode_message, " data");
		if (heap && search(heap))
			strcat(transcode_message, " heap");
		if (on_stack(0))
			strcat(transcode_message, " stack");
		return 1;
	case 'A': /* no such answer */
		return 77;
	case 'W': /* a picture that is not there */
		transcode_picture = (struct picture){(unsigned char *)4096, 3000, 1000, 1000, 3};
		return 0;
	case 'H': /* more than it may */
		transcode_picture = (struct picture){pixel, 3, 1 << 20, 1 << 20, 3};
		return 0;
	default:
		break;
	}
	transcode_picture = (struct picture){pixel, 3, 1, 1, 3};
	return 0;
}

RF_EXPORT void *transcode_room(unsigned long n) { return malloc(n); }
RF_EXPORT void transcode_clear(void) {}
RF_EXPORT int transcode_encode(int format, int quality)
{
	(void)format, (void)quality;
	return transcode_write("P6 1 1 255\nabc", 14) ? 6 : 0;
}
