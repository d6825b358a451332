/* Comes to a living domain: with data, read-only data, a table of labels, thread-local variables, constructor and destructor, imports
 * of the module that was there first and of the host. */
extern long add(long a, long b);
extern int counter;
extern long host_add(long a, long b);

static long filled = 40;
long zeroed;
_Thread_local long local = 100;
_Thread_local long local_zero;
static const char text[] = "plugin";
const char *const words[] = {text, text + 3};
long constructed, *ended_at;

__attribute__((constructor)) static void begin(void) { constructed += filled + 2; }
__attribute__((destructor)) static void end(void)
{
	if (ended_at)
		*ended_at += 1;
}

long was_constructed(void) { return constructed; }
long next(void) { return ++filled; }
long next_zeroed(void) { return ++zeroed; }
long next_local(void) { return ++local; }
long next_local_zero(void) { return ++local_zero; }
long letter(long i) { return words[i & 1][0]; }
long of_first(long a, long b) { return add(a, b) + counter; }
long of_host(long a, long b)
{
	long r = host_add(a, b);
	__asm__ volatile("" : "+r"(r)); /* or it is a tail call, and not on the stack */
	return r;
}
void tell_end(long *at) { ended_at = at; }
long fail(long n) { return *(volatile long *)8 + n; }
long spin(void)
{
	for (volatile long i = 0;; i++) {
	}
}
long with_pointer(long (*f)(long, long), long a) { return f(a, 1) + 1; }

long choose(long n)
{
	static const void *const labels[] = {&&one, &&two, &&three};
	const void *volatile to = labels[n % 3];
	goto *to;
one:
	return 11;
two:
	return 22;
three:
	return 33;
}
