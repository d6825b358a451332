/* Numbers in text, a small stack machine, a hash table. */
typedef struct node { struct node *next; long key; int count; } node;
static node pool[128]; static node *buckets[16]; static int used;
static node *find(long key) { node **at = &buckets[(unsigned long)key * 2654435761u >> 7 & 15]; for (; *at; at = &(*at)->next) if ((*at)->key == key) return *at; node *n = &pool[used++]; n->next = 0; n->key = key; n->count = 0; return *at = n; }
static const char input[] = "12 34 + 5 * 7 - -8 3 % 99 1000000007 ^ | 0x1f & 2 <";
static long eval(const char *s)
{
	long stack[32]; int top = 0;
	while (*s) {
		while (*s == ' ') ++s; int neg = 0; if (*s == '-' && s[1] >= '0' && s[1] <= '9') { neg = 1; s++; }
		if (*s >= '0' && *s <= '9') { long v = 0; if (s[0] == '0' && s[1] == 'x') for (s += 2; ; s++) { int d = *s >= '0' && *s <= '9' ? *s - '0' : *s >= 'a' && *s <= 'f' ? *s - 'a' + 10 : -1; if (d < 0) break; v = v * 16 + d; } else while (*s >= '0' && *s <= '9') v = v * 10 + (*s++ - '0'); stack[top++] = neg ? -v : v; continue; }
		if (!*s) break; long b = stack[--top], a = stack[--top], r = 0;
		switch (*s++) { case '+': r = a + b; break; case '-': r = a - b; break; case '*': r = a * b; break; case '%': r = b ? a % b : 0; break; case '^': r = a ^ b; break; case '|': r = a | b; break; case '&': r = a & b; break; case '<': r = a << (b & 63); }
		stack[top++] = r;
	}
	return top ? stack[top - 1] * 8 + top : -1;
}
long test(long a, long b)
{
	used = 0; for (int i = 0; i < 16; i++) buckets[i] = (void *)0; for (int i = 0; i < 300; i++) find((a + i * i) % 90)->count += i;
	long h = eval(input) + eval("") + eval("1 2 3 + +"); for (int i = 0; i < 16; i++) for (node *n = buckets[i]; n; n = n->next) h = h * 31 + n->key + n->count * b; return h + used;
}
