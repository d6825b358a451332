/* Destructors of a thread's thread_local objects: they run before those of static objects, last made first, in exit() and when the
 * module is taken away (for the thread that does it), or when the module asks for it: a lane ends without the libc being told. */
#include <stdlib.h>

struct destructor {
	struct destructor *next;
	void (*run)(void *);
	void *object;
};

static __thread struct destructor *latest;

int __cxa_thread_atexit_impl(void (*run)(void *), void *object, void *module)
{
	(void)module;
	struct destructor *d = malloc(sizeof *d);
	if (!d)
		abort(); /* as the C++ ABI has it: the object would never be destroyed */
	*d = (struct destructor){latest, run, object};
	latest = d;
	return 0;
}

void __rf_thread_exit(void)
{
	while (latest) {
		struct destructor *d = latest;
		latest = d->next;
		d->run(d->object);
		free(d);
	}
}

/* Libraries are linked behind the program, and what is linked last ends first. */
static __attribute__((destructor)) void at_end(void) { __rf_thread_exit(); }
