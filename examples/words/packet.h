/* The host's descriptor of a packet, 144 bytes, of which the driver's part is 32. */
#ifndef PACKET_H
#define PACKET_H

struct packet {
    struct packet *next;
    const unsigned char *data;
    unsigned length;
    unsigned id;
    unsigned char driver[32];
    unsigned long route[8];
    char owner[24];
};

#endif
