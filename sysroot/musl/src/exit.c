#include <stdlib.h>
#include <unistd.h>
#include "libc.h"

_Noreturn void __rf_exit(int status);
_Noreturn void __rf_abort(int reason);
void __rf_thread_exit(void);
void __rf_fini_array(void);

_Noreturn void _Exit(int status) { __rf_exit(status); }

/* signal.c, if the program has handlers at all. */
void __rf_signal_abort(void) __attribute__((__weak__, __visibility__("hidden")));

_Noreturn void abort(void)
{
	if (__rf_signal_abort)
		__rf_signal_abort();
	__rf_abort(0);
}

volatile int __abort_lock[1];

/* As in musl, where these are linked if there is something for them to do. */
static void dummy(void) {}
weak_alias(dummy, __funcs_on_exit);
weak_alias(dummy, __stdio_exit);
void __funcs_on_exit(void);
void __stdio_exit(void);

_Noreturn void exit(int status)
{
	__rf_thread_exit();
	__funcs_on_exit();
	__rf_fini_array();
	__stdio_exit();
	_Exit(status);
}
