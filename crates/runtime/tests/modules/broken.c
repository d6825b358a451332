/* Its constructors do as the first module's `counter` says, its destructor fails. */
extern int counter;
long done;
__attribute__((constructor)) static void first(void) { done++; }
__attribute__((constructor)) static void second(void)
{
	if (counter == 77)
		*(volatile long *)16 = 1;
}
__attribute__((destructor)) static void last(void) { *(volatile long *)24 = 1; }
long how_many(void) { return done; }
