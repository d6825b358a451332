long f(long x) { return (x ? &x : 0)[0 ? 1 : 2] += "a"[x]++; }
