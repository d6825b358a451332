/* Gives what weak.c looks for. */
int table[4] = {5, 6, 7, 8};
int hook(int x) { return x * 10; }
int secret(void) { return 1; }
int own(int x) { return x; }
