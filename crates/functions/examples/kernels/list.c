/* a list of structures, in an order that is not that of memory */
struct entry { unsigned next; int key; long value; };
long run(unsigned char *p, long n)
{
	struct entry *all = (struct entry *)p;
	unsigned count = n / sizeof *all, at = 0;
	long sum = 0;
	for (unsigned i = 0; i < count; i++) {
		all[i].next = (i + 1021) % count;
		all[i].key = i * 7 & 255;
		all[i].value = i;
	}
	for (unsigned i = 0; i < 2 * count; i++) {
		struct entry *e = &all[at];
		if (e->key > 100)
			sum += e->value;
		else
			e->value = sum & 0xFF;
		at = e->next;
	}
	return sum;
}
