/* A second module: in one domain with the first, or in a domain of its own. */
extern long add(long a, long b);
extern int counter;
extern long failing(void);
_Thread_local long second_local = 11;
long add_twice(long a, long b) { return add(add(a, b), b); }
int counter_of_first(void) { return counter; }
long local_next(void) { return second_local++; }
