/* What may be there or not. */
__attribute__((weak)) extern int hook(int);
__attribute__((weak)) extern int table[4];
__attribute__((weak, visibility("hidden"))) extern int secret(void);
__attribute__((weak)) int own(int x) { return x + 1; }

int (*pointer)(int) = hook;

int call_hook(int x) { return hook ? hook(x) + 1 : -1; }
int tail_hook(int x) { return hook(x); }
int by_pointer(int x) { return pointer ? pointer(x) : -2; }
int entry_of(int i) { return table ? table[i] : -3; }
int hidden(void) { return secret ? secret() : -4; }
int calls_own(int x) { return own(x); }
