/* Compresses the request's part of the input at a level of its own, and expands it again. */
#include "lab.h"

#include <string.h>
#include <zlib.h>

long lab_work(unsigned request, const unsigned char *in, long size, unsigned char *out, long room)
{
    uLongf packed = (uLongf)room / 2, whole = (uLongf)room / 2;
    long part = size / 4, from = (long)(request % 4) * part;
    int status = compress2(out, &packed, in + from, (uLong)part, 1 + (int)(request % 9));

    if (status != Z_OK)
        return status < 0 ? status : -1;
    status = uncompress(out + packed, &whole, out, packed);
    if (status != Z_OK)
        return status < 0 ? status : -1;
    return (long)(packed + whole);
}
