/* Unpacking, of what may be damaged. */
#include "simd_lz.h"

static int get_length(size_t *length, const uint8_t **from, const uint8_t *end)
{
    uint8_t byte;
    if (*length < 15)
        return 1;
    do {
        if (*from == end)
            return 0;
        byte = *(*from)++;
        *length += byte;
    } while (byte == 255);
    return 1;
}

/* Gives how many bytes it wrote, or `room + 1` for what no packing wrote. `room` has PAD bytes after it. */
size_t unpack(uint8_t *to, size_t room, const uint8_t *from, size_t size)
{
    const uint8_t *end = from + size;
    size_t done = 0;
    while (from < end) {
        size_t count = *from >> 4, extra = *from & 15;
        from++;
        if (!get_length(&count, &from, end) || count > (size_t)(end - from) || count > room - done)
            return room + 1;
        copy_wide(to + done, from, count);
        done += count;
        from += count;
        if (from == end)
            return done;
        if (end - from < 2)
            return room + 1;
        size_t distance = from[0] | (size_t)from[1] << 8;
        from += 2;
        if (!get_length(&extra, &from, end) || extra + 3 > room - done || distance - 1 >= done)
            return room + 1;
        copy_match(to + done, distance, extra + 3);
        done += extra + 3;
    }
    return room + 1;
}
