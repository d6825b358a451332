#include "rf.h"
#include <stdlib.h>

static void (*handlers[32])(void);
static unsigned count;

int atexit(void (*f)(void))
{
	if (count == sizeof handlers / sizeof *handlers)
		return -1;
	handlers[count++] = f;
	return 0;
}

void exit(int status)
{
	while (count)
		handlers[--count]();
	__rf_exit(status);
}

void _Exit(int status) { __rf_exit(status); }
