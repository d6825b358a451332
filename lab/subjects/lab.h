/* What a subject of the laboratory gives the host, and what the host gives it. */
#ifndef LAB_H
#define LAB_H

/* One request. Writes its answer, at most `room` bytes, to `out` and gives their number; a negative
 * number tells that the subject saw something wrong by itself. */
long lab_work(unsigned request, const unsigned char *in, long size, unsigned char *out, long room);

/* Whether what it keeps on the host's storage is whole: 0. Only of subjects that keep something, and have no judge of their own. */
long lab_check(void);

/* Which of the faults that were built in happens from now on. */
void lab_choose(unsigned which);
extern unsigned lab_chosen __attribute__((visibility("hidden")));

#ifdef LAB_IN_PLACE
#include <string.h>

/* Bytes of the host's storage, where they lie, to be read, or written with `write`, until the request ends. NULL if they lie outside. */
void *lab_map(unsigned long at, unsigned long size, int write);

static inline int lab_read(unsigned long at, void *to, unsigned long size)
{
    const void *from = lab_map(at, size, 0);

    if (from)
        memcpy(to, from, size);
    return from ? 0 : -1;
}

static inline int lab_write(unsigned long at, const void *from, unsigned long size)
{
    void *to = lab_map(at, size, 1);

    if (to)
        memcpy(to, from, size);
    return to ? 0 : -1;
}
#else
/* Copies from and to the host's storage. 0, or -1 if that lies outside of it. */
int lab_read(unsigned long at, void *to, unsigned long size);
int lab_write(unsigned long at, const void *from, unsigned long size);
#endif

#endif
