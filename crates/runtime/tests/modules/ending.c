/* The same in C, for both libcs. */
#include <stdlib.h>

void host_note(long what);

static void registered(void) { host_note(-4); }
__attribute__((constructor)) static void begin(void)
{
	host_note(1);
	atexit(registered);
}
__attribute__((destructor)) static void destructor(void) { host_note(-5); }
__attribute__((destructor(101))) static void early(void) { host_note(-6); }

void leave(void) { exit(3); }
