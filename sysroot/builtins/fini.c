/* The functions of DT_FINI_ARRAY, for exit(): last first, none twice, also if one of them calls exit() again. The runtime calls them
 * itself when a module is taken away. */
struct entry {
	long tag;
	unsigned long value;
};
enum { DT_NULL = 0, DT_FINI_ARRAY = 26, DT_FINI_ARRAYSZ = 28 };

extern const struct entry _DYNAMIC[] __attribute__((visibility("hidden")));
extern const char __ehdr_start[] __attribute__((visibility("hidden")));

void __rf_fini_array(void)
{
	static unsigned long left;
	static int begun;
	void (*const *array)(void) = 0;
	unsigned long size = 0;

	for (const struct entry *d = _DYNAMIC; d->tag != DT_NULL; d++) {
		if (d->tag == DT_FINI_ARRAY)
			array = (void (*const *)(void))(__ehdr_start + d->value);
		else if (d->tag == DT_FINI_ARRAYSZ)
			size = d->value;
	}
	if (!begun) {
		begun = 1;
		left = size / sizeof *array;
	}
	while (left)
		array[--left]();
}
