// Many constructors and destructors: each may be short, and all together take long. The host says how long each spins.

__attribute__((visibility("default"))) volatile unsigned long rounds_first = ROUNDS_FIRST, rounds_last = ROUNDS_LAST;
__attribute__((visibility("default"))) volatile unsigned long count_first, count_last;

static void spin(unsigned long rounds)
{
	for (unsigned long i = 0; i < rounds; i++)
		__asm__ volatile("" ::: "memory");
}

static void first(void)
{
	count_first++;
	spin(rounds_first);
}

static void last(void)
{
	count_last++;
	spin(rounds_last);
}

typedef void (*function)(void);
__attribute__((section(".init_array"), used)) static const function firsts[MANY] = { [0 ... MANY - 1] = first };
__attribute__((section(".fini_array"), used)) static const function lasts[MANY] = { [0 ... MANY - 1] = last };

__attribute__((visibility("default"))) unsigned long firsts_run(void)
{
	return count_first;
}
