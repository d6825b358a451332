/* The libc's state as it is before, and without, any start-up code: a library module has none. */
#include "libc.h"
#include "pthread_impl.h"
#include <elf.h>

static size_t no_auxv[2];

struct __libc __libc = {
	/* Several lanes may be inside at once, from the first call on. Start-up code of programs relaxes it. */
	.threaded = 1,
	.need_locks = 1,
	.auxv = no_auxv,
	.page_size = 4096,
};

size_t __hwcap;
size_t __sysinfo;
char *__progname = "", *__progname_full = "";
weak_alias(__progname, program_invocation_short_name);
weak_alias(__progname_full, program_invocation_name);
