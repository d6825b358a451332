/* The functions of DT_FINI_ARRAY, for exit(): last first, none twice, also if one of them calls exit() again. The runtime calls them
 * itself when a module is taken away. The link script of modules names the array's ends. */
extern void (*const __fini_array_start[])(void) __attribute__((visibility("hidden")));
extern void (*const __fini_array_end[])(void) __attribute__((visibility("hidden")));

void __rf_fini_array(void)
{
	static unsigned long left;
	static int begun;

	if (!begun) {
		begun = 1;
		left = __fini_array_end - __fini_array_start;
	}
	while (left)
		__fini_array_start[--left]();
}
