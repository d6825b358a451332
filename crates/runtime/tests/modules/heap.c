/* Allocates, and checks what it wrote. Built several times, with names of their own. */
#include <stdlib.h>
#include <string.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

#define BLOCKS 256
static struct {
	unsigned char *at;
	size_t size;
	unsigned char fill;
} blocks[BLOCKS];

static int holds(unsigned i)
{
	for (size_t n = 0; n < blocks[i].size; n++)
		if (blocks[i].at[n] != blocks[i].fill)
			return 0;
	return 1;
}

/* Block `i` becomes `size` bytes of `fill`; 0 bytes: it goes. 0 if all is well. */
long JOIN(set_, NAME)(long i, long size, long fill)
{
	if (!holds((unsigned)i))
		return 1;
	size_t kept = (size_t)size < blocks[i].size ? (size_t)size : blocks[i].size;
	unsigned char *p = NULL;
	if (size == 0)
		free(blocks[i].at);
	else if (!(p = realloc(blocks[i].at, (size_t)size)))
		return 2;
	for (size_t n = 0; n < kept; n++)
		if (p[n] != blocks[i].fill)
			return 3;
	if (size)
		memset(p, (int)fill, (size_t)size);
	blocks[i].at = p;
	blocks[i].size = (size_t)size;
	blocks[i].fill = (unsigned char)fill;
	return 0;
}

/* How many blocks have lost something. */
long JOIN(lost_, NAME)(void)
{
	long lost = 0;
	for (unsigned i = 0; i < BLOCKS; i++)
		lost += !holds(i);
	return lost;
}

void *JOIN(make_, NAME)(void) { return malloc(100); }
void JOIN(free_, NAME)(void *p) { free(p); }
