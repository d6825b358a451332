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

void __rf_fini_array(void);

/* Also when the module is taken away without an exit, behind its own destructors. */
__attribute__((destructor(65534))) static void at_end(void)
{
	while (count)
		handlers[--count]();
}

void exit(int status)
{
	at_end();
	__rf_fini_array();
	__rf_exit(status);
}

void _Exit(int status) { __rf_exit(status); }
