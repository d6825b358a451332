/* Packets of TCP connections whose handshake was seen, from its third packet to the first FIN or RST: a table in the heap, which
 * grows with the connections. Where memory ends, a new connection takes the place of the one that was silent for longest. */
void *malloc(unsigned long);
void free(void *);

struct connection {
	struct connection *next;
	struct connection *older, *newer; /* by their last packets */
	unsigned address[2];
	unsigned short port[2];
	unsigned char state; /* 1: SYN, 2: SYN and ACK, 3: open */
};

static struct connection **table, *oldest, *newest;
static unsigned places, count;

static unsigned hash(const unsigned *address, const unsigned short *port)
{
	return (address[0] ^ address[1] ^ (unsigned)(port[0] ^ port[1]) * 40503u) * 2654435761u >> 7;
}

static int grow(void)
{
	unsigned more = places ? 2 * places : 64;
	struct connection **larger = malloc(more * sizeof *larger);
	if (!larger)
		return 0;
	for (unsigned i = 0; i < more; i++)
		larger[i] = 0;
	for (unsigned i = 0; i < places; i++)
		for (struct connection *c = table[i], *next; c; c = next) {
			struct connection **place = &larger[hash(c->address, c->port) & more - 1];
			next = c->next;
			c->next = *place;
			*place = c;
		}
	free(table);
	table = larger;
	places = more;
	return 1;
}

/* Takes it out of the table, where it is at this place, and out of the order. */
static void take(struct connection **at)
{
	struct connection *c = *at;
	*at = c->next;
	*(c->older ? &c->older->newer : &oldest) = c->newer;
	*(c->newer ? &c->newer->older : &newest) = c->older;
	count--;
}

/* Puts it into both, as the newest. */
static void put(struct connection *c)
{
	struct connection **place = &table[hash(c->address, c->port) & places - 1];
	c->next = *place;
	*place = c;
	c->older = newest;
	c->newer = 0;
	*(newest ? &newest->newer : &oldest) = c;
	newest = c;
	count++;
}

/* Room for one more, if need be the oldest's. */
static struct connection *room(void)
{
	struct connection *c = 0;
	if (count < places || grow())
		c = malloc(sizeof *c);
	if (!c && oldest) {
		struct connection **at = &table[hash(oldest->address, oldest->port) & places - 1];
		while (*at != oldest)
			at = &(*at)->next;
		c = oldest;
		take(at);
	}
	return c;
}

/* Where the connection is, or where its end is. The first address is the client's. */
static struct connection **find(const unsigned *address, const unsigned short *port, int *back)
{
	struct connection **at = &table[hash(address, port) & places - 1];
	for (; *at; at = &(*at)->next) {
		const struct connection *c = *at;
		for (*back = 0; *back < 2; ++*back)
			if (c->address[0] == address[*back] && c->address[1] == address[!*back] && c->port[0] == port[*back] &&
			    c->port[1] == port[!*back])
				return at;
	}
	return at;
}

int filter(const unsigned char *packet, unsigned length, unsigned wire)
{
	unsigned address[2];
	unsigned short port[2];
	if (length < 34 || packet[12] != 8 || packet[13] != 0 || packet[23] != 6 || (packet[20] & 31) || packet[21])
		return 0;
	const unsigned char *tcp = packet + 14 + (packet[14] & 15) * 4;
	if (tcp + 14 > packet + length)
		return 0;
	for (int i = 0; i < 2; i++) {
		const unsigned char *a = packet + 26 + 4 * i;
		address[i] = (unsigned)a[0] << 24 | a[1] << 16 | a[2] << 8 | a[3];
		port[i] = (unsigned short)(tcp[2 * i] << 8 | tcp[2 * i + 1]);
	}
	int flags = tcp[13] & 0x17, back; /* ACK, RST, SYN, FIN */
	if (!places && !grow())
		return 0;
	struct connection **at = find(address, port, &back), *c = *at;
	if (flags == 2 && !c) {
		c = room();
		if (c) {
			*c = (struct connection){ 0, 0, 0, { address[0], address[1] }, { port[0], port[1] }, 1 };
			put(c);
		}
		return 0;
	}
	if (!c)
		return 0;
	take(at);
	if (flags & 5) {
		int open = c->state == 3;
		free(c);
		return open;
	}
	put(c);
	if (c->state == 1 && back && flags == 0x12)
		c->state = 2;
	else if (c->state == 2 && !back && flags == 0x10)
		c->state = 3;
	return c->state == 3;
}
