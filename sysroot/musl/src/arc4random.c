// Random numbers as the BSDs and the GNU C library have them: from the system each time, so that a copy of the process has others.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

void arc4random_buf(void *buffer, size_t length)
{
	for (unsigned char *at = buffer; length;) {
		ssize_t got = getrandom(at, length, 0);
		// There is no answer but random numbers: without a grant the program ends, as natively without a source.
		if (got <= 0) abort();
		at += got;
		length -= got;
	}
}

uint32_t arc4random(void)
{
	uint32_t value;
	arc4random_buf(&value, sizeof value);
	return value;
}

uint32_t arc4random_uniform(uint32_t bound)
{
	uint32_t value, below = bound ? -bound % bound : 0;
	// What is left of 2^32 when `bound` fits in no more would make small numbers likelier.
	do value = arc4random();
	while (value < below);
	return bound ? value % bound : 0;
}
