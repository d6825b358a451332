/* Work on objects of the host's: in the module's own memory if `place` is 0, else at `place`, where the host has given words. */
#include <stddef.h>
#include <stdint.h>

enum { PACKETS = 256, NODES = 4096, TEXT = 1 << 16, PIXELS = 1 << 16, OWN = 1 << 20 };

/* The descriptor of a packet: the driver may touch what is in `driver`. */
struct packet {
    uint64_t host[6];
    struct {
        uint32_t length, hash, queue, status;
        uint64_t time, protocol;
    } driver;
    uint64_t rest[8];
};
_Static_assert(sizeof(struct packet) == 144 && sizeof(((struct packet *)0)->driver) == 32, "as told");

struct node {
    struct node *next;
    uint64_t a, b, rest[5];
};

/* What the card tells of a packet. */
struct received {
    uint32_t from, to, ports, length;
};

static unsigned char own[OWN] __attribute__((aligned(64)));
static struct received ring[PACKETS];

void *place_of(void *place) { return place ? place : own; }

static uint32_t next(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Fills everything for one of the works; gives how many bytes it takes. */
uint64_t prepare(void *place, uint64_t work, uint64_t count)
{
    uint32_t state = 7;
    unsigned char *bytes = place_of(place);
    struct node *nodes = place_of(place);
    for (unsigned i = 0; i < PACKETS; i++)
        ring[i] = (struct received){next(&state), next(&state), next(&state), 64 + next(&state) % 1400};
    switch (work) {
    case 0:
        for (uint64_t i = 0; i < count * sizeof(struct packet) / 8; i++)
            ((uint64_t *)place_of(place))[i] = i;
        return count * sizeof(struct packet);
    case 1:
        /* One ring through all of them, in an order that no prefetcher knows. */
        for (uint64_t i = 0; i < count; i++) {
            nodes[i].next = &nodes[(i * 2654435761u + 12345) % count];
            nodes[i].a = i;
            nodes[i].b = 1;
        }
        return count * sizeof(struct node);
    case 2:
        for (uint64_t i = 0; i < count; i++)
            bytes[i] = "abcdefgh:,  \r\n0="[next(&state) % 16];
        return count;
    default:
        for (uint64_t i = 0; i < count; i++)
            bytes[i] = (unsigned char)next(&state);
        return count;
    }
}

/* The driver: `count` packets from the card's ring, a descriptor each, from `first` on. */
uint64_t driver(void *place, uint64_t count, uint64_t first)
{
    struct packet *packets = place_of(place);
    for (uint64_t i = 0; i < count; i++) {
        struct packet *p = &packets[(first + i) % PACKETS];
        const struct received *r = &ring[(first + i) % PACKETS];
        uint32_t h = r->from * 0x9E3779B1u ^ r->to * 0x85EBCA77u ^ r->ports * 0xC2B2AE3Du;
        h ^= h >> 15;
        h *= 0x2C1B3C6Du;
        h ^= h >> 13;
        p->driver.length = r->length;
        p->driver.hash = h;
        p->driver.queue = h % 7;
        p->driver.status = r->length > 1000 ? 3 : 1;
        p->driver.time = first + i;
        p->driver.protocol = r->ports & 1 ? 0x0800 : 0x86DD;
    }
    return count;
}

/* Follows a list. */
uint64_t list(void *place, uint64_t count, uint64_t first)
{
    uint64_t sum = 0;
    struct node *n = place_of(place);
    (void)first;
    for (uint64_t i = 0; i < count; i++) {
        sum += n->a + n->b;
        n = n->next;
    }
    return sum;
}

/* Takes a text apart, byte by byte. */
uint64_t words(void *place, uint64_t count, uint64_t first)
{
    const unsigned char *text = place_of(place);
    uint64_t tokens = 0, hash = first, in = 0;
    for (uint64_t i = 0; i < count; i++) {
        unsigned char c = text[i];
        if (c == ' ' || c == '\r' || c == '\n' || c == ':') {
            tokens += in;
            in = 0;
        } else {
            hash = hash * 31 + c;
            in = 1;
        }
    }
    return tokens ^ hash << 20;
}

/* Makes a picture brighter. */
uint64_t pixels(void *place, uint64_t count, uint64_t first)
{
    unsigned char *p = place_of(place);
    (void)first;
    for (uint64_t i = 0; i < count; i++) {
        unsigned v = p[i] + 3u;
        p[i] = (unsigned char)(v > 255 ? 0 : v);
    }
    return count;
}

/* Reads a word of each of `count` objects of 64 bytes, in an order that no prefetcher knows. */
uint64_t spread(void *place, uint64_t count, uint64_t rounds)
{
    const unsigned char *objects = place_of(place);
    uint64_t at = 0, sum = 0;
    for (uint64_t i = 0; i < rounds; i++) {
        at = (at * 2862933555777941757u + 3037000493u + sum) & (count - 1);
        sum += *(const uint32_t *)(objects + at * 64) & 1;
    }
    return sum;
}

void nothing(void) {}
