/* Replaces musl's: a lane's thread block belongs to the runtime, and modules of one domain share its thread pointer.
 * So the libc keeps its own record of the thread in a thread-local variable, set up when it is first asked for. */
extern __thread __attribute__((__visibility__("hidden"))) struct
{
	char bytes[256];
	int ready;
	volatile int joined; /* set by pthread_join: the thread may go */
	void *end;           /* a thread of pthread_create: where pthread_exit goes */
} __rf_thread __attribute__((__aligned__(16)));

__attribute__((__visibility__("hidden"))) void __rf_thread_init(void);

static inline uintptr_t __get_tp()
{
	if (__builtin_expect(!__rf_thread.ready, 0))
		__rf_thread_init();
	return (uintptr_t)&__rf_thread;
}

#define MC_PC gregs[REG_RIP]
