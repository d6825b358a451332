/* At most RATE packets a second of each IPv4 source, and BURST at once: a bucket of tokens for each, by the packets' own times. */
#define RATE 100
#define BURST 20
#define SECOND 1000000000UL
#define PLACES 4096

struct bucket {
	unsigned source;
	unsigned long tokens, last; /* tokens in nanoseconds: SECOND / RATE of them are a packet */
};

static struct bucket buckets[PLACES];

int filter(const unsigned char *packet, unsigned length, unsigned wire, unsigned long time)
{
	const unsigned long price = SECOND / RATE, most = BURST * price;
	if (length < 34 || packet[12] != 8 || packet[13] != 0)
		return 0;
	unsigned source = (unsigned)packet[26] << 24 | packet[27] << 16 | packet[28] << 8 | packet[29];
	struct bucket *b = &buckets[source * 2654435761u >> 20];
	if (b->source != source) {
		/* whoever was here is forgotten */
		b->source = source;
		b->tokens = most;
	} else if (time > b->last) {
		unsigned long gained = time - b->last;
		b->tokens = gained >= most - b->tokens ? most : b->tokens + gained;
	}
	b->last = time;
	if (b->tokens < price)
		return 0;
	b->tokens -= price;
	return 1;
}
