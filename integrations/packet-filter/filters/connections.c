/* Packets of TCP connections whose handshake was seen, from its third packet to the first FIN or RST: a table in the heap, which
 * grows with the connections. */
void *malloc(unsigned long);
void free(void *);

struct connection {
	struct connection *next;
	unsigned address[2];
	unsigned short port[2];
	unsigned char state; /* 1: SYN, 2: SYN and ACK, 3: open */
};

static struct connection **table;
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
	if (count >= places && !grow())
		return 0;
	struct connection **at = find(address, port, &back), *c = *at;
	if (flags == 2 && !c) {
		c = malloc(sizeof *c);
		if (!c)
			return 0;
		*c = (struct connection){ 0, { address[0], address[1] }, { port[0], port[1] }, 1 };
		*at = c;
		count++;
		return 0;
	}
	if (!c)
		return 0;
	if (flags & 5) {
		int open = c->state == 3;
		*at = c->next;
		free(c);
		count--;
		return open;
	}
	if (c->state == 1 && back && flags == 0x12)
		c->state = 2;
	else if (c->state == 2 && !back && flags == 0x10)
		c->state = 3;
	else
		return c->state == 3;
	return c->state == 3;
}
