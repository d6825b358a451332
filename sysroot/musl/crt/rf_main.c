/* The entry of a program: `ringfence run` calls it with the strings and vectors already in the window. */
#include "libc.h"
#include "stdio_impl.h"
#include <stdlib.h>
#include <unistd.h>

int main(int, char **, char **);

/* One lane: no locks are needed, until pthread_create makes another. */
static void single_thread(void)
{
	FILE *const streams[] = {stdin, stdout, stderr};
	libc.threaded = 0;
	libc.need_locks = 0;
	for (unsigned i = 0; i < 3; i++)
		streams[i]->lock = -1;
}

__attribute__((visibility("default"))) int __rf_main(int argc, char **argv, char **envp, size_t *auxv)
{
	__environ = envp;
	if (auxv)
		libc.auxv = auxv;
	if (argc > 0 && argv[0]) {
		__progname = __progname_full = argv[0];
		for (char *p = argv[0]; *p; p++)
			if (*p == '/')
				__progname = p + 1;
	}
	single_thread();
	exit(main(argc, argv, envp));
}
