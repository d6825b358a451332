/* Calls into another domain. */
extern long other(long a, long b);
extern long broken(long a, long b);
long through(long a, long b) { return other(a, b) * 2; }
long to_broken(long a, long b) { return broken(a, b) + 1; }
