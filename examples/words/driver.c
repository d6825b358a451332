/* A network driver in small: it works on the host's own packet descriptors. Ordinary C, built by
 * `ringfence cc --isolation=words`; nothing in it knows of rights. */
#include "packet.h"

/* Notes what it saw of a packet: `n` bytes of its own part. */
int receive(struct packet *p, int n) {
    if (p->length == 0)
        return -1;
    for (int i = 0; i < n; i++)
        p->driver[i] = (unsigned char)(p->data[i % p->length] + i);
    return (int)p->length;
}

/* The bytes of all packets in a list. */
long total(const struct packet *p) {
    long sum = 0;
    for (; p; p = p->next)
        sum += p->length;
    return sum;
}
