/* A module without imports and without vector or x87 instructions. */
long same(long a) { return a; }
