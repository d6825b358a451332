/* What a subject of the laboratory gives the host, and what the host gives it. */
#ifndef LAB_H
#define LAB_H

/* One request. Writes its answer, at most `room` bytes, to `out` and gives their number; a negative
 * number tells that the subject saw something wrong by itself. */
long lab_work(unsigned request, const unsigned char *in, long size, unsigned char *out, long room);

/* Whether what it keeps on the host's storage is whole: 0. Only of subjects that keep something. */
long lab_check(void);

/* The host's storage. 0, or -1 if that lies outside of it. */
int lab_read(unsigned long at, void *to, unsigned long size);
int lab_write(unsigned long at, const void *from, unsigned long size);

#endif
